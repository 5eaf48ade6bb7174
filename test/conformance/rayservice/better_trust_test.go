package rayservice

import (
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// trustCases are about one broken thing that must not hide or block others, and about conditions that can be believed.
func trustCases() []Case {
	return []Case{
		{Row: 69, Kind: better, Weak: []string{"RS-W8"}, Theirs: "the active cluster gets the new spec in place, and its Pods keep the old one",
			Given: "a ready service", When: "another version of the operator is started, and the image is changed", Then: "an upgrade; the spec of the active cluster stays as it is",
			How: "the version of the operator is no reason to change a spec", Run: func(e *env) {
				service, cluster := e.byAnotherVersion()
				e.newRays(staysDeploying)
				e.change(service, image("img:2"))
				e.start()
				next := e.pending(service)
				e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
				e.Expect(cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image).To(Equal("img:1"))
				e.runs(next.Name)
				e.switched(service, next)
				e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
				e.Expect(cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image).To(Equal("img:1"))
			}},
		{Row: 70, Kind: better, Weak: []string{"RS-W8"}, Theirs: "the spec of the active cluster is replaced",
			Given: "a ready service", When: "another version of the operator is started", Then: "no other cluster; the spec stays as it is, the annotation of the version does not",
			How: "only the bookkeeping is brought up to date", Run: func(e *env) {
				service, cluster := e.byAnotherVersion()
				e.start()
				e.soon(func() any {
					e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
					return cluster.Annotations[rayv1.AnnotationOperatorVersion]
				}).Should(Equal("test"))
				e.unchanged(service, cluster)
			}},
		{Row: 72, Kind: better, Weak: []string{"RS-W9", "RS-W11"}, Theirs: "Ready stays True",
			Given: "an upgrade whose new dashboard does not answer", When: "the active cluster loses its endpoints", Then: "Ready False",
			How: "what is known of one cluster does not wait for the other", Run: func(e *env) {
				service, _, next := e.upgrading()
				e.ray(next.Name).Down()
				e.loseEndpoints(service)
				e.Expect(condition(service, "EndpointsReady").Status).To(Equal(metav1.ConditionFalse))
			}},
		{Row: 73, Kind: better, Weak: []string{"RS-W10"}, Theirs: "the time-out never comes",
			Given: "a time-out annotation, a quota that allows no head", When: "the time is over", Then: "Ready False with InitializingTimeout", How: "limits are looked at before anything can fail", Run: func(e *env) {
				e.LimitPods(e.t, e.ns, 0)
				service := e.given(mayInitialize("2s"))
				e.have(service, "Ready", metav1.ConditionFalse, "InitializingTimeout")
				e.Expect(e.Pods(e.t, e.ns, nil)).To(BeEmpty())
			}},
		{Row: 74, Kind: better, Weak: []string{"RS-W10", "RS-W14"}, Theirs: "the time-out never comes, and the cause is in events only",
			Given: "a time-out annotation, a config that Serve refuses", When: "the time is over", Then: "ConfigApplied False with Serve's words; then InitializingTimeout",
			How: "the refusal stands in a condition, and in the message of the time-out", Run: refusedUntilTheTimeIsOver},
		{Row: 75, Kind: better, Weak: []string{"RS-W11"}, Theirs: "Ready True tells nothing of it",
			Given: "a ready service", When: "an application is DEPLOY_FAILED while endpoints are ready", Then: "ApplicationsHealthy False with its name and message; Ready True",
			How: "a condition of its own", Run: func(e *env) {
				service := e.ready()
				ray := e.ray(e.active(service).Name)
				ray.SetServeStep("app", fakedashboard.ServeStep{Status: "DEPLOY_FAILED", Message: "no module named fruit"})
				message := e.have(service, "ApplicationsHealthy", metav1.ConditionFalse, "ApplicationsNotRunning")
				e.Expect(message).To(And(ContainSubstring("app"), ContainSubstring("no module named fruit")))
				e.Expect(condition(service, "Ready").Status).To(Equal(metav1.ConditionTrue))
				ray.SetServeStep("app", fakedashboard.ServeStep{Status: "RUNNING"})
				e.have(service, "ApplicationsHealthy", metav1.ConditionTrue, "ApplicationsRunning")
			}},
		{Row: 76, Kind: better, Weak: []string{"RS-W12"}, Theirs: "the applications of the active cluster are left out",
			Given: "an upgrade", When: "an application of the active cluster changes", Then: "the status tells of the applications of both", How: "both are asked all the time", Run: func(e *env) {
				service, before, _ := e.upgrading()
				statuses := func(s *rayv1.RayServiceStatuses) any {
					return []string{s.ActiveServiceStatus.ApplicationStatuses["app"].Status, s.PendingServiceStatus.ApplicationStatuses["app"].Status}
				}
				e.follow(service, statuses).Should(Equal([]string{"RUNNING", "DEPLOYING"}))
				e.ray(before.Name).SetServeStep("app", fakedashboard.ServeStep{Status: "UNHEALTHY"})
				e.follow(service, statuses).Should(Equal([]string{"UNHEALTHY", "DEPLOYING"}))
			}},
		{Row: 98, Kind: better, Weak: []string{"RS-W25"}, Theirs: "all wait for the one that hangs",
			Given: "20 services, one with a dashboard that never answers", When: "they start, and the proxies of the others fail", Then: "the others serve, and their heads are marked",
			How: "Ray is asked in the background", Run: nobodyWaitsForAHangingDashboard},
	}
}

// byAnotherVersion makes a service that serves, as another version of the operator would have left it. No operator runs.
func (e *env) byAnotherVersion() (*rayv1.RayService, *rayv1.RayCluster) {
	e.t.Helper()
	service := e.ready()
	cluster := e.active(service)
	e.rest()
	e.operator.Stop()
	e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
	e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { c.Annotations[rayv1.AnnotationOperatorVersion] = "v0.1.0" })
	return service, cluster
}

