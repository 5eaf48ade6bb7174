package rayservice

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func suspendCases() []Case {
	return []Case{
		{Row: 42, Kind: same, Given: "a ready service", When: "suspend is set", Then: "Suspending True; then its clusters and Services go; then Suspended True, every reason SuspendComplete, counters 0", Run: suspends},
		{Row: 43, Kind: same, Given: "a cluster that is kept by a finalizer", When: "suspend is set, taken back, set and taken back", Then: "Suspending stays True until the cluster is gone, then the service starts anew", Run: endsWhatItBegan},
		{Row: 44, Kind: same, Given: "a suspended service", When: "suspend is taken back", Then: "Suspended False with RayServiceResumed, and it serves again, on another cluster", Run: func(e *env) {
			service := e.ready()
			before := e.active(service)
			e.change(service, suspended(true))
			e.have(service, "Suspended", metav1.ConditionTrue, "SuspendComplete")
			seen := e.record()
			e.change(service, suspended(false))
			e.serves(service)
			e.have(service, "Suspended", metav1.ConditionFalse, "RayServiceResumed")
			e.Expect(seen.conditions("Ready")).To(ContainElement(is(metav1.ConditionFalse, "Initializing")))
			e.Expect(e.active(service).Name).ToNot(Equal(before.Name))
		}},
		{Row: 45, Kind: same, Given: "an upgrade", When: "suspend is set, the image changed again, suspend taken back", Then: "both clusters go; one of the newest spec serves", Run: func(e *env) {
			service, before, next := e.upgrading()
			e.change(service, suspended(true))
			e.have(service, "Suspended", metav1.ConditionTrue, "SuspendComplete")
			e.Expect(e.isGone(before)).To(BeTrue())
			e.Expect(e.isGone(next)).To(BeTrue())
			e.change(service, image("img:3"))
			e.change(service, suspended(false))
			cluster := e.pending(service)
			e.runs(cluster.Name)
			e.serves(service)
			e.Expect(e.clusters()).To(HaveLen(1))
			e.Expect(cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image).To(Equal("img:3"))
		}},
		{Row: 47, Kind: same, Given: "an upgrade", When: "the RayService is deleted", Then: "its clusters are deleted at once; it goes when they are gone", Run: deletesItsClustersFirst},
	}
}

func suspends(e *env) {
	service := e.ready()
	cluster := e.active(service)
	e.keep(cluster)
	seen := e.record()
	e.change(service, suspended(true))
	e.have(service, "Suspending", metav1.ConditionTrue, "SuspendInProgress")
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return cluster.DeletionTimestamp
	}).ShouldNot(BeNil())
	e.release(cluster)
	e.have(service, "Suspended", metav1.ConditionTrue, "SuspendComplete")
	e.Expect(e.isGone(cluster)).To(BeTrue())
	for _, absent := range []string{"llm-head-svc", "llm-serve-svc"} {
		e.Expect(apierrors.IsNotFound(e.read(&corev1.Service{}, absent))).To(BeTrue(), absent)
	}
	for _, kind := range []string{"Ready", "UpgradeInProgress", "RollbackInProgress", "Suspending"} {
		c := condition(service, kind)
		e.Expect(is(c.Status, c.Reason)).To(Equal(is(metav1.ConditionFalse, "SuspendComplete")), kind)
	}
	e.Expect(service.Status.NumServeEndpoints).To(BeZero())
	e.Expect(service.Status.ServiceStatus).To(Equal(rayv1.ServiceStatusNotRunning))
	e.Expect(equality.Semantic.DeepEqual(service.Status.ActiveServiceStatus, rayv1.RayServiceStatus{})).To(BeTrue())
	e.Expect(seen.conditions("Suspending")).To(Equal([]string{"/", is(metav1.ConditionTrue, "SuspendRequested"),
		is(metav1.ConditionTrue, "SuspendInProgress"), is(metav1.ConditionFalse, "SuspendComplete")}))
	e.rest()
}

func endsWhatItBegan(e *env) {
	service := e.ready()
	cluster := e.active(service)
	e.keep(cluster)
	for range 2 {
		e.change(service, suspended(true))
		e.have(service, "Suspending", metav1.ConditionTrue, "SuspendInProgress")
		e.changeSeen(service, suspended(false))
		e.have(service, "Suspending", metav1.ConditionTrue, "SuspendInProgress")
	}
	e.Expect(e.isGone(cluster)).To(BeFalse())
	e.Expect(e.clusters()).To(HaveLen(1))
	e.release(cluster)
	e.gone(cluster)
	e.serves(service)
	e.Expect(e.clusters()).To(HaveLen(1))
}

const kept = "test.heliostat.io/kept"

// keep has a cluster stay when it is deleted, until it is released.
func (e *env) keep(cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { c.Finalizers = append(c.Finalizers, kept) })
}

func (e *env) release(cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
	e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { c.Finalizers = nil })
}

func deletesItsClustersFirst(e *env) {
	service, before, next := e.upgrading()
	e.keep(before)
	e.Expect(e.Delete(e.t.Context(), service.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	e.gone(next)
	e.rest()
	e.Expect(e.read(before, before.Name)).To(Succeed())
	e.Expect(before.DeletionTimestamp).ToNot(BeNil())
	e.Expect(e.isGone(service)).To(BeFalse())
	e.release(before)
	e.gone(before)
	e.gone(service)
	e.Expect(e.clusters()).To(BeEmpty())
	e.soon(func() any { return apierrors.IsNotFound(e.read(&corev1.Service{}, "llm-serve-svc")) }).Should(BeTrue())
}
