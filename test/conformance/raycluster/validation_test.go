package raycluster

import (
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func managedBy(who string) edit { return func(c *rayv1.RayCluster) { c.Spec.ManagedBy = ptr.To(who) } }

func groupName(name string) edit {
	return func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].GroupName = name }
}

func validationCases() []Case {
	return []Case{
		{Row: 55, Kind: better, Weak: []string{"W21"}, Theirs: "accepted; such groups fight over Pods, or delete the head", Given: "two groups of one name, a group called headgroup, or one without a name", When: "the cluster is created", Then: "it is refused",
			How: "rules in the CRD; an object from before them gets a Warning and no Pods", Run: func(e *env) {
				e.refusedOrSaid(e.raw(harness.NewCluster(e.ns, name, otherGroup("a", 1))), "every groupName must be different", invalidSpec, "spec.workerGroupSpecs[1].groupName")
				e.refusedOrSaid(e.raw(harness.NewCluster(e.ns, name, groupName("headgroup"))), "headgroup", invalidSpec, "the head's own group")
				e.refusedOrSaid(e.raw(harness.NewCluster(e.ns, name, groupName(""))), "groupName", invalidSpec, "spec.workerGroupSpecs[0].groupName")
			}},
		{Row: 56, Kind: better, Weak: []string{"W23"}, Theirs: "the Pods run on for ever", Given: "two ready groups", When: "one is removed from the spec", Then: "its Pods go, and the cluster can be ready",
			How: "Pods of a group that the spec does not name are surplus", Run: func(e *env) {
				cluster := e.ready(otherGroup("b", 2))
				before := uids(e.workers("a"))
				e.change(cluster, func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = c.Spec.WorkerGroupSpecs[:1] })
				e.Eventually(func() []corev1.Pod { return e.workers("b") }).Should(BeEmpty())
				e.BecomesReady(e.t, cluster)
				e.Expect(uids(e.workers())).To(ConsistOf(before))
			}},
		{Row: 90, Kind: same, Given: "managedBy MultiKueue", When: "the cluster is created", Then: "nothing is made or said; the field cannot be changed", Run: func(e *env) {
			cluster := e.given(managedBy(rayv1.ManagedByMultiKueue))
			other := harness.NewCluster(e.ns, "other")
			e.make(other)
			e.BecomesReady(e.t, other) // so that the first one had its turn
			e.rest()
			e.Expect(e.Pods(e.t, e.ns, client.MatchingLabels{rayv1.LabelCluster: name})).To(BeEmpty())
			e.Expect(isGone(e.read(&corev1.Service{}, "demo-head-svc"))).To(BeTrue())
			e.Expect(e.status(cluster)).To(Equal(rayv1.RayClusterStatus{}))
			base := cluster.DeepCopy()
			cluster.Spec.ManagedBy = ptr.To(rayv1.ManagedByOperator)
			e.Expect(apierrors.IsInvalid(e.Patch(e.t.Context(), cluster, client.MergeFrom(base)))).To(BeTrue())
		}},
		{Row: 91, Kind: same, Given: "managedBy someone unknown", When: "the cluster is created", Then: "it is refused", Run: func(e *env) {
			e.refused(harness.NewCluster(e.ns, name, managedBy("me")), "managedBy is me")
		}},
		{Row: 99, Kind: same, Given: "a name of 54 characters", When: "the cluster is created", Then: "Warning InvalidRayClusterMetadata, no objects",
			How: "the API server refuses it already, without a webhook", Run: func(e *env) {
				e.refusedOrSaid(e.raw(harness.NewCluster(e.ns, strings.Repeat("a", 54))), "54 characters", invalidMetadata, "no more than 53 characters")
				e.Expect(e.listed(&corev1.ServiceList{})).To(BeEmpty())
			}},
		{Row: 101, Kind: same, Given: "minReplicas 3, maxReplicas 2", When: "the cluster is created", Then: "Warning InvalidRayClusterSpec, no Pods",
			How: "the API server refuses it already", Run: func(e *env) {
				e.refusedOrSaid(e.raw(harness.NewCluster(e.ns, name, bounds(3, 2))), "minReplicas is 3", invalidSpec, "spec.workerGroupSpecs[0].minReplicas")
			}},
		{Row: 102, Kind: same, Given: "an invalid spec", When: "it is corrected", Then: "the cluster is made", Run: func(e *env) {
			cluster := e.given(contradiction)
			e.isInvalid(cluster, invalidSpec, "num-cpus")
			e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Resources = nil })
			e.BecomesReady(e.t, cluster)
			e.have(cluster, rayv1.ConditionValid, metav1.ConditionTrue, "")
		}},
		{Row: 103, Kind: better, Weak: []string{"W34"}, Theirs: "nothing is healed until the spec is corrected", Given: "a ready cluster, then an invalid edit", When: "a worker dies", Then: "it is replaced; a condition says that the spec is invalid",
			How: "the cluster is kept as the last valid spec wants it", Run: func(e *env) {
				cluster := e.ready()
				e.change(cluster, contradiction)
				e.have(cluster, rayv1.ConditionValid, metav1.ConditionFalse, "")
				lost := e.workers()[0]
				e.Kill(e.t, &lost)
				e.isReplaced(lost)
				e.Expect(e.Condition(e.t, cluster, rayv1.ConditionValid).Status).To(Equal(metav1.ConditionFalse))
			}},
	}
}
