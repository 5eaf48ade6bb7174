package raycluster

import (
	"maps"
	"time"

	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// Plan decides what to do for a RayCluster. It is a pure function of its arguments.
func Plan(s Snapshot, settings Settings, now time.Time) action.Plan {
	if s.Cluster == nil || s.Cluster.DeletionTimestamp != nil || !ours(s.Cluster.Spec.ManagedBy) {
		return action.Plan{}
	}
	p := &planner{snapshot: s, cluster: s.Cluster, settings: settings, now: now, incarnations: maps.Clone(s.Cluster.Status.Incarnations)}
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
	snapshot Snapshot
	// cluster is what the plan acts upon: the observed cluster, or the same with the last spec that made sense.
	cluster      *rayv1.RayCluster
	settings     Settings
	now          time.Time
	invalid      []error
	suspend      suspendPhase
	incarnations map[string]int64
	// notes say what the spec asks for and does not get. Condition Valid carries them.
	notes []string
	// collisions name objects of others that stand where ours should be.
	collisions []string
	plan       action.Plan
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
