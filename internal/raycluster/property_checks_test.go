package raycluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// checkDeletes fails when a healthy Pod goes without a reason.
func (h *history) checkDeletes(t *rapid.T, plan action.Plan) {
	surplus := map[string]map[*corev1.Pod]bool{}
	for _, a := range plan.Actions {
		remove, ok := a.(action.Delete)
		if !ok {
			continue
		}
		pod, ok := remove.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		if pod.DeletionTimestamp != nil {
			t.Fatalf("%s is deleted although it terminates already", slotName(pod))
		}
		if strings.HasPrefix(remove.Why, "the group has more replicas") {
			if surplus[groupOf(pod)] == nil {
				surplus[groupOf(pod)] = map[*corev1.Pod]bool{}
			}
			surplus[groupOf(pod)][pod] = true
			continue
		}
		if !h.mayGo(pod) {
			t.Fatalf("%s is healthy and goes because %s", slotName(pod), remove.Why)
		}
	}
	for group, gone := range surplus {
		h.checkSurplus(t, group, gone)
	}
}

// checkSurplus fails when so many Pods go as surplus that fewer replicas stay than are wanted.
func (h *history) checkSurplus(t *rapid.T, name string, gone map[*corev1.Pod]bool) {
	acted := h.acted()
	i := slices.IndexFunc(acted.WorkerGroupSpecs, func(g rayv1.WorkerGroupSpec) bool { return g.GroupName == name })
	group := &acted.WorkerGroupSpecs[i]
	if ptr.Deref(acted.EnableInTreeAutoscaling, false) {
		t.Fatalf("%d Pods of group %s go as surplus although the autoscaler names the victims", len(gone), name)
	}
	stay := slices.DeleteFunc(slices.Clone(h.Pods), func(pod *corev1.Pod) bool {
		return groupOf(pod) != name || pod.DeletionTimestamp != nil || gone[pod]
	})
	if have, want := units(stay, group), int(GroupReplicas(group)); have < want {
		t.Fatalf("%d Pods of group %s go as surplus and %d replicas stay, want %d to stay", len(gone), name, have, want)
	}
}

// units counts replicas: by index, and Pods without one in full sets.
func units(pods []*corev1.Pod, group *rayv1.WorkerGroupSpec) int {
	indices, strays := map[int]bool{}, 0
	for _, pod := range pods {
		if index := indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex); index >= 0 {
			indices[index] = true
		} else {
			strays++
		}
	}
	return len(indices) + strays/int(group.NumOfHosts)
}

// acted is the spec that counts: the present one, or the last one that made sense.
func (h *history) acted() *rayv1.RayClusterSpec {
	p := &planner{snapshot: h.Snapshot, cluster: h.Cluster, invalid: Validate(h.Cluster, DefaultSettings())}
	p.chooseSpec()
	return &p.cluster.Spec
}

// mayGo tells whether there is a reason, other than numbers, for a Pod to be deleted.
func (h *history) mayGo(pod *corev1.Pod) bool {
	acted := h.acted()
	i := slices.IndexFunc(acted.WorkerGroupSpecs, func(g rayv1.WorkerGroupSpec) bool { return g.GroupName == groupOf(pod) })
	head := groupOf(pod) == rayv1.HeadGroupName
	if nextSuspendPhase(h.Snapshot) != running || beyondRepair(pod) || !head && i < 0 {
		return true
	}
	p := &planner{snapshot: h.Snapshot, cluster: &rayv1.RayCluster{Spec: *acted}}
	if p.recreated()(pod) {
		return true
	}
	if head {
		return len(membersOf(h.Pods, rayv1.HeadGroupName).live) > 1
	}
	group := &acted.WorkerGroupSpecs[i]
	goes := func(pod *corev1.Pod) bool {
		return slices.Contains(group.ScaleStrategy.WorkersToDelete, pod.Name) || p.recreated()(pod)
	}
	return ptr.Deref(group.Suspend, false) || goes(pod) || misfit(pod, group) || h.samePlace(pod, group) || h.siblingGone(pod, group, goes)
}

// misfit tells whether the Pod was made for another number of hosts, or is one of too few for a replica.
func misfit(pod *corev1.Pod, group *rayv1.WorkerGroupSpec) bool {
	madeFor := cmp.Or(pod.Annotations[rayv1.AnnotationHosts], "1")
	stray := indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex) < 0
	return madeFor != fmt.Sprint(group.NumOfHosts) || stray && group.NumOfHosts > 1
}

