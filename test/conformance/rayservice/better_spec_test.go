package rayservice

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// specCases are about specs that cannot be acted upon.
func specCases() []Case {
	return []Case{
		{Row: 87, Kind: better, Weak: []string{"RS-W20"}, Theirs: "Ready becomes False while requests are answered, and heads are looked after no more",
			Given: "a ready service", When: "the spec becomes invalid, and is repaired", Then: "heads are marked all the time, Ready tells whether requests are answered", How: "a condition Valid of its own", Run: servesWhileInvalid},
		{Row: 88, Kind: better, Weak: []string{"RS-W20"}, Theirs: "UpgradeInProgress Unknown; the time-out never comes",
			Given: "a service that was invalid from the start", When: "it is repaired", Then: "UpgradeInProgress False with Initializing; the time for the start counts from then on", How: "it begins as if it were new", Run: func(e *env) {
				e.noKubelet = true
				service := e.given(mayInitialize("abc"))
				e.isInvalid(service, "InvalidRayServiceMetadata", "ray.io/initializing-timeout")
				e.change(service, mayInitialize("10m"))
				e.have(service, "Ready", metav1.ConditionFalse, "Initializing")
				e.have(service, "UpgradeInProgress", metav1.ConditionFalse, "Initializing")
				e.pending(service)
				e.change(service, mayInitialize("1s"))
				e.have(service, "Ready", metav1.ConditionFalse, "InitializingTimeout")
			}},
		{Row: 89, Kind: better, Weak: []string{"RS-W21"}, Theirs: "accepted; the upgrade never ends",
			Given: "the incremental strategy with a surge or a step of 0", When: "it is applied", Then: "refused", How: "by a rule of the API server", Run: func(e *env) {
				for field, edit := range map[string]func(*rayv1.ClusterUpgradeOptions){
					"maxSurgePercent": func(o *rayv1.ClusterUpgradeOptions) {
						o.MaxSurgePercent, o.StepSizePercent = ptr.To[int32](0), ptr.To[int32](0)
					},
					"stepSizePercent": func(o *rayv1.ClusterUpgradeOptions) { o.StepSizePercent = ptr.To[int32](0) },
				} {
					err := e.Create(e.t.Context(), e.newService(incremental, func(s *rayv1.RayService) { edit(s.Spec.UpgradeStrategy.ClusterUpgradeOptions) }))
					e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
					e.Expect(err.Error()).To(ContainSubstring(field))
				}
			}},
	}
}

func servesWhileInvalid(e *env) {
	service := e.ready()
	e.bothServe(service)
	head := e.head(e.active(service).Name)
	seen := e.record()
	e.changeSeen(service, strategy("Sideways"))
	e.Expect(e.have(service, "Valid", metav1.ConditionFalse, "SpecInvalid")).To(ContainSubstring("Sideways"))
	e.said(service, corev1.EventTypeWarning, "InvalidRayServiceSpec")
	e.nodes.Proxy(head).SetHealthy(false)
	e.haveLabel(head, "false")
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.NumServeEndpoints }).Should(Equal(int32(1)))
	e.nodes.Proxy(head).SetHealthy(true)
	e.haveLabel(head, "true")
	e.changeSeen(service, strategy(rayv1.RayServiceNewCluster))
	e.serves(service)
	e.have(service, "Valid", metav1.ConditionTrue, "SpecValid")
	e.Expect(seen.conditions("Ready")).To(Equal([]string{is(metav1.ConditionTrue, "NonZeroServeEndpoints")}))
}

// ownServiceCases are about the Services that a RayService makes.
func ownServiceCases() []Case {
	return []Case{
		{Row: 90, Kind: better, Weak: []string{"RS-W22"}, Theirs: "the Service is taken over",
			Given: "a Service of somebody else under the name of the serve Service", When: "all applications run", Then: "it stays as it is; Stalled with NameCollision; when it is gone, ours takes its place", How: "the owner counts", Run: takesOverNoService},
		{Row: 91, Kind: better, Weak: []string{"RS-W22"}, Theirs: "nothing happens until the next upgrade",
			Given: "a ready service with a serveService", When: "its annotations are changed", Then: "the Service follows, without an upgrade", How: "Services are kept as wanted all the time", Run: func(e *env) {
				note := func(text string) edit {
					return serveService(func(s *corev1.Service) { s.Annotations = map[string]string{text: "yes"} })
				}
				service := e.ready(note("one"))
				cluster := e.active(service)
				e.changeSeen(service, note("two"))
				e.soon(func() any { return e.service("llm-serve-svc").Annotations }).Should(And(HaveKey("two"), Not(HaveKey("one"))))
				e.Expect(e.leadsTo("llm-serve-svc")).To(Equal(cluster.Name))
				e.unchanged(service, cluster)
			}},
		{Row: 92, Kind: better, Weak: []string{"RS-W22"}, Theirs: "the port is dropped",
			Given: "serveService has a port of its own", When: "the service serves", Then: "the Service has it besides the port for Serve", How: "ports of the user are kept", Run: func(e *env) {
				e.ready(serveService(func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Name: "metrics", Port: 8080}} }))
				e.Expect(ports("llm-serve-svc", e)).To(Equal(map[string]int32{"serve": 8000, "metrics": 8080}))
			}},
		{Row: 93, Kind: better, Weak: []string{"RS-W23"}, Theirs: "the operator asks itself, and the head gets requests",
			Given: "a head without an address, something healthy on the operator's own address", When: "time passes", Then: "the head's label is not true", How: "Pods without an address are not asked", Run: asksNoPodWithoutAddress},
		{Row: 96, Kind: better, Weak: []string{"RS-W28"}, Theirs: "a Service of the cluster that selects heads without a proxy as well",
			Given: "annotation ray.io/enable-serve-service", When: "the service serves", Then: "every serve Service selects ray.io/serve=true; the RayCluster does not have the annotation", How: "annotations that steer a controller are not passed on",
			Run: servesOnlyWhatIsMarked, Elsewhere: "with the incremental strategy: L53"},
	}
}

