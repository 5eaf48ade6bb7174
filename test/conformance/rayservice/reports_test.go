package rayservice

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/conformance/table"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// Report is something that users of KubeRay reported about RayServices and about the operator as a whole.
type Report = table.Report[*env]

func reports() []Report {
	return []Report{
		{Number: 49, What: "in an upgrade, Serve on the new cluster answers with an empty list of applications", Right: "traffic stays until every application of the config runs", Run: emptyList},
		{Number: 50, What: "fault tolerance, the head is deleted", Right: "the same cluster, a new head; workers go on serving; no second cluster (the operator's part: Redis has its own issue)", Run: newHeadWithFaultTolerance},
		{Number: 51, What: "no fault tolerance, the head restarts, the config is the same", Right: "applications are sent again, because Serve has none", Elsewhere: "RS-012"},
		{Number: 52, What: "rayClusterConfig.suspend is true, and false later", Right: "the RayCluster is resumed", Run: suspendedCluster},
		{Number: 53, What: "an incremental upgrade, a client on the serve Service, which outlives all clusters", Right: "the Service follows; it always has a ready endpoint, and selects only what is marked", Run: stableService},
		{Number: 54, What: "Serve proxies on the head only", Right: "workers are ready without one, the Service selects the head alone, upgrades get to their end", Run: proxiesOnTheHead},
		{Number: 55, What: "a fresh service, the head runs, no application is there yet", Right: "no Service of Serve has a ready endpoint before the proxy was seen to be healthy", Run: notSelectedBeforeHealth},
		{Number: 56, What: "requests that take minutes, an upgrade", Right: "they end, up to a limit", Elsewhere: "RS-062; with real Ray: test/e2e"},
		{Number: 57, What: "objects as KubeRay has left them", Right: "no cluster and no Pod is made or deleted, the Services lead where they led", Run: takesOverFromKubeRay},
		{Number: 58, What: "a head Service with an address, where new ones have none", Right: "it keeps the address; the upgrade gets to its end", Run: keepsTheAddress},
		{Number: 59, What: "a healthy service", Right: "its status is written only when something changes", Run: writesNothing},
		{Number: 60, What: "the API server stalls for longer than a lease lasts, with two replicas", Right: "both go on, one of them leads afterwards, no Pod is touched", Run: stalls},
		{Number: 61, What: "Redis, a queue suspends the clean-up Job of an owner that is being deleted", Right: "the deletion ends in bounded time", Elsewhere: "TestAQueueThatSuspendsTheCleanUpHoldsNoCluster in test/conformance/raycluster"},
		{Number: 62, What: "many Pods of others", Right: "the operator neither lists nor keeps them", Run: keepsNoForeignPods, Elsewhere: "TestCachesAreNarrow in internal/operator"},
		{Number: 63, What: "the plugin submits a job whose working directory does not exist", Right: "the error is printed, with a non-zero exit code, and nothing is made", Elsewhere: "TestL63AWorkingDirectoryThatDoesNotExist in internal/cli/job"},
	}
}

func emptyList(e *env) {
	service, before, next := e.upgrading()
	ray := e.ray(next.Name)
	ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointServe, Code: http.StatusOK, Body: `{"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": null}`})
	e.runs(next.Name)
	e.asked(ray, 4)
	e.rest()
	e.Expect(e.leadsTo("llm-serve-svc")).To(Equal(before.Name))
	e.refresh(service)
	e.Expect(condition(service, "UpgradeInProgress").Message).To(ContainSubstring("does not have the config"))
	ray.ClearFaults()
	e.switched(service, next)
}

func newHeadWithFaultTolerance(e *env) {
	service := e.ready()
	e.bothServe(service)
	cluster := e.active(service)
	ray := e.ray(cluster.Name)
	head := e.head(cluster.Name)
	seen := e.record()
	ray.RestartWithFaultTolerance()
	e.Kill(e.t, head)
	e.gone(head)
	e.haveLabel(e.head(cluster.Name), "true")
	e.bothServe(service)
	e.serves(service)
	e.Expect(seen.conditions("Ready")).To(HaveEach(is(metav1.ConditionTrue, "NonZeroServeEndpoints")))
	e.Expect(seen.distinct(func(s *rayv1.RayService) string { return s.Status.PendingServiceStatus.RayClusterName })).To(HaveEach(""))
	e.Expect(e.clusters()).To(HaveLen(1))
	e.Expect(ray.ServePuts()).To(Equal(1))
}

