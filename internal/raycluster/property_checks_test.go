package raycluster

import (
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
	stay := map[string]bool{}
	for _, pod := range h.Pods {
		if groupOf(pod) != name || pod.DeletionTimestamp != nil || gone[pod] {
			continue
		}
		unit := pod.Labels[rayv1.LabelWorkerGroupReplicaIndex]
		if group.NumOfHosts == 1 {
			unit = pod.Name
		}
		stay[unit] = true
	}
	if want := int(GroupReplicas(group)); len(stay) < want {
		t.Fatalf("%d Pods of group %s go as surplus and replicas %v stay, want %d to stay", len(gone), name, stay, want)
	}
}

// acted is the spec that counts: the present one, or the last one that made sense.
func (h *history) acted() *rayv1.RayClusterSpec {
	p := &planner{snapshot: h.Snapshot, cluster: h.Cluster, invalid: Validate(h.Cluster)}
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
	return ptr.Deref(group.Suspend, false) || goes(pod) || h.siblingGone(pod, group, goes)
}

// siblingGone tells whether another host of the Pod's replica is missing, terminating, ended, or goes for a reason, or
// whether another Pod has the same place.
func (h *history) siblingGone(pod *corev1.Pod, group *rayv1.WorkerGroupSpec, goes func(*corev1.Pod) bool) bool {
	if group.NumOfHosts == 1 {
		return false
	}
	healthy, inPlace := map[int]bool{}, 0
	for _, other := range h.Pods {
		same := groupOf(other) == groupOf(pod) && other.DeletionTimestamp == nil &&
			indexOf(other, rayv1.LabelWorkerGroupReplicaIndex) == indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex)
		if !same {
			continue
		}
		host := indexOf(other, rayv1.LabelReplicaHostIndex)
		if host == indexOf(pod, rayv1.LabelReplicaHostIndex) {
			inPlace++
		}
		if !beyondRepair(other) && !goes(other) {
			healthy[host] = true
		}
	}
	return len(healthy) < int(group.NumOfHosts) || inPlace > 1
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
		places := map[string]bool{}
		for _, pod := range membersOf(h.Pods, create.Group).live {
			places[slotName(pod)] = true
		}
		if want := int(podsOf(group, GroupReplicas(group))); len(places) > want {
			t.Fatalf("group %s has %d places filled after a pass that made Pods, want at most %d", create.Group, len(places), want)
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
	got := map[string]int{}
	for _, pod := range h.Pods {
		got[groupOf(pod)]++
	}
	if !maps.Equal(got, want) {
		t.Fatalf("at rest there are %v, want %v", got, want)
	}
	if ready := h.Cluster.Status.State == rayv1.ClusterStateReady; ready == ptr.Deref(spec.Suspend, false) {
		t.Fatalf("at rest the state is %q with suspend %v", h.Cluster.Status.State, ptr.Deref(spec.Suspend, false))
	}
}