func refusedUntilTheTimeIsOver(e *env) {
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.RefuseServe("no module named fruit") })
	service := e.given(mayInitialize("10m"))
	e.Expect(e.have(service, "ConfigApplied", metav1.ConditionFalse, "ConfigRefused")).To(ContainSubstring("no module named fruit"))
	e.change(service, mayInitialize("1s"))
	e.Expect(e.have(service, "Ready", metav1.ConditionFalse, "InitializingTimeout")).To(ContainSubstring("no module named fruit"))
}

func nobodyWaitsForAHangingDashboard(e *env) {
	const number = 20
	e.Rays.OnUnknown(func(host string) *fakedashboard.Dashboard {
		ray := fakedashboard.NewInProcess()
		if strings.HasPrefix(host, "llm-0-") {
			ray.Inject(fakedashboard.Fault{Never: true})
		}
		return ray
	})
	var services []*rayv1.RayService
	for i := range number {
		services = append(services, e.newService(noWorkers, named(fmt.Sprintf("llm-%d", i))))
		e.make(services[i])
	}
	e.start()
	e.ray(e.pending(services[0]).Name)
	for _, service := range services[1:] {
		e.serves(service)
	}
	for _, service := range services[1:] {
		e.nodes.Proxy(e.head(service.Status.ActiveServiceStatus.RayClusterName)).SetHealthy(false)
	}
	for _, service := range services[1:] {
		e.soon(func() any {
			return e.Pods(e.t, e.ns, harness.HeadOf(service.Status.ActiveServiceStatus.RayClusterName))[0].Labels[rayv1.LabelServe]
		}).Should(Equal("false"))
	}
	e.refresh(services[0])
	e.Expect(services[0].Status.ActiveServiceStatus.RayClusterName).To(BeEmpty(), "its dashboard was meant to hang")
}
