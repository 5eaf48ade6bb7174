package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// Plan decides what to do for a RayCluster. It is a pure function of its arguments.
func Plan(s Snapshot, settings Settings, now time.Time) action.Plan {
	if s.Cluster == nil || s.Cluster.DeletionTimestamp != nil || !ours(s.Cluster.Spec.ManagedBy) {
		return action.Plan{}
	}
	p := &planner{snapshot: s, settings: settings, now: now, incarnations: maps.Clone(s.Cluster.Status.Incarnations)}
	p.invalid = Validate(s.Cluster)
	p.suspend = nextSuspendPhase(s)
	switch {
	case len(p.invalid) > 0:
		// Nothing is made or removed on the word of a spec that makes no sense.
	case p.suspend != running:
		p.services()
		p.removeAllPods()
	default:
		p.services()
		p.head()
		p.workers()
		p.removedGroups()
	}
	p.plan.Status, p.plan.Events = p.status()
	p.lookAgain()
	return p.plan
}

// ours tells whether an object is ours to act upon by its spec.managedBy.
func ours(managedBy *string) bool {
	return managedBy == nil || *managedBy == rayv1.ManagedByOperator
}

const (
	// nextStep is the wait before a step that nothing stands in the way of.
	nextStep = 50 * time.Millisecond
	// leastLife is how old a Pod that has ended must be before it is replaced, so that Pods which end at once do not
	// come and go as fast as the API server can take them.
	leastLife = 5 * time.Second
)

type planner struct {
	snapshot     Snapshot
	settings     Settings
	now          time.Time
	invalid      []error
	suspend      suspendPhase
	incarnations map[string]int64
	missingPort  error
	plan         action.Plan
}

func (p *planner) do(a action.Action) { p.plan.Actions = append(p.plan.Actions, a) }

// held tells whether creates of a group wait after they were refused.
func (p *planner) held(group string) bool {
	return p.now.Before(p.snapshot.Holds[group].Until)
}

// lookAgain asks for a pass when the first held group may try again, and for one at once when the suspend that was just
// recorded is not the last step: the status write itself wakes nobody.
func (p *planner) lookAgain() {
	wanted := ptr.Deref(p.snapshot.Cluster.Spec.Suspend, false)
	empty := len(p.snapshot.Pods) == 0
	if p.suspend == suspended && !wanted || p.suspend == suspending && empty {
		p.again(nextStep)
	}
	for _, hold := range p.snapshot.Holds {
		p.again(hold.Until.Sub(p.now))
	}
}

func (p *planner) again(after time.Duration) {
	p.plan.LookAgain = action.Soonest(p.plan.LookAgain, after)
}

// nextIncarnation hands out a number that no Pod of the group ever had. It is recorded by the status write of this
// plan, which comes before the create, so that the next leader never hands it out again.
func (p *planner) nextIncarnation(group string) int64 {
	highest := p.incarnations[group]
	for _, pod := range p.snapshot.Pods {
		if groupOf(pod) == group {
			highest = max(highest, incarnationOf(pod))
		}
	}
	if p.incarnations == nil {
		p.incarnations = map[string]int64{}
	}
	p.incarnations[group] = highest + 1
	return highest + 1
}

// services keeps the Services that the cluster wants as wanted, and removes those that it does not want any more.
func (p *planner) services() {
	cluster := p.snapshot.Cluster
	head := HeadService(cluster, p.settings)
	FollowHead(head, p.liveHead())
	wanted := []*corev1.Service{head, HeadlessWorkerService(cluster)}
	serve, err := ServeService(cluster, p.settings)
	p.missingPort = err
	wanted = slices.DeleteFunc(append(wanted, serve), func(s *corev1.Service) bool { return s == nil })
	for _, service := range wanted {
		p.applyService(service)
	}
	for _, service := range p.snapshot.Owned {
		isWanted := slices.ContainsFunc(wanted, func(w *corev1.Service) bool { return w.Name == service.Name })
		if !isWanted && service.DeletionTimestamp == nil {
			p.do(action.Delete{Object: service, Why: "the cluster does not want this Service any more"})
		}
	}
}

func (p *planner) applyService(service *corev1.Service) {
	a := action.Apply{
		Object: service,
		Failed: action.Warning("FailedToCreateService", "Create", "cannot make the Service"),
	}
	if live := p.snapshot.Named[service.Name]; live != nil {
		if action.ServiceAsWanted(live, service) {
			return
		}
		a.Observed, a.Why = live, "the Service differs from what the cluster wants"
		p.do(a)
		return
	}
	a.Why = "the cluster needs this Service"
	a.Done = action.Normal("CreatedService", "Create", "created Service")
	p.do(a)
}

// head keeps exactly one head. A terminating head counts as alive until it is gone: two heads would be two clusters.
func (p *planner) head() {
	heads := membersOf(p.snapshot.Pods, rayv1.HeadGroupName)
	for _, pod := range p.ripe(heads.doomed) {
		p.do(deleteHead(pod, "the head Pod has ended"))
	}
	if len(heads.live) > 1 {
		slices.SortFunc(heads.live, byWorth)
		for _, pod := range heads.live[1:] {
			p.do(deleteHead(pod, "another head Pod of this cluster is worth more"))
		}
	}
	if heads.count() > 0 || p.headStaysAway() || p.held(rayv1.HeadGroupName) {
		return
	}
	p.do(action.Create{
		Object:   HeadPod(p.snapshot.Cluster, p.settings, p.nextIncarnation(rayv1.HeadGroupName)),
		Identity: []string{rayv1.LabelCluster, rayv1.LabelNodeType, rayv1.LabelIncarnation},
		Group:    rayv1.HeadGroupName,
		Why:      "the cluster has no head Pod",
		Done:     action.Normal("CreatedHeadPod", "Create", "created head Pod"),
		Failed:   action.Warning("FailedToCreateHeadPod", "Create", "cannot create the head Pod"),
	})
}

// headStaysAway tells whether a lost head is not replaced: a RayJob in SidecarMode asks for that, because its job
// died with the head.
func (p *planner) headStaysAway() bool {
	return p.snapshot.Cluster.Annotations[rayv1.AnnotationDisableProvisionedHeadRestart] == "true" &&
		conditionTrue(p.snapshot.Cluster, rayv1.ConditionRayClusterProvisioned)
}

func deleteHead(pod *corev1.Pod, why string) action.Delete {
	return action.Delete{
		Object: pod, Why: why,
		Done:   action.Normal("DeletedHeadPod", "Delete", "deleted head Pod: "+why),
		Failed: action.Warning("FailedToDeleteHeadPod", "Delete", "cannot delete the head Pod"),
	}
}

func (p *planner) workers() {
	lostForGood := p.headStaysAway() && membersOf(p.snapshot.Pods, rayv1.HeadGroupName).count() == 0
	if lostForGood {
		return
	}
	for i := range p.snapshot.Cluster.Spec.WorkerGroupSpecs {
		p.group(&p.snapshot.Cluster.Spec.WorkerGroupSpecs[i])
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
	if ptr.Deref(p.snapshot.Cluster.Spec.EnableInTreeAutoscaling, false) && !ptr.Deref(group.Suspend, false) && !p.settings.RandomPodDelete {
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
		Object: WorkerPod(p.snapshot.Cluster, group, p.settings, slot),
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
	for _, group := range p.snapshot.Cluster.Spec.WorkerGroupSpecs {
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
