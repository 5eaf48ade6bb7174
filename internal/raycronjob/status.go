package raycronjob

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/worst"
)

// maxActive bounds the list of unfinished RayJobs.
const maxActive = 100

// status completes the next status and asks for its write if it says something new.
func (p *planner) status() {
	p.st.ObservedGeneration = p.s.Cron.Generation
	p.st.LastHandledTime = ptr.To(metav1.NewTime(p.handled))
	p.st.Active = references(unfinished(p.s.Runs))
	p.st.LastSuccessfulTime = p.lastSuccess()
	p.st.Conditions = slices.Clone(p.st.Conditions)
	p.valid()
	p.set(metav1.Condition{Type: rayv1.ConditionRayCronJobSuspended, Status: condition.Status(p.suspended()), Reason: p.suspension()})
	for _, c := range p.progress() {
		p.set(c)
	}
	p.plan.Events, _ = worst.Object{
		Facts: &diagnose.Snapshot{Now: p.now, CronJob: p.cron}, Conditions: &p.st.Conditions, Generation: p.s.Cron.Generation, Now: p.now,
		Holds: p.s.Holds, Events: p.plan.Events,
	}.Lift()
	if !equality.Semantic.DeepEqual(p.s.Cron.Status, *p.st) {
		p.plan.Status = &action.StatusWrite{Object: p.cron, Base: p.s.Cron, Why: whatChanged(&p.s.Cron.Status, p.st)}
	}
}

// references name the newest of the RayJobs.
func references(runs []*rayv1.RayJob) []corev1.ObjectReference {
	var list []corev1.ObjectReference
	for _, run := range runs[max(0, len(runs)-maxActive):] {
		list = append(list, corev1.ObjectReference{APIVersion: rayv1.GroupVersion.String(), Kind: rayv1.KindRayJob,
			Namespace: run.Namespace, Name: run.Name, UID: run.UID})
	}
	return list
}

func (p *planner) lastSuccess() *metav1.Time {
	last := p.st.LastSuccessfulTime
	for _, run := range p.s.Runs {
		if ended := run.Status.EndTime; succeeded(run) && ended != nil && (last == nil || last.Before(ended)) {
			last = ended.DeepCopy()
		}
	}
	return last
}

// set puts a condition into the status and tells whether it is new or says something else than before.
func (p *planner) set(c metav1.Condition) bool {
	return condition.Set(&p.st.Conditions, c, p.s.Cron.Generation, p.now)
}

// valid says whether the spec can be acted upon. The event is sent when the verdict changes, not on every pass.
func (p *planner) valid() {
	if p.invalid == nil {
		p.set(metav1.Condition{Type: rayv1.ConditionValid, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSpecValid})
		return
	}
	message := p.invalid.Error() + "; no RayJobs are created until the spec is corrected"
	if p.set(metav1.Condition{Type: rayv1.ConditionValid, Status: metav1.ConditionFalse, Reason: rayv1.ReasonSpecInvalid, Message: message}) {
		p.tell(action.Warning("InvalidRayCronJobSpec", "Validate", message))
	}
}

func (p *planner) wasSuspended() bool {
	return meta.IsStatusConditionTrue(p.s.Cron.Status.Conditions, rayv1.ConditionRayCronJobSuspended)
}

func (p *planner) suspension() string {
	if p.suspended() {
		return rayv1.ReasonSuspended
	}
	return rayv1.ReasonNotSuspended
}

// progress returns the conditions Ready, Reconciling and Stalled. They are one verdict in three words, by which any
// client that knows the conventions of kstatus can tell done, under way and stuck apart. A RayCronJob is never under way:
// it waits for its next tick, or for somebody.
func (p *planner) progress() []metav1.Condition {
	reason, message, stalled := p.verdict()
	ready := !stalled && reason == rayv1.ReasonScheduled
	conditions := []metav1.Condition{
		{Type: rayv1.ConditionReady, Status: condition.Status(ready), Reason: reason, Message: message},
		{Type: rayv1.ConditionReconciling, Status: metav1.ConditionFalse, Reason: reason},
		{Type: rayv1.ConditionStalled, Status: condition.Status(stalled), Reason: reason},
	}
	if stalled {
		conditions[1].Reason, conditions[2].Message = rayv1.ReasonStalled, message
	}
	return conditions
}

func (p *planner) verdict() (reason, message string, stalled bool) {
	if p.invalid != nil {
		return rayv1.ReasonSpecInvalid, p.invalid.Error(), true
	}
	if p.suspended() {
		return rayv1.ReasonSuspended, "no RayJobs are created while spec.suspend is true", false
	}
	if !p.due.IsZero() {
		name := runName(p.s.Cron, p.due)
		switch hold := p.s.Holds["RayJob/"+name]; {
		case hold.Collision:
			return rayv1.ReasonNameCollision, fmt.Sprintf("RayJob %s: %s", name, hold.Message), true
		case hold.Reason != "":
			return hold.Reason, fmt.Sprintf("RayJob %s: %s", name, hold.Message), true
		}
	}
	return rayv1.ReasonScheduled, fmt.Sprintf("a RayJob is created at each tick of %q, time zone %s", p.st.Schedule, p.st.TimeZone), false
}

// whatChanged names the most telling change for the log line.
func whatChanged(before, after *rayv1.RayCronJobStatus) string {
	switch {
	case !before.LastScheduleTime.Equal(after.LastScheduleTime):
		return "the tick of " + after.LastScheduleTime.UTC().Format(time.RFC3339) + " is run"
	case !equality.Semantic.DeepEqual(before.LastSkipped, after.LastSkipped):
		return "ticks are skipped"
	case !equality.Semantic.DeepEqual(before.Conditions, after.Conditions):
		return "conditions changed"
	case !equality.Semantic.DeepEqual(before.Active, after.Active):
		return "the list of unfinished RayJobs changed"
	default:
		return "observed facts changed"
	}
}
