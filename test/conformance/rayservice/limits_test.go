package rayservice

import (
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// mayInitialize sets how long the service may take to serve for the first time.
func mayInitialize(limit string) edit { return annotated("ray.io/initializing-timeout", limit) }

func timeoutCases() []Case {
	return []Case{
		{Row: 36, Kind: same, Given: "a time-out annotation", When: "the head is not ready in time", Then: "Ready False with InitializingTimeout, no cluster names in status, the clusters go, Warning RayServiceInitializingTimeout", Run: func(e *env) {
			e.timesOut()
		}},
		{Row: 37, Kind: same, Given: "a service that timed out", When: "its spec is repaired", Then: "it stays as it is", Run: func(e *env) {
			service := e.timesOut()
			e.noKubelet = false
			e.changeSeen(service, image("img:2"), mayInitialize("10m"))
			e.rest()
			e.isTimedOut(service)
			e.Expect(e.clusters()).To(BeEmpty())
		}},
		{Row: 38, Kind: same, Given: "a time-out annotation, a service that was ready in time", When: "its endpoints vanish for longer than that", Then: "Ready False with ZeroServeEndpoints; it keeps its cluster", Run: func(e *env) {
			service := e.ready(mayInitialize("10m"))
			cluster := e.active(service)
			e.loseEndpoints(service)
			e.change(service, mayInitialize("1"))
			e.asked(e.ray(cluster.Name), 2)
			e.rest()
			e.refresh(service)
			c := condition(service, "Ready")
			e.Expect(is(c.Status, c.Reason)).To(Equal(is(metav1.ConditionFalse, "ZeroServeEndpoints")))
			e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(cluster.Name))
			e.Expect(e.isGone(cluster)).To(BeFalse())
		}},
	}
}

// timesOut makes a service whose Pods do not start, and follows it until its time is over and its cluster is gone.
func (e *env) timesOut() *rayv1.RayService {
	e.t.Helper()
	e.noKubelet = true
	service := e.newService(mayInitialize("2s"), deletionDelay(0))
	e.make(service)
	seen := e.record()
	e.start()
	e.have(service, "Ready", metav1.ConditionFalse, "InitializingTimeout")
	e.isTimedOut(service)
	e.said(service, corev1.EventTypeWarning, "RayServiceInitializingTimeout")
	e.soon(func() any { return e.clusters() }).Should(BeEmpty())
	e.Expect(seen.distinct(func(s *rayv1.RayService) string { return s.Status.PendingServiceStatus.RayClusterName })).
		To(ContainElement(Not(BeEmpty())), "a cluster was made before")
	return service
}

func (e *env) isTimedOut(service *rayv1.RayService) {
	e.t.Helper()
	e.refresh(service)
	c := condition(service, "Ready")
	e.Expect(is(c.Status, c.Reason)).To(Equal(is(metav1.ConditionFalse, "InitializingTimeout")))
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName + service.Status.PendingServiceStatus.RayClusterName).To(BeEmpty())
}

func validationCases() []Case {
	return []Case{
		{Row: 39, Kind: same, When: "the time-out annotation is abc, -5 or 0", Then: "Ready False with ValidationFailed, Warning InvalidRayServiceMetadata", Run: func(e *env) {
			e.start()
			for i, limit := range []string{"abc", "-5", "0"} {
				service := e.given(mayInitialize(limit), named(fmt.Sprintf("limit-%d", i)))
				e.isInvalid(service, "InvalidRayServiceMetadata", "ray.io/initializing-timeout")
			}
		}},
		{Row: 40, Kind: same, When: "the spec breaks a rule, one for each of them", Then: "ValidationFailed and a Warning, no cluster",
			How: "or refused by the API server when it is applied", Run: everyRule},
		{Row: 41, Kind: same, Given: "managedBy is multikueue", When: "the service is created", Then: "no finalizer and no status; managedBy cannot be changed", Run: leavesOthersAlone},
		{Row: 59, Kind: same, Given: "serviceUnhealthySecondThreshold and deploymentUnhealthySecondThreshold are set", When: "applications are unhealthy for longer", Then: "both are stored and without effect", Run: func(e *env) {
			service := e.ready(func(s *rayv1.RayService) {
				s.Spec.ServiceUnhealthySecondThreshold, s.Spec.DeploymentUnhealthySecondThreshold = ptr.To[int32](1), ptr.To[int32](1)
			})
			cluster := e.active(service)
			ray := e.ray(cluster.Name)
			ray.SetServeStep("app", fakedashboard.ServeStep{Status: "UNHEALTHY"})
			e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.ActiveServiceStatus.ApplicationStatuses["app"].Status }).
				Should(Equal("UNHEALTHY"))
			e.asked(ray, 2)
			e.unchanged(service, cluster)
			e.Expect(service.Spec.ServiceUnhealthySecondThreshold).To(HaveValue(Equal(int32(1))))
		}},
	}
}

// isInvalid waits until a service is told to be invalid, in a condition and in an event that name the field.
func (e *env) isInvalid(service *rayv1.RayService, reason, field string) {
	e.t.Helper()
	e.have(service, "Ready", metav1.ConditionFalse, "ValidationFailed")
	e.Expect(condition(service, "Valid").Message).To(ContainSubstring(field))
	e.Expect(e.said(service, corev1.EventTypeWarning, reason)).To(ContainSubstring(field))
	e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(BeEmpty())
}

