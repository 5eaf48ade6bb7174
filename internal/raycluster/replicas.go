package raycluster

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// replica is the unit in which a worker group is counted: numOfHosts Pods that share a replica index.
type replica struct {
	index int
	// pods are those that are not terminating, at most one for each host.
	pods []*corev1.Pod
	// torn replicas have lost a host that is still terminating.
	torn bool
}

// replicaSet is what exists of a worker group.
type replicaSet struct {
	replicas []replica
	// surplus Pods claim a place that a worthier Pod has, or are too few for a replica of their own.
	surplus []*corev1.Pod
	// leaving are the indices that are held by nothing but terminating Pods.
	leaving map[int][]*corev1.Pod
}

// replicasOf sorts the Pods of a group into replicas. Pods without a replica index, which operators of other kinds made,
// are adopted: each full set of hosts becomes a replica at an index that is free. Of Pods that claim one place, the first
// by rank has it.
func replicasOf(pods []*corev1.Pod, hosts int, rank func(a, b *corev1.Pod) int) replicaSet {
	set := replicaSet{leaving: map[int][]*corev1.Pod{}}
	byIndex := map[int]*replica{}
	var strays []*corev1.Pod
	for _, pod := range slices.SortedFunc(slices.Values(pods), rank) {
		index := indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex)
		switch {
		case pod.DeletionTimestamp != nil:
			set.leaving[index] = append(set.leaving[index], pod)
		case index < 0:
			strays = append(strays, pod)
		case byIndex[index] == nil:
			byIndex[index] = &replica{index: index, pods: []*corev1.Pod{pod}}
		case hostTaken(byIndex[index].pods, pod) && hosts == 1 && incarnationOf(pod) == 0:
			// Other operators were not exact about indices, and count both.
			strays = append(strays, pod)
		case hostTaken(byIndex[index].pods, pod):
			set.surplus = append(set.surplus, pod)
		default:
			byIndex[index].pods = append(byIndex[index].pods, pod)
		}
	}
	taken := set.takenWith(byIndex)
	for len(strays) >= hosts {
		index := firstFree(taken)
		byIndex[index] = &replica{index: index, pods: strays[:hosts]}
		strays = strays[hosts:]
	}
	set.surplus = append(set.surplus, strays...)
	for index, r := range byIndex {
		if _, torn := set.leaving[index]; torn {
			r.torn = true
			delete(set.leaving, index)
		}
		slices.SortFunc(r.pods, byHost)
		set.replicas = append(set.replicas, *r)
	}
	slices.SortFunc(set.replicas, func(a, b replica) int { return cmp.Compare(a.index, b.index) })
	return set
}

func (s replicaSet) takenWith(byIndex map[int]*replica) map[int]bool {
	taken := map[int]bool{}
	for index := range byIndex {
		taken[index] = true
	}
	for index := range s.leaving {
		taken[index] = true
	}
	return taken
}

func byHost(a, b *corev1.Pod) int {
	if c := cmp.Compare(indexOf(a, rayv1.LabelReplicaHostIndex), indexOf(b, rayv1.LabelReplicaHostIndex)); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

func hostTaken(pods []*corev1.Pod, pod *corev1.Pod) bool {
	host := indexOf(pod, rayv1.LabelReplicaHostIndex)
	return slices.ContainsFunc(pods, func(other *corev1.Pod) bool {
		return indexOf(other, rayv1.LabelReplicaHostIndex) == host
	})
}

// firstFree takes the smallest index that is not taken yet.
func firstFree(taken map[int]bool) int {
	for index := 0; ; index++ {
		if !taken[index] {
			taken[index] = true
			return index
		}
	}
}

// adopted tells whether the replica consists of Pods without indices.
func (r replica) adopted() bool {
	return indexOf(r.pods[0], rayv1.LabelWorkerGroupReplicaIndex) < 0
}

// missing are the hosts that the replica lacks.
func (r replica) missing(hosts int) []int {
	if hosts == 1 || r.adopted() {
		return nil
	}
	var missing []int
	for host := range hosts {
		present := slices.ContainsFunc(r.pods, func(pod *corev1.Pod) bool {
			return indexOf(pod, rayv1.LabelReplicaHostIndex) == host
		})
		if !present {
			missing = append(missing, host)
		}
	}
	return missing
}

// misshapen tells whether the replica was made for another number of hosts.
func (r replica) misshapen(hosts int) bool {
	if r.adopted() {
		return false
	}
	exact, highest := false, -1
	for _, pod := range r.pods {
		host := indexOf(pod, rayv1.LabelReplicaHostIndex)
		madeFor, err := strconv.Atoi(pod.Annotations[rayv1.AnnotationHosts])
		if err == nil && madeFor != hosts || host >= hosts || host < 0 && hosts > 1 {
			return true
		}
		exact, highest = exact || err == nil, max(highest, host)
	}
	// Without the annotation, which others do not write, the hosts that are there tell.
	return hosts > 1 && !exact && highest < hosts-1 && len(r.pods) == highest+1
}

func (r replica) any(is func(*corev1.Pod) bool) bool { return slices.ContainsFunc(r.pods, is) }

// leastOf is the Pod that a replica is worth no more than.
func leastOf(r replica) *corev1.Pod {
	return slices.MaxFunc(r.pods, byWorth)
}