func takesOverNoService(e *env) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "llm-serve-svc"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	e.make(theirs)
	version := theirs.ResourceVersion
	service := e.given()
	e.Expect(e.have(service, "Stalled", metav1.ConditionTrue, "NameCollision")).To(ContainSubstring("llm-serve-svc"))
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.ApplicationStatuses["app"].Status }).Should(Equal("RUNNING"))
	e.asked(e.ray(e.pending(service).Name), 2)
	e.rest()
	e.Expect(e.service("llm-serve-svc").ResourceVersion).To(Equal(version))
	e.Expect(e.Delete(e.t.Context(), theirs)).To(Succeed())
	e.serves(service)
}

func asksNoPodWithoutAddress(e *env) {
	e.noKubelet = true
	service := e.given(noWorkers)
	head := e.head(e.pending(service).Name)
	for _, host := range []string{":8000", "127.0.0.1:8000", "localhost:8000"} {
		e.Rays.AddProxy(host, e.nodes.Proxy(head))
	}
	e.SetPod(e.t, head, harness.Ready, func(pod *corev1.Pod) { pod.Status.PodIP, pod.Status.PodIPs = "", nil })
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.RayClusterStatus.State }).Should(Equal(rayv1.ClusterStateReady))
	e.rest()
	e.Expect(e.nodes.Proxy(head).Checks()).To(BeZero())
	e.Expect(e.head(head.Labels[rayv1.LabelCluster]).Labels).To(HaveKeyWithValue("ray.io/serve", "false"))
}

func servesOnlyWhatIsMarked(e *env) {
	service := e.ready(annotated("ray.io/enable-serve-service", "true"))
	cluster := e.active(service)
	e.Expect(cluster.Annotations).ToNot(HaveKey("ray.io/enable-serve-service"))
	e.onlyMarked()
}

// onlyMarked checks the selectors of all Services that lead to Serve.
func (e *env) onlyMarked() {
	e.t.Helper()
	list := &corev1.ServiceList{}
	e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns), client.HasLabels{rayv1.LabelServe})).To(Succeed())
	e.Expect(len(list.Items)).To(BeNumerically(">=", 2))
	for _, service := range list.Items {
		e.Expect(service.Spec.Selector).To(HaveKeyWithValue("ray.io/serve", "true"), service.Name)
	}
}

// timeCases are about limits that must not hit what serves, and deletes that take their time.
func timeCases() []Case {
	return []Case{
		{Row: 97, Kind: better, Weak: []string{"RS-W29"}, Theirs: "the cluster is deleted while both Services lead to it",
			Given: "a time-out annotation, a cluster that became active in time and has no endpoint yet", When: "the time is over", Then: "it stays, and serves when its endpoints come", How: "the limit ends when a cluster becomes active", Run: func(e *env) {
				e.noSlices = true
				service := e.given(mayInitialize("10m"))
				cluster := e.active(service)
				e.change(service, mayInitialize("1s"))
				e.asked(e.ray(cluster.Name), 3)
				e.rest()
				e.refresh(service)
				e.Expect(condition(service, "Ready").Reason).To(Equal("Initializing"))
				e.noSlices = false
				e.serves(service)
				e.Expect(e.active(service).UID).To(Equal(cluster.UID))
			}},
		{Row: 99, Kind: better, Weak: []string{"RS-W26"}, Theirs: "a delete and an event every 2 s",
			Given: "a cluster that takes its time to go", When: "the RayService is deleted", Then: "one delete request, one event", How: "what is being deleted is not deleted again", Run: func(e *env) {
				service := e.ready()
				cluster := e.active(service)
				e.keep(cluster)
				e.Expect(e.Delete(e.t.Context(), service.DeepCopy())).To(Succeed())
				deleted := time.Now()
				e.soon(func() any {
					e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
					return cluster.DeletionTimestamp != nil && time.Since(deleted) > 10*time.Second
				}).Should(BeTrue())
				e.Expect(e.operator.Traffic.Count("delete", "rayclusters")).To(Equal(1))
				e.Expect(e.times(service, "DeletedRayCluster")).To(Equal(1))
				e.release(cluster)
				e.gone(service)
			}},
	}
}