// brokenRule is a RayService that breaks a rule.
type brokenRule struct {
	what, field, reason string
	edits               []edit
}

func everyBrokenRule() []brokenRule {
	const metadata, spec = "InvalidRayServiceMetadata", "InvalidRayServiceSpec"
	options := func(edit func(*rayv1.ClusterUpgradeOptions)) edit {
		return func(s *rayv1.RayService) { edit(s.Spec.UpgradeStrategy.ClusterUpgradeOptions) }
	}
	stepping := func(field string, edits ...edit) brokenRule {
		return brokenRule{"incremental, wrong " + field, field, spec, append([]edit{incremental}, edits...)}
	}
	return []brokenRule{
		{"name too long", "metadata.name", metadata, []edit{named(strings.Repeat("a", 48))}},
		{"name is no label of DNS", "metadata.name", metadata, []edit{named("1st")}},
		{"time-out is no time", "ray.io/initializing-timeout", metadata, []edit{named("time-out"), mayInitialize("soon")}},
		{"Kubernetes' own tokens", "authOptions", spec, []edit{named("own-tokens"), func(s *rayv1.RayService) {
			s.Spec.RayClusterConfig.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}
		}}},
		{"a cluster that is invalid", "spec.rayClusterConfig.workerGroupSpecs", spec, []edit{named("cluster"), group("a")}},
		{"head Service with a name", "headService", spec, []edit{named("head-service"), func(s *rayv1.RayService) {
			s.Spec.RayClusterConfig.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
		}}},
		{"unknown strategy", "upgradeStrategy.type", spec, []edit{named("strategy"), strategy("Sideways")}},
		{"negative delay", "rayClusterDeletionDelaySeconds", spec, []edit{named("delay"), deletionDelay(-1)}},
		stepping("enableInTreeAutoscaling", named("no-autoscaler"), func(s *rayv1.RayService) { s.Spec.RayClusterConfig.EnableInTreeAutoscaling = nil }),
		stepping("clusterUpgradeOptions", named("no-options"), func(s *rayv1.RayService) { s.Spec.UpgradeStrategy.ClusterUpgradeOptions = nil }),
		stepping("maxSurgePercent", named("surge"), options(func(o *rayv1.ClusterUpgradeOptions) { o.MaxSurgePercent = ptr.To[int32](101) })),
		stepping("stepSizePercent", named("step"), options(func(o *rayv1.ClusterUpgradeOptions) { o.StepSizePercent = nil })),
		stepping("stepSizePercent", named("step-size"), options(func(o *rayv1.ClusterUpgradeOptions) { o.StepSizePercent = ptr.To[int32](101) })),
		stepping("stepSizePercent", named("step-surge"), options(func(o *rayv1.ClusterUpgradeOptions) {
			o.MaxSurgePercent, o.StepSizePercent = ptr.To[int32](10), ptr.To[int32](20)
		})),
		stepping("intervalSeconds", named("no-interval"), options(func(o *rayv1.ClusterUpgradeOptions) { o.IntervalSeconds = nil })),
		stepping("intervalSeconds", named("interval"), options(func(o *rayv1.ClusterUpgradeOptions) { o.IntervalSeconds = ptr.To[int32](0) })),
		stepping("gatewayClassName", named("gateway-class"), options(func(o *rayv1.ClusterUpgradeOptions) { o.GatewayClassName = "" })),
	}
}

// incremental has traffic move step by step.
func incremental(s *rayv1.RayService) {
	autoscaled(s)
	strategy(rayv1.RayServiceNewClusterWithIncrementalUpgrade)(s)
	s.Spec.UpgradeStrategy.ClusterUpgradeOptions = &rayv1.ClusterUpgradeOptions{
		MaxSurgePercent: ptr.To[int32](50), StepSizePercent: ptr.To[int32](25), IntervalSeconds: ptr.To[int32](1), GatewayClassName: "traffic"}
}

// everyRule checks that a RayService which breaks a rule is refused when it is applied, or told about by the operator.
func everyRule(e *env) {
	e.start()
	stored := map[*rayv1.RayService]brokenRule{}
	for _, rule := range everyBrokenRule() {
		service := e.newService(rule.edits...)
		err := e.Create(e.t.Context(), service)
		if err == nil {
			stored[service] = rule
			continue
		}
		e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", rule.what, err)
		e.Expect(err.Error()).To(ContainSubstring(rule.field), rule.what)
	}
	for service, rule := range stored {
		e.isInvalid(service, rule.reason, rule.field)
	}
	e.rest()
	e.Expect(e.clusters()).To(BeEmpty())
}

func leavesOthersAlone(e *env) {
	e.noKubelet = true
	service := e.given(func(s *rayv1.RayService) { s.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })
	other := e.given(named("other"))
	e.pending(other) // so that the first one had its turn
	e.rest()
	e.refresh(service)
	e.Expect(service.Finalizers).To(BeEmpty())
	e.Expect(service.Status).To(Equal(rayv1.RayServiceStatuses{}))
	e.Expect(e.clusters()).To(HaveLen(1))
	base := service.DeepCopy()
	service.Spec.ManagedBy = ptr.To(rayv1.ManagedByOperator)
	e.Expect(apierrors.IsInvalid(e.Patch(e.t.Context(), service, client.MergeFrom(base)))).To(BeTrue())
}
