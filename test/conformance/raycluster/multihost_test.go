package raycluster

import (
	"fmt"
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// wholeReplicas are the slots of replicas of four hosts with these indices.
func wholeReplicas(indices ...int) []string {
	var list []string
	for _, index := range indices {
		for host := range 4 {
			list = append(list, fmt.Sprintf("%d/%d", index, host))
		}
	}
	return list
}

// replicaOf are the Pods that share a replica with the given one.
func replicaOf(pod corev1.Pod, pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(other corev1.Pod) bool {
		return other.Labels[rayv1.LabelWorkerGroupReplicaName] != pod.Labels[rayv1.LabelWorkerGroupReplicaName]
	})
}

func multiHostCases() []Case {
	return []Case{
		{Row: 46, Kind: same, Given: "two replicas of four hosts", When: "the cluster is created", Then: "eight workers in two whole replicas, a headless Service, counts in Pods", Run: func(e *env) {
			cluster := e.given(hosts(4))
			workers := e.haveWorkers(8)
			e.Expect(slots(workers)).To(ConsistOf(wholeReplicas(0, 1)))
			names := labelsOf(workers, rayv1.LabelWorkerGroupReplicaName)
			slices.Sort(names)
			e.Expect(slices.Compact(names)).To(And(HaveLen(2), HaveEach(HavePrefix("a-"))))
			e.Expect(replicaOf(workers[0], workers)).To(HaveLen(4))
			e.service("demo-headless")
			e.rest()
			status := e.status(cluster)
			e.Expect([]int32{status.DesiredWorkerReplicas, status.MaxWorkerReplicas}).To(Equal([]int32{8, 16}))
		}},
		{Row: 47, Kind: same, Given: "two ready replicas of four hosts", When: "replicas goes from 2 to 1", Then: "one whole replica goes", Run: func(e *env) {
			cluster := e.ready(hosts(4))
			e.change(cluster, replicas(1))
			workers := e.haveWorkers(4)
			e.Expect(replicaOf(workers[0], workers)).To(HaveLen(4))
		}},
		{Row: 48, Kind: same, Given: "two ready replicas of four hosts", When: "one worker is deleted", Then: "its replica is made anew, the other one stays", Run: func(e *env) {
			e.ready(hosts(4))
			before := e.workers()
			lost := before[0]
			e.Kill(e.t, &lost)
			e.replicaIsRenewed(lost, before)
		}},
		{Row: 49, Kind: same, Given: "two ready replicas of four hosts", When: "one worker fails", Then: "its replica is made anew, the other one stays", Run: func(e *env) {
			e.ready(hosts(4))
			before := e.workers()
			e.SetPod(e.t, &before[0], harness.Ended(corev1.PodFailed, ""))
			e.replicaIsRenewed(before[0], before)
		}},
		{Row: 50, Kind: same, Given: "two ready replicas of four hosts, autoscaler on", When: "replicas goes to 1 and one host is named", Then: "its whole replica goes", Run: func(e *env) {
			cluster := e.ready(hosts(4), autoscaler)
			before := e.workers()
			victims := uids(replicaOf(before[0], before))
			e.change(cluster, func(c *rayv1.RayCluster) {
				replicas(1)(c)
				workersToDelete(before[0].Name)(c)
			})
			workers := e.haveWorkers(4)
			for _, uid := range uids(workers) {
				e.Expect(victims).ToNot(ContainElement(uid))
			}
		}},
	}
}

// replicaIsRenewed waits until the replica of the lost Pod has been replaced as a whole and all others stand.
func (e *env) replicaIsRenewed(lost corev1.Pod, before []corev1.Pod) {
	e.t.Helper()
	gone := uids(replicaOf(lost, before))
	e.Eventually(func(g Gomega) {
		now := e.aliveWorkers()
		g.Expect(slots(now)).To(ConsistOf(wholeReplicas(0, 1)))
		for _, uid := range gone {
			g.Expect(uids(now)).ToNot(ContainElement(uid))
		}
		for _, pod := range before {
			if !slices.Contains(gone, string(pod.UID)) {
				g.Expect(uids(now)).To(ContainElement(string(pod.UID)))
			}
		}
	}).Should(Succeed())
}