// bothServe waits until head and worker take requests.
func (e *env) bothServe(service *rayv1.RayService) {
	e.t.Helper()
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.NumServeEndpoints }).Should(Equal(int32(2)))
}

func suspendedCluster(e *env) {
	suspend := func(is bool) edit {
		return func(s *rayv1.RayService) { s.Spec.RayClusterConfig.Suspend = &is }
	}
	service := e.given(suspend(true))
	cluster := e.pending(service)
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return cluster.Status.State
	}).Should(Equal(rayv1.ClusterStateSuspended))
	e.Expect(e.Pods(e.t, e.ns, nil)).To(BeEmpty())
	e.change(service, suspend(false))
	e.serves(service)
	e.Expect(e.active(service).UID).To(Equal(cluster.UID))
}

func stableService(e *env) {
	service := e.readyInSteps(deletionDelay(300), stepping(100, 50, 1), annotated("ray.io/enable-serve-service", "true"))
	before := e.active(service)
	load := e.underLoad()
	e.changeSeen(service, image("img:2"))
	next := e.pending(service)
	e.promoted(service, next)
	e.soon(func() any { return e.leadsTo("llm-serve-svc") }).Should(Equal(next.Name))
	e.retireEarlier(before, 5*time.Minute)
	e.gone(before)
	load.failedNone()
	e.onlyMarked()
}

func proxiesOnTheHead(e *env) {
	config := serveConfig("proxy_location: HeadOnly\n" + harness.SampleServeConfig)
	service := e.ready(config)
	cluster := e.active(service)
	e.worksOnTheHeadAlone(service, cluster)
	e.change(service, image("img:2"))
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.ActiveServiceStatus.RayClusterName }).ShouldNot(Equal(cluster.Name))
	e.serves(service)
	e.worksOnTheHeadAlone(service, e.active(service))
}

func (e *env) worksOnTheHeadAlone(service *rayv1.RayService, cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.Expect(service.Status.NumServeEndpoints).To(Equal(int32(1)))
	workers := e.Pods(e.t, e.ns, harness.WorkersOf(cluster.Name))
	e.Expect(workers).To(HaveLen(1))
	e.Expect(workers[0].Labels).To(HaveKeyWithValue("ray.io/serve", "false"))
	probe := workers[0].Spec.Containers[0].ReadinessProbe
	e.Expect(probe).ToNot(BeNil())
	if probe.Exec != nil {
		e.Expect(strings.Join(probe.Exec.Command, " ")).ToNot(ContainSubstring("/-/healthz"))
	}
}

func notSelectedBeforeHealth(e *env) {
	e.newRays(func(ray *fakedashboard.Dashboard) {
		ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointPutServe, Code: http.StatusServiceUnavailable})
	})
	service := e.given()
	cluster := e.pending(service)
	ray := e.ray(cluster.Name)
	e.asked(ray, 3)
	e.rest()
	e.refresh(service)
	e.Expect(e.head(cluster.Name).Status.Phase).To(Equal(corev1.PodRunning))
	e.Expect(e.head(cluster.Name).Labels).To(HaveKeyWithValue("ray.io/serve", "false"))
	e.Expect(service.Status.PendingServiceStatus.ReadyServeEndpoints).To(BeZero())
	ray.ClearFaults()
	e.serves(service)
	e.Expect(e.head(cluster.Name).Labels).To(HaveKeyWithValue("ray.io/serve", "true"))
}

