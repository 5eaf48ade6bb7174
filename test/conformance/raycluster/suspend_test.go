package raycluster

import (
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func suspendCases() []Case {
	return []Case{
		{Row: 57, Kind: same, Given: "a ready cluster", When: "it is suspended", Then: "Suspending until the last Pod is gone, then Suspended; Services stay", Run: suspends},
		{Row: 58, Kind: same, Given: "Pods held by finalizers", When: "suspend is set and taken back", Then: "Suspending until the Pods are gone, then new Pods", Run: func(e *env) {
			cluster := e.ready()
			old := uids(e.pods())
			e.holdAll(e.pods())
			e.change(cluster, suspend(ptr.To(true)))
			e.Eventually(e.terminating).Should(HaveLen(3))
			e.change(cluster, suspend(ptr.To(false)))
			e.rest()
			e.Expect(e.Condition(e.t, cluster, rayv1.ConditionRayClusterSuspending).Status).To(Equal(metav1.ConditionTrue))
			e.Expect(e.pods()).To(HaveLen(3))
			e.releaseAll()
			e.BecomesReady(e.t, cluster)
			e.have(cluster, rayv1.ConditionRayClusterSuspending, metav1.ConditionFalse, "")
			e.have(cluster, rayv1.ConditionRayClusterSuspended, metav1.ConditionFalse, "")
			for _, uid := range uids(e.pods()) {
				e.Expect(old).ToNot(ContainElement(uid))
			}
		}},
		{Row: 59, Kind: same, Given: "a suspended cluster", When: "suspend becomes false", Then: "three new Pods; ready again", Run: resumes(ptr.To(false))},
		{Row: 60, Kind: better, Weak: []string{"W48"}, Theirs: "stays suspended", Given: "a suspended cluster", When: "suspend is removed", Then: "three new Pods; ready again",
			How: "absent means false", Run: resumes(nil)},
		{Row: 61, Kind: same, Given: "suspend true from the start", When: "the cluster is created", Then: "no Pod ever; Suspended", Run: func(e *env) {
			cluster := e.given(suspend(ptr.To(true)))
			e.have(cluster, rayv1.ConditionRayClusterSuspended, metav1.ConditionTrue, "")
			e.rest()
			e.Expect(e.operator.Traffic.Count("create", "pods")).To(BeZero())
			e.Expect(e.status(cluster).State).To(Equal(rayv1.ClusterStateSuspended))
		}},
		{Row: 62, Kind: same, Given: "a ready cluster", When: "the group is suspended", Then: "its Pods go, the head stays, desired leaves it out", Run: func(e *env) {
			cluster := e.ready()
			head := e.head()
			e.change(cluster, suspendGroup)
			e.Eventually(e.workers).Should(BeEmpty())
			e.Expect(e.head().UID).To(Equal(head.UID))
			e.Expect(e.status(cluster).DesiredWorkerReplicas).To(BeZero())
		}},
		{Row: 63, Kind: same, Given: "a ready cluster, autoscaler on", When: "the group is suspended", Then: "a Warning; Pods are left alone", Run: func(e *env) {
			cluster := e.ready(autoscaler)
			before := uids(e.pods())
			e.change(cluster, suspendGroup)
			e.said(cluster, corev1.EventTypeWarning, invalidSpec)
			e.rest()
			e.Expect(uids(e.pods())).To(Equal(before))
		}},
		{Row: 64, Kind: better, Weak: []string{"W51"}, Theirs: "one event in every pass", Given: "a suspended group", When: "ten passes go by", Then: "one event at most",
			How: "events are sent when something changes", Run: func(e *env) {
				cluster := e.ready()
				e.change(cluster, suspendGroup)
				e.Eventually(e.workers).Should(BeEmpty())
				for i := range 10 {
					e.Edit(e.t, cluster, annotated("pass", fmt.Sprint(i)))
					e.Consistently(e.workers, "300ms").Should(BeEmpty())
				}
				e.rest()
				told := 0
				for _, event := range e.Events(e.t, cluster) {
					if event.Reason == "DeletedWorkerPod" {
						told++
						e.Expect(event.Series).To(BeNil())
					}
				}
				e.Expect(told).To(Equal(1))
			}},
	}
}

func suspends(e *env) {
	cluster := e.ready()
	e.holdAll(e.pods())
	e.change(cluster, suspend(ptr.To(true)))
	e.have(cluster, rayv1.ConditionRayClusterSuspending, metav1.ConditionTrue, "")
	e.Eventually(e.terminating).Should(HaveLen(3))
	e.Expect(e.Condition(e.t, cluster, rayv1.ConditionRayClusterSuspended).Status).To(Equal(metav1.ConditionFalse))
	e.releaseAll()
	e.have(cluster, rayv1.ConditionRayClusterSuspended, metav1.ConditionTrue, "")
	e.have(cluster, rayv1.ConditionRayClusterSuspending, metav1.ConditionFalse, "")
	e.have(cluster, rayv1.ConditionRayClusterProvisioned, metav1.ConditionFalse, "")
	e.rest()
	status := e.status(cluster)
	e.Expect(status.State).To(Equal(rayv1.ClusterStateSuspended))
	e.Expect(status.Head.PodName).To(BeEmpty())
	e.Expect(e.pods()).To(BeEmpty())
	e.service("demo-head-svc")
}

func resumes(off *bool) func(*env) {
	return func(e *env) {
		cluster := e.ready()
		e.change(cluster, suspend(ptr.To(true)))
		e.have(cluster, rayv1.ConditionRayClusterSuspended, metav1.ConditionTrue, "")
		e.change(cluster, suspend(off))
		e.BecomesReady(e.t, cluster)
		e.Expect(e.pods()).To(HaveLen(3))
		e.have(cluster, rayv1.ConditionRayClusterProvisioned, metav1.ConditionTrue, "")
		e.have(cluster, rayv1.ConditionRayClusterSuspended, metav1.ConditionFalse, "")
	}
}