func multiHostTroubleCases() []Case {
	return []Case{
		{Row: 51, Kind: better, Weak: []string{"W24"}, Theirs: "an incomplete replica is deleted and made again without end", Given: "a replica of four hosts, room for three Pods", When: "time passes", Then: "three Pods are made and none deleted; ReplicaFailure has the quota's text",
			How: "what a replica lacks is added; what never ran is not torn down", Run: noChurn},
		{Row: 52, Kind: better, Weak: []string{"W25"}, Theirs: "such Pods are not seen: a second set is made and the first one stays", Given: "four workers of the group without replica labels", When: "the group has one replica of four hosts", Then: "four workers in the end, none left over",
			How: "every Pod of the group is counted, labelled or not", Run: unlabelledWorkers},
		{Row: 53, Kind: better, Weak: []string{"W27"}, Theirs: "the index is used again while its old Pods still terminate", Given: "two replicas of four hosts, all Pods held by finalizers", When: "one worker fails", Then: "no two Pods have the same replica and host index",
			How: "an index is free when the last Pod that had it is gone", Run: func(e *env) {
				e.ready(hosts(4))
				e.holdAll(e.workers())
				worker := e.workers()[0]
				e.SetPod(e.t, &worker, harness.Ended(corev1.PodFailed, ""))
				e.Eventually(e.terminating).Should(HaveLen(4))
				e.rest()
				taken := slots(e.workers())
				slices.Sort(taken)
				e.Expect(slices.Compact(slices.Clone(taken))).To(HaveLen(len(taken)), "%v", taken)
			}},
		{Row: 54, Kind: better, Weak: []string{"W22"}, Theirs: "0 deletes all workers, -1 makes the operator panic", Given: "numOfHosts 0 or -1", When: "the cluster is created", Then: "it is refused",
			How: "the schema's minimum is 1", Run: func(e *env) {
				for _, hosts := range []int64{0, -1} {
					object := e.raw(harness.NewCluster(e.ns, name))
					e.setInGroup(object, "numOfHosts", hosts)
					e.refused(object, "numOfHosts")
				}
			}},
	}
}

// setInGroup sets a field of the first group.
func (e *env) setInGroup(object *unstructured.Unstructured, field string, value any) {
	e.t.Helper()
	groups, _, err := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	e.Expect(err).ToNot(HaveOccurred())
	groups[0].(map[string]any)[field] = value
	e.Expect(unstructured.SetNestedSlice(object.Object, groups, "spec", "workerGroupSpecs")).To(Succeed())
}

func noChurn(e *env) {
	cluster := e.ready(hosts(4), replicas(0))
	e.LimitPods(e.t, e.ns, 3)
	made, deleted := e.operator.Traffic.Count("create", "pods"), e.operator.Traffic.Count("delete", "pods")
	e.change(cluster, replicas(1))
	e.Expect(e.have(cluster, rayv1.ConditionReplicaFailure, metav1.ConditionTrue, "FailedCreateWorkerPod")).To(ContainSubstring("exceeded quota"))
	for i := range 20 { // each asks for one pass
		e.Edit(e.t, cluster, annotated("pass", fmt.Sprint(i)))
		e.Consistently(func() int { return e.operator.Traffic.Count("delete", "pods") }, "500ms").Should(Equal(deleted))
	}
	e.Expect(e.operator.Traffic.Count("create", "pods") - made).To(Equal(3))
	e.Expect(e.aliveWorkers()).To(HaveLen(3))
}

func unlabelledWorkers(e *env) {
	cluster := e.stored(hosts(4), replicas(1))
	for i := range 4 {
		pod := &corev1.Pod{Spec: harness.PodTemplate("ray-worker").Spec}
		pod.Namespace, pod.Name = e.ns, fmt.Sprintf("demo-a-worker-old-%d", i)
		pod.Labels = map[string]string{rayv1.LabelCluster: name, rayv1.LabelNodeType: rayv1.NodeTypeWorker, rayv1.LabelGroup: "a", rayv1.LabelIsRayNode: rayv1.IsRayNodeYes}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: rayv1.KindRayCluster, Name: name, UID: cluster.UID,
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}
		e.make(pod)
		e.SetPod(e.t, pod, harness.Ready)
	}
	e.start()
	e.BecomesReady(e.t, cluster)
	e.rest()
	e.Expect(e.workers()).To(HaveLen(4))
	e.Expect(e.status(cluster).ReadyWorkerReplicas).To(Equal(int32(4)))
}

func isGone(err error) bool { return apierrors.IsNotFound(err) }