// takesOverFromKubeRay makes a service and leaves of it what KubeRay would have left.
func takesOverFromKubeRay(e *env) {
	service := e.ready()
	cluster := e.active(service)
	e.rest()
	e.operator.Stop()
	e.Edit(e.t, cluster, func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationSpecHash: "UDJHJOPTG4HIRSQOMPTIVB3VOL3NTQ6C", rayv1.AnnotationNumWorkerGroups: "1", rayv1.AnnotationOperatorVersion: "v1.5.1"}
		*c.Spec.WorkerGroupSpecs[0].Replicas = 1
	})
	for _, name := range []string{"llm-head-svc", "llm-serve-svc"} {
		object := e.service(name)
		object.Annotations, object.ManagedFields = nil, []metav1.ManagedFieldsEntry{{}}
		e.Expect(e.Update(e.t.Context(), object)).To(Succeed())
	}
	e.Expect(e.Delete(e.t.Context(), e.service(cluster.Name+"-serve-svc"))).To(Succeed())
	e.refresh(service)
	st := &service.Status
	st.ClusterIncarnations, st.CutOvers, st.ActiveServiceStatus.Goal, st.ActiveServiceStatus.ReadyServeEndpoints = 0, nil, "", 0
	ours := map[string]bool{"Valid": true, "ConfigApplied": true, "ApplicationsHealthy": true, "EndpointsReady": true, "Reconciling": true, "Stalled": true}
	var theirs []metav1.Condition
	for _, c := range st.Conditions {
		if !ours[c.Type] {
			theirs = append(theirs, c)
		}
	}
	st.Conditions = theirs
	e.Expect(e.Status().Update(e.t.Context(), service)).To(Succeed())
	pods := harness.Names(e.allPods(cluster.Name))
	seen := e.record()

	e.start()
	e.serves(service)
	e.rest()
	for _, resource := range []string{"rayclusters", "pods"} {
		e.Expect(e.operator.Traffic.Count("create", resource)+e.operator.Traffic.Count("delete", resource)).To(BeZero(), resource)
	}
	e.Expect(harness.Names(e.allPods(cluster.Name))).To(Equal(pods))
	e.Expect([]string{e.leadsTo("llm-head-svc"), e.leadsTo("llm-serve-svc")}).To(Equal([]string{cluster.Name, cluster.Name}))
	e.Expect(e.ray(cluster.Name).ServePuts()).To(Equal(1))
	e.Expect(seen.conditions("Ready")).To(HaveEach(is(metav1.ConditionTrue, "NonZeroServeEndpoints")))
	next := e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.switched(service, next)
}

func keepsTheAddress(e *env) {
	service := e.ready()
	e.rest()
	e.operator.Stop()
	old := e.service("llm-head-svc")
	e.Expect(e.Delete(e.t.Context(), old)).To(Succeed())
	withAddress := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: old.Name, Labels: old.Labels, OwnerReferences: old.OwnerReferences},
		Spec: corev1.ServiceSpec{Selector: old.Spec.Selector, Ports: old.Spec.Ports}}
	e.make(withAddress)
	e.Expect(withAddress.Spec.ClusterIP).ToNot(Or(BeEmpty(), Equal(corev1.ClusterIPNone)))
	e.start()
	next := e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.switched(service, next)
	e.Expect(e.service("llm-head-svc").Spec.ClusterIP).To(Equal(withAddress.Spec.ClusterIP))
}

func writesNothing(e *env) {
	service := e.ready()
	e.bothServe(service)
	e.rest()
	before := e.operator.Traffic.Writes()
	e.asked(e.ray(e.active(service).Name), 10)
	e.Expect(e.operator.Traffic.Writes()).To(Equal(before))
}

// keepsNoForeignPods asks the API server what the operator asks it for.
func keepsNoForeignPods(e *env) {
	const foreign = 50
	for range foreign {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, GenerateName: "other-"}, Spec: harness.PodTemplate("main").Spec}
		pod.Spec.AutomountServiceAccountToken = ptr.To(false)
		e.make(pod)
	}
	kept := &podQueries{}
	e.start(harness.Transport(kept.transport))
	service := e.ready()
	e.Expect(kept.selectors()).ToNot(BeEmpty())
	for _, selector := range kept.selectors() {
		e.Expect(selector).ToNot(BeEmpty(), "all Pods are asked for")
		e.Expect(len(e.podsOf(selector))).To(BeNumerically("<=", 2), "%s takes Pods of others", selector)
	}
	e.bothServe(service)
}
