package raycluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// overdueAfter is how long past its grace period a Pod may go on terminating before its place is given to another one.
const overdueAfter = 30 * time.Second

func (p *planner) workers() {
	lostForGood := HeadStaysAway(p.cluster) && membersOf(p.snapshot.Pods, rayv1.HeadGroupName).count() == 0
	if lostForGood {
		return
	}
	for i := range p.cluster.Spec.WorkerGroupSpecs {
		p.group(&p.cluster.Spec.WorkerGroupSpecs[i])
	}
}

// groupPlan brings one worker group to the wanted number of replicas.
type groupPlan struct {
	*planner
	spec  *rayv1.WorkerGroupSpec
	hosts int
	replicaSet
	// going counts the replicas of several hosts that make room for others. Their indices are used again when they are
	// gone, so that no two Pods ever have the same index and host.
	going int
	// taken are the indices that no new replica may have.
	taken map[int]bool
}

func (p *planner) group(spec *rayv1.WorkerGroupSpec) {
	g := &groupPlan{planner: p, spec: spec, hosts: int(hostsOf(spec))}
	named, recreated := g.named(), p.recreated()
	g.replicaSet = replicasOf(p.podsOf(spec.GroupName), g.hosts, func(a, b *corev1.Pod) int {
		return cmp.Or(compareBool(named(a) || recreated(a), named(b) || recreated(b)), byWorth(a, b))
	})
	g.taken = g.takenBy()
	g.going = g.leavingInTime()
	for _, pod := range g.surplus {
		p.do(deleteWorker(pod, "another Pod of its group has its place"))
	}
	g.drop("the worker Pod has ended", func(pod *corev1.Pod) bool { return beyondRepair(pod) && p.ripe(pod) })
	g.drop("scaleStrategy.workersToDelete names it", named)
	g.drop("the cluster is recreated from a changed spec", recreated)
	g.drop("the token that it was given has been replaced", p.staleToken)
	g.dropTorn()
	want := int(GroupReplicas(spec))
	g.scaleDown(len(g.replicas) - want)
	if len(g.replicas) >= want {
		g.dropOneMisshapen()
	}
	if len(g.replicas) <= want {
		g.grow(want)
	}
}

// podsOf are the Pods of a group, terminating ones included.
func (p *planner) podsOf(group string) []*corev1.Pod {
	if p.byGroup == nil {
		p.byGroup = map[string][]*corev1.Pod{}
		for _, pod := range p.snapshot.Pods {
			p.byGroup[groupOf(pod)] = append(p.byGroup[groupOf(pod)], pod)
		}
	}
	return p.byGroup[group]
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

func (g *groupPlan) takenBy() map[int]bool {
	taken := map[int]bool{}
	for _, r := range g.replicas {
		taken[r.index] = true
	}
	for index := range g.leaving {
		taken[index] = true
	}
	return taken
}

// leavingInTime counts the terminating replicas that are worth waiting for, and asks to look again when they are not.
func (g *groupPlan) leavingInTime() int {
	if g.hosts == 1 {
		return 0
	}
	inTime := 0
	for _, pods := range g.leaving {
		left := time.Duration(0)
		for _, pod := range pods {
			left = max(left, pod.DeletionTimestamp.Add(overdueAfter).Sub(g.now))
		}
		if left > 0 {
			inTime++
			g.again(left)
		}
	}
	return inTime
}

// drop removes the replicas of which a Pod is hit. The hosts of a replica work together: none goes on without the others.
func (g *groupPlan) drop(why string, hit func(*corev1.Pod) bool) {
	g.dropIf(func(r replica) bool { return r.any(hit) }, func(pod *corev1.Pod) string {
		if hit(pod) {
			return why
		}
		return "another host of its replica goes: " + why
	})
}

func (g *groupPlan) dropIf(goes func(replica) bool, why func(*corev1.Pod) string) {
	g.replicas = slices.DeleteFunc(g.replicas, func(r replica) bool {
		if !goes(r) {
			return false
		}
		for _, pod := range r.pods {
			g.do(deleteWorker(pod, why(pod)))
		}
		if g.hosts > 1 {
			g.going++
		}
		return true
	})
}

func (g *groupPlan) named() func(*corev1.Pod) bool {
	names := map[string]bool{}
	ours := podPrefix(g.cluster.Name+"-"+g.spec.GroupName, "-worker-")
	for _, name := range g.spec.ScaleStrategy.WorkersToDelete {
		names[name] = true
		if !strings.HasPrefix(name, ours) {
			g.notes = append(g.notes, fmt.Sprintf("scaleStrategy.workersToDelete of group %s names %q, which is no Pod of that group",
				g.spec.GroupName, name))
		}
	}
	return func(pod *corev1.Pod) bool { return names[pod.Name] }
}

// dropTorn recycles replicas that worked and have lost a host. Those whose hosts were not all made yet are completed
// instead, in grow.
func (g *groupPlan) dropTorn() {
	_, refused := g.snapshot.Holds[g.spec.GroupName]
	// A new leader knows from the status alone that hosts were refused.
	refused = refused || conditionTrue(g.snapshot.Cluster, rayv1.ConditionReplicaFailure)
	worked := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }
	g.dropIf(func(r replica) bool {
		return len(r.missing(g.hosts)) > 0 && !r.misshapen(g.hosts) && (r.torn || !refused && r.any(worked))
	}, func(*corev1.Pod) string { return "its replica has lost a host" })
}

