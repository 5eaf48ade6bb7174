package raycluster

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

func (p *planner) workers() {
	lostForGood := p.headStaysAway() && membersOf(p.snapshot.Pods, rayv1.HeadGroupName).count() == 0
	if lostForGood {
		return
	}
	for i := range p.cluster.Spec.WorkerGroupSpecs {
		p.group(&p.cluster.Spec.WorkerGroupSpecs[i])
	}
}

// group brings the Pods of one worker group to the wanted number.
func (p *planner) group(group *rayv1.WorkerGroupSpec) {
	have := membersOf(p.snapshot.Pods, group.GroupName)
	hosts := max(int(group.NumOfHosts), 1)
	ripe := p.ripe(have.doomed)
	for _, pod := range ripe {
		p.do(deleteWorker(pod, "the worker Pod has ended"))
	}
	live, named := withoutNamed(have.live, group.ScaleStrategy.WorkersToDelete)
	for _, pod := range named {
		p.do(deleteWorker(pod, "scaleStrategy.workersToDelete names it"))
	}
	if hosts > 1 {
		// The hosts of a replica work together: none goes on without the others.
		var others []*corev1.Pod
		live, others = withoutReplicasOf(live, slices.Concat(ripe, named))
		for _, pod := range others {
			p.do(deleteWorker(pod, "another host of its replica goes"))
		}
	}

	taken := map[int]bool{}
	for _, pod := range p.snapshot.Pods {
		if groupOf(pod) == group.GroupName && !slices.Contains(live, pod) {
			taken[indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex)] = true
		}
	}
	replicas := replicasOf(live, hosts, taken)
	want := int(GroupReplicas(group))
	if len(replicas) > want {
		p.scaleDown(group, replicas, len(replicas)-want)
		return
	}
	p.fill(group, replicas, hosts)
	unripe := len(have.doomed) - len(ripe)
	p.scaleUp(group, want-len(replicas)-(unripe+hosts-1)/hosts, hosts, taken)
}

// ripe returns the ended Pods that may be replaced now, and asks to look again when the next one may.
func (p *planner) ripe(doomed []*corev1.Pod) []*corev1.Pod {
	var ripe []*corev1.Pod
	for _, pod := range doomed {
		left := leastLife - p.now.Sub(pod.CreationTimestamp.Time)
		if left > 0 {
			p.again(left)
			continue
		}
		ripe = append(ripe, pod)
	}
	return ripe
}

// withoutNamed takes the Pods of those names out.
func withoutNamed(pods []*corev1.Pod, names []string) (rest, named []*corev1.Pod) {
	for _, pod := range pods {
		if slices.Contains(names, pod.Name) {
			named = append(named, pod)
		} else {
			rest = append(rest, pod)
		}
	}
	return rest, named
}

// withoutReplicasOf takes the Pods out that share a replica with one of the victims.
func withoutReplicasOf(pods, victims []*corev1.Pod) (rest, others []*corev1.Pod) {
	gone := map[int]bool{}
	for _, victim := range victims {
		gone[indexOf(victim, rayv1.LabelWorkerGroupReplicaIndex)] = true
	}
	for _, pod := range pods {
		if gone[indexOf(pod, rayv1.LabelWorkerGroupReplicaIndex)] {
			others = append(others, pod)
		} else {
			rest = append(rest, pod)
		}
	}
	return rest, others
}

// scaleDown removes the replicas that are worth least. With Ray's autoscaler on, only the autoscaler names victims.
func (p *planner) scaleDown(group *rayv1.WorkerGroupSpec, replicas []replica, surplus int) {
	if ptr.Deref(p.cluster.Spec.EnableInTreeAutoscaling, false) && !ptr.Deref(group.Suspend, false) && !p.settings.RandomPodDelete {
		return
	}
	slices.SortStableFunc(replicas, func(a, b replica) int { return byWorth(leastOf(a), leastOf(b)) })
	for _, r := range replicas[len(replicas)-surplus:] {
		for _, pod := range r.pods {
			p.do(deleteWorker(pod, "the group has more replicas than wanted"))
		}
	}
}

// leastOf is the Pod that a replica is worth no more than.
func leastOf(r replica) *corev1.Pod {
	return slices.MaxFunc(r.pods, byWorth)
}

// fill adds the hosts that an existing replica lacks.
func (p *planner) fill(group *rayv1.WorkerGroupSpec, replicas []replica, hosts int) {
	if hosts == 1 {
		return
	}
	for _, r := range replicas {
		for host := range hosts {
			present := slices.ContainsFunc(r.pods, func(pod *corev1.Pod) bool {
				return indexOf(pod, rayv1.LabelReplicaHostIndex) == host
			})
			if !present {
				p.createWorker(group, r.index, host, "the replica lacks this host")
			}
		}
	}
}

func (p *planner) scaleUp(group *rayv1.WorkerGroupSpec, missing, hosts int, taken map[int]bool) {
	for range max(missing, 0) {
		index := firstFree(taken)
		for host := range hosts {
			p.createWorker(group, index, host, "the group has fewer replicas than wanted")
		}
	}
}

func (p *planner) createWorker(group *rayv1.WorkerGroupSpec, index, host int, why string) {
	if p.held(group.GroupName) {
		return
	}
	slot := PodSlot{Group: group.GroupName, Replica: index, Host: host, Incarnation: p.nextIncarnation(group.GroupName)}
	p.do(action.Create{
		Object: WorkerPod(p.cluster, group, p.settings, slot),
		Identity: []string{rayv1.LabelCluster, rayv1.LabelGroup, rayv1.LabelIncarnation,
			rayv1.LabelWorkerGroupReplicaIndex, rayv1.LabelReplicaHostIndex},
		Group:  group.GroupName,
		Why:    why,
		Done:   action.Normal("CreatedWorkerPod", "Create", fmt.Sprintf("created worker Pods of group %s", group.GroupName)),
		Failed: action.Warning("FailedToCreateWorkerPod", "Create", fmt.Sprintf("cannot create worker Pods of group %s", group.GroupName)),
	})
}

func deleteWorker(pod *corev1.Pod, why string) action.Delete {
	return action.Delete{
		Object: pod, Why: why,
		Done:   action.Normal("DeletedWorkerPod", "Delete", "deleted worker Pods: "+why),
		Failed: action.Warning("FailedToDeleteWorkerPod", "Delete", "cannot delete the worker Pod"),
	}
}

// removedGroups removes the Pods of groups that the spec does not have any more.
func (p *planner) removedGroups() {
	known := map[string]bool{rayv1.HeadGroupName: true}
	for _, group := range p.cluster.Spec.WorkerGroupSpecs {
		known[group.GroupName] = true
	}
	for _, pod := range p.snapshot.Pods {
		isWorker := pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeWorker
		if isWorker && !known[groupOf(pod)] && pod.DeletionTimestamp == nil {
			p.do(deleteWorker(pod, "its group is not in the spec any more"))
		}
	}
}

// removeAllPods empties a cluster that is being suspended.
func (p *planner) removeAllPods() {
	for _, pod := range p.snapshot.Pods {
		if pod.DeletionTimestamp == nil {
			p.do(action.Delete{
				Object: pod, Why: "the cluster is suspended",
				Done:   action.Normal("DeletedPod", "Delete", "deleted Pods to suspend the cluster"),
				Failed: action.Warning("FailedToDeletePodCollection", "Delete", "cannot delete a Pod to suspend the cluster"),
			})
		}
	}
}