// samePlace tells whether another Pod has the same replica and host index, or the same replica index in another shape.
func (h *history) samePlace(pod *corev1.Pod, group *rayv1.WorkerGroupSpec) bool {
	index := indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex)
	return slices.ContainsFunc(h.Pods, func(other *corev1.Pod) bool {
		same := other != pod && other.DeletionTimestamp == nil && groupOf(other) == groupOf(pod) &&
			index >= 0 && indexOf(other, rayv1.LabelWorkerGroupReplicaIndex) == index
		return same && (slotName(other) == slotName(pod) || misfit(other, group))
	})
}

// siblingGone tells whether another host of the Pod's replica is missing, terminating, ended, or goes for a reason.
func (h *history) siblingGone(pod *corev1.Pod, group *rayv1.WorkerGroupSpec, goes func(*corev1.Pod) bool) bool {
	healthy := map[int]bool{}
	for _, other := range h.Pods {
		same := groupOf(other) == groupOf(pod) && other.DeletionTimestamp == nil &&
			indexOf(other, rayv1.LabelWorkerGroupReplicaIndex) == indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex)
		if same && !beyondRepair(other) && !goes(other) && !misfit(other, group) {
			healthy[indexOf(other, rayv1.LabelReplicaHostIndex)] = true
		}
	}
	return len(healthy) < int(group.NumOfHosts)
}

// checkHead fails when a head is made beside another one, terminating or not.
func (h *history) checkHead(t *rapid.T, plan action.Plan) {
	for _, a := range plan.Actions {
		create, ok := a.(action.Create)
		if ok && create.Group == rayv1.HeadGroupName && membersOf(h.Pods, rayv1.HeadGroupName).count() > 0 {
			t.Fatalf("a second head is made")
		}
	}
}

// checkCounts fails when a pass that made Pods of a group leaves more than are wanted.
func (h *history) checkCounts(t *rapid.T, done []action.Action) {
	acted := h.acted()
	for _, a := range done {
		create, ok := a.(action.Create)
		if _, isPod := create.Object.(*corev1.Pod); !ok || !isPod || create.Group == rayv1.HeadGroupName {
			continue
		}
		i := slices.IndexFunc(acted.WorkerGroupSpecs, func(g rayv1.WorkerGroupSpec) bool { return g.GroupName == create.Group })
		if i < 0 {
			t.Fatalf("a Pod of group %s is made, which is not in the spec", create.Group)
		}
		group := &acted.WorkerGroupSpecs[i]
		if have, want := units(membersOf(h.Pods, create.Group).live, group), int(GroupReplicas(group)); have > want {
			t.Fatalf("group %s has %d replicas after a pass that made Pods, want at most %d", create.Group, have, want)
		}
	}
}

func (h *history) checkEnd(t *rapid.T) {
	spec := &h.Cluster.Spec
	want := map[string]int{}
	if !ptr.Deref(spec.Suspend, false) {
		want[rayv1.HeadGroupName] = 1
		for i := range spec.WorkerGroupSpecs {
			if n := int(podsOf(&spec.WorkerGroupSpecs[i], GroupReplicas(&spec.WorkerGroupSpecs[i]))); n > 0 {
				want[spec.WorkerGroupSpecs[i].GroupName] = n
			}
		}
	}
	got, places := map[string]int{}, map[string]bool{}
	for _, pod := range h.Pods {
		got[groupOf(pod)]++
		if indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex) >= 0 && places[slotName(pod)] {
			t.Fatalf("at rest two Pods have the place %s", slotName(pod))
		}
		places[slotName(pod)] = true
	}
	if ptr.Deref(spec.EnableInTreeAutoscaling, false) {
		// The autoscaler removes what is too many; the operator only makes what is missing.
		for group := range got {
			got[group] = min(got[group], want[group])
		}
		maps.DeleteFunc(got, func(_ string, count int) bool { return count == 0 })
		if !maps.Equal(got, want) {
			t.Fatalf("at rest there are too few: %v, want %v", got, want)
		}
		return
	}
	if !maps.Equal(got, want) {
		t.Fatalf("at rest there are %v, want %v", got, want)
	}
	if ready := h.Cluster.Status.State == rayv1.ClusterStateReady; ready == ptr.Deref(spec.Suspend, false) {
		t.Fatalf("at rest the state is %q with suspend %v", h.Cluster.Status.State, ptr.Deref(spec.Suspend, false))
	}
}