// dropOneMisshapen rebuilds replicas that were made for another numOfHosts, one at a time: the next one goes when the
// others work.
func (g *groupPlan) dropOneMisshapen() {
	next := -1
	for i, r := range g.replicas {
		switch {
		case r.misshapen(g.hosts):
			next = i
		case len(r.missing(g.hosts)) > 0 || r.any(func(pod *corev1.Pod) bool { return !podReady(pod) }):
			return
		}
	}
	if next < 0 || g.going > 0 {
		return
	}
	index := g.replicas[next].index
	g.dropIf(func(r replica) bool { return r.index == index },
		func(*corev1.Pod) string { return fmt.Sprintf("its replica is rebuilt for numOfHosts %d", g.hosts) })
}

// scaleDown removes the replicas that are worth least. With Ray's autoscaler on, only the autoscaler names victims.
func (g *groupPlan) scaleDown(surplus int) {
	suspended := ptr.Deref(g.spec.Suspend, false)
	if surplus <= 0 || autoscaling(g.cluster) && !suspended && !g.settings.RandomPodDelete {
		return
	}
	why := "the group has more replicas than wanted"
	if suspended {
		why = "the group is suspended"
	}
	ranked := slices.SortedStableFunc(slices.Values(g.replicas), func(a, b replica) int {
		if c := cmp.Compare(len(a.missing(g.hosts)), len(b.missing(g.hosts))); c != 0 {
			return c
		}
		return byWorth(leastOf(a), leastOf(b))
	})
	victims := map[int]bool{}
	for _, r := range ranked[len(ranked)-surplus:] {
		victims[r.index] = true
	}
	g.dropIf(func(r replica) bool { return victims[r.index] }, func(*corev1.Pod) string { return why })
}

// autoscaling tells whether Ray's autoscaler decides on the number of workers.
func autoscaling(cluster *rayv1.RayCluster) bool {
	return ptr.Deref(cluster.Spec.EnableInTreeAutoscaling, false)
}

// grow makes the Pods that are missing, as many as may be made now.
func (g *groupPlan) grow(want int) {
	if g.held(g.spec.GroupName) || g.awaitsToken() || g.oldHeadLeaves() {
		return
	}
	budget := g.budget()
	left := max(podsPerPass, g.hosts)
	for _, r := range g.replicas {
		if r.any(beyondRepair) || r.misshapen(g.hosts) {
			continue
		}
		for _, host := range r.missing(g.hosts) {
			if left--; left < 0 {
				g.again(nextStep)
				return
			}
			g.create(r.index, host, "the replica lacks this host")
		}
	}
	missing := want - len(g.replicas) - g.going
	for range min(missing, budget) {
		index := firstFree(g.taken)
		for host := range g.hosts {
			g.create(index, host, "the group has fewer replicas than wanted")
		}
	}
}

func (g *groupPlan) create(index, host int, why string) {
	name := g.spec.GroupName
	slot := PodSlot{Group: name, Replica: index, Host: host, Incarnation: g.nextIncarnation(name)}
	g.do(action.Create{
		Object: g.withToken(WorkerPod(g.cluster, g.spec, g.settings, slot)),
		Identity: []string{rayv1.LabelCluster, rayv1.LabelGroup, rayv1.LabelIncarnation,
			rayv1.LabelWorkerGroupReplicaIndex, rayv1.LabelReplicaHostIndex},
		Group:  name,
		Why:    why,
		Done:   action.Normal("CreatedWorkerPod", "Create", "created worker Pods of group "+name),
		Failed: action.Warning("FailedToCreateWorkerPod", "Create", "cannot create worker Pods of group "+name),
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
