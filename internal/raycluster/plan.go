package raycluster

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// Plan decides what to do for a RayCluster. It is a pure function of its arguments.
func Plan(s Snapshot, settings Settings, now time.Time) action.Plan {
	if s.Cluster == nil || !ours(s.Cluster.Spec.ManagedBy) {
		return action.Plan{}
	}
	p := &planner{snapshot: s, cluster: s.Cluster, settings: settings, now: now, incarnations: maps.Clone(s.Cluster.Status.Incarnations)}
	p.plan.Known = action.Told(s.Holds)
	if s.Cluster.DeletionTimestamp != nil {
		p.deleted()
		return p.plan
	}
	p.invalid = Validate(s.Cluster, settings)
	p.chooseSpec()
	p.suspend = nextSuspendPhase(s)
	if !p.frozen {
		p.objects()
		p.noteGroups()
	}
	p.releaseStuckHead()
	switch {
	case p.suspend != running:
		p.removeAllPods()
	case !p.frozen:
		p.head()
		p.workers()
		p.removedGroups()
	}
	p.plan.Status, p.plan.Events = p.status()
	p.finalizer()
	if p.plan.Status != nil {
		p.plan.Events = append(p.plan.Events, p.events...)
	}
	p.lookAgain()
	return p.plan
}

// ours tells whether an object is ours to act upon by its spec.managedBy.
func ours(managedBy *string) bool {
	return managedBy == nil || *managedBy == rayv1.ManagedByOperator
}

// nextStep is the wait before a step that nothing stands in the way of.
const nextStep = 50 * time.Millisecond

type planner struct {
	snapshot Snapshot
	// cluster is what the plan acts upon: the observed cluster, or the same with the last spec that made sense.
	cluster  *rayv1.RayCluster
	settings Settings
	now      time.Time
	invalid  []error
	// frozen means that no spec is known which makes sense: nothing is made, and nothing removed but for a suspend.
	frozen       bool
	suspend      suspendPhase
	incarnations map[string]int64
	// notes say what the spec asks for and does not get. Condition Valid carries them.
	notes []string
	// collisions name objects of others that stand where ours should be.
	collisions []string
	// events speak of what the status written with them says.
	events []action.Event
	// storage says what is wrong with the volume of the GCS; it is empty when nothing is.
	storage metav1.Condition
	// waits say what the plan puts off, and until when.
	waits       []string
	byGroup     map[string][]*corev1.Pod
	hashByGroup map[string]string
	plan        action.Plan
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

// wait puts a sentence on something that is put off into the status.
func (p *planner) wait(format string, args ...any) {
	p.waits = append(p.waits, fmt.Sprintf(format, args...))
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
