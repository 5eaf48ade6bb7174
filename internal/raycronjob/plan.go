package raycronjob

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

const (
	// nextStep is the wait before a step that nothing stands in the way of.
	nextStep = 50 * time.Millisecond
	// longestWait bounds how late a tick is noticed when the clock was set forward.
	longestWait = 5 * time.Minute
)

// Plan decides what to do for a RayCronJob. It is a pure function of its arguments. The settings are those that RayJobs
// are judged by.
//
// A tick is handled in steps that each can be repeated. Its RayJob is created, under a name that follows from the tick
// and with a finalizer of ours. Once the caches show it, the status records the tick. Once the status shows that, the
// finalizer goes. So at any moment either the RayJob or the status tells that the tick was run, whatever happens to the
// RayJob, and no step depends on what a process remembers.
func Plan(s Snapshot, jobs rayjob.Settings, now time.Time) action.Plan {
	p := &planner{s: s, jobs: jobs, now: now}
	for _, orphan := range s.Orphans {
		p.release(orphan, "the RayCronJob is gone")
	}
	if s.Cron == nil {
		return p.plan
	}
	if s.Cron.DeletionTimestamp != nil {
		for _, run := range s.Runs {
			p.release(run, "the RayCronJob is deleted")
		}
		return p.plan
	}
	p.cron = s.Cron.DeepCopy()
	p.st = &p.cron.Status
	p.handled = handledBefore(s.Cron)
	p.schedule, p.readable = readSchedule(s.Cron)
	p.invalid = Validate(s.Cron, jobs)
	p.record() // before anything is skipped: a RayJob that is there is no skipped tick
	p.horizon()
	p.tick()
	p.prune()
	p.releaseRecorded()
	p.plan.Known = action.Told(s.Holds)
	p.status()
	return p.plan
}

type planner struct {
	s    Snapshot
	jobs rayjob.Settings
	now  time.Time
	cron *rayv1.RayCronJob       // a copy of s.Cron that carries the next status
	st   *rayv1.RayCronJobStatus // that status
	// handled is the time up to which every tick is run or skipped.
	handled  time.Time
	schedule Schedule
	readable bool // the schedule and its time zone
	invalid  error
	// due is the tick whose RayJob is to be created, or zero.
	due  time.Time
	plan action.Plan
}

func (p *planner) do(a action.Action)       { p.plan.Actions = append(p.plan.Actions, a) }
func (p *planner) tell(event *action.Event) { p.plan.Events = append(p.plan.Events, *event) }
func (p *planner) again(after time.Duration) {
	p.plan.LookAgain = action.Soonest(p.plan.LookAgain, min(after, longestWait))
}

// handledBefore is the time up to which the status, or else the age of the object, says that every tick is handled.
func handledBefore(cron *rayv1.RayCronJob) time.Time {
	handled := cron.CreationTimestamp.Time
	for _, recorded := range []*metav1.Time{cron.Status.LastScheduleTime, cron.Status.LastHandledTime} {
		if recorded != nil && recorded.After(handled) {
			handled = recorded.Time
		}
	}
	return handled
}

func readSchedule(cron *rayv1.RayCronJob) (schedule Schedule, readable bool) {
	schedule, errs := scheduleOf(cron)
	return schedule, len(errs) == 0
}

// followed is the schedule that the ticks up to now came from: the one that was last looked at, if there was any.
func (p *planner) followed() (schedule Schedule, readable bool) {
	before := p.s.Cron.DeepCopy()
	if st := &before.Status; st.Schedule != "" {
		before.Spec.Schedule, before.Spec.TimeZone = st.Schedule, &st.TimeZone
	}
	return readSchedule(before)
}

// zoneName is the time zone that the schedule is read in; see LoadZone.
func zoneName(cron *rayv1.RayCronJob) string {
	if name := ptr.Deref(cron.Spec.TimeZone, Local); name != Local {
		return name
	}
	return UTC
}

// horizon moves beyond the ticks of a suspension and those of an earlier schedule, which are not made up for.
func (p *planner) horizon() {
	before, spec := p.s.Cron.Status, &p.cron.Spec
	changed := before.Schedule != "" && (before.Schedule != spec.Schedule || before.TimeZone != zoneName(p.cron))
	resumed := p.wasSuspended() && !p.suspended()
	p.st.Schedule, p.st.TimeZone = spec.Schedule, zoneName(p.cron)
	switch {
	case changed:
		if earlier, readable := p.followed(); readable {
			p.skipWith(earlier, rayv1.SkippedScheduleChanged, "by the schedule that was changed")
		}
		p.handled = later(p.handled, p.now)
	case resumed && !p.readable:
		p.handled = later(p.handled, p.now)
	case resumed:
		// Only up to a tick, so that an interval goes on as before.
		p.skipWith(p.schedule, rayv1.SkippedSuspended, "while the RayCronJob was suspended")
	}
	if resumed {
		p.tell(action.Normal("ResumedRayCronJob", "Resume", "RayJobs are created again; the ticks of the suspension are not made up for"))
	}
	if p.suspended() && !p.wasSuspended() {
		p.tell(action.Normal("SuspendedRayCronJob", "Suspend", "no RayJobs are created while spec.suspend is true"))
	}
}

func (p *planner) suspended() bool { return ptr.Deref(p.cron.Spec.Suspend, false) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b.Truncate(time.Second)
	}
	return a
}

// skipWith skips every tick of a schedule that has passed and is not handled.
func (p *planner) skipWith(schedule Schedule, reason, why string) {
	if newest, missed := schedule.Newest(p.handled, p.now); missed {
		p.skip(schedule, newest, reason, why)
	}
}

// skip records that the ticks up to a time, which is one, are not run.
func (p *planner) skip(schedule Schedule, until time.Time, reason, why string) {
	count := schedule.Count(p.handled, until)
	p.st.LastSkipped = &rayv1.RayCronJobSkipped{Time: metav1.NewTime(until), Count: count, Reason: reason}
	p.handled = until
	what := "skipped the tick of " + until.Format(time.RFC3339)
	switch {
	case count == maxCount:
		what = fmt.Sprintf("skipped %d ticks or more, the last one of %s", count, until.Format(time.RFC3339))
	case count > 1:
		what = fmt.Sprintf("skipped %d ticks, the last one of %s", count, until.Format(time.RFC3339))
	}
	event := action.Warning(reason, "Schedule", what+": "+why)
	if reason == rayv1.SkippedActive || reason == rayv1.SkippedSuspended {
		event = action.Normal(reason, "Schedule", what+": "+why)
	}
	p.tell(event)
}

// record takes in that the RayJob of the newest tick is there.
func (p *planner) record() {
	if len(p.s.Runs) == 0 {
		return
	}
	newest := p.s.Runs[len(p.s.Runs)-1]
	tick := tickOf(newest)
	last := p.st.LastScheduleTime
	if last != nil && !tick.After(last.Time) {
		return
	}
	if schedule, readable := p.followed(); readable && tick.After(p.handled) {
		p.skipBefore(schedule, tick)
	}
	p.handled = later(p.handled, tick)
	if p.cron.Spec.ConcurrencyPolicy == rayv1.ReplaceConcurrent && p.replace(newest) {
		return // a new leader must go on with that, so the run is not recorded yet
	}
	p.st.LastScheduleTime = ptr.To(metav1.NewTime(tick))
}

// skipBefore tells of the ticks that a newer one was run instead of.
func (p *planner) skipBefore(schedule Schedule, tick time.Time) {
	if newest, missed := schedule.Newest(p.handled, tick.Add(-time.Second)); missed {
		p.skip(schedule, newest, rayv1.SkippedMissed, "only the newest of several ticks that were missed is run")
	}
}

// replace deletes the RayJobs that a new one stands in for, and tells whether there are any left to delete.
func (p *planner) replace(by *rayv1.RayJob) bool {
	left := false
	for _, run := range unfinished(p.s.Runs) {
		if run.UID == by.UID || run.DeletionTimestamp != nil {
			continue
		}
		left = true
		p.delete(run, fmt.Sprintf("spec.concurrencyPolicy is Replace, and RayJob %s takes its place", by.Name), "deleted an unfinished RayJob for a new one")
	}
	return left
}

func (p *planner) delete(run *rayv1.RayJob, why, note string) {
	p.do(action.Delete{
		Object: run, Owner: p.s.Cron, Why: why,
		Done:   action.Normal("DeletedRayJob", "Delete", note),
		Failed: action.Warning("FailedToDeleteRayJob", "Delete", "cannot delete a RayJob"),
	})
}

// tick runs or skips the newest tick that has passed, and waits for the next one.
func (p *planner) tick() {
	p.st.NextScheduleTime = nil
	if p.invalid != nil || p.suspended() {
		return
	}
	if due, passed := p.schedule.Newest(p.handled, p.now); passed {
		p.take(due)
	}
	next := p.due
	if next.IsZero() {
		next = p.schedule.Next(p.handled)
		p.await(next)
	}
	if !next.IsZero() {
		p.st.NextScheduleTime = ptr.To(metav1.NewTime(next))
	}
}

// await asks for a pass at a tick, if there is one.
func (p *planner) await(tick time.Time) {
	if !tick.IsZero() {
		p.again(max(tick.Sub(p.now), time.Millisecond))
	}
}

// take decides what becomes of a tick that has passed.
func (p *planner) take(due time.Time) {
	deadline := p.cron.Spec.StartingDeadlineSeconds
	active := unfinished(p.s.Runs)
	switch {
	case deadline != nil && p.now.Sub(due).Seconds() > float64(*deadline):
		p.skip(p.schedule, due, rayv1.SkippedMissed, fmt.Sprintf("it is more than spec.startingDeadlineSeconds (%d) late", *deadline))
	case p.cron.Spec.ConcurrencyPolicy == rayv1.ForbidConcurrent && len(active) > 0:
		p.skip(p.schedule, due, rayv1.SkippedActive, "spec.concurrencyPolicy is Forbid, and not finished are: "+names(active))
	default:
		p.start(due)
	}
}

// start creates the RayJob of a tick.
func (p *planner) start(due time.Time) {
	p.due = due
	// A tick that cannot be run is given up for a later one, or when it is too late.
	p.await(p.schedule.Next(due))
	if deadline := p.cron.Spec.StartingDeadlineSeconds; deadline != nil {
		left := float64(*deadline) - p.now.Sub(due).Seconds()
		p.again(time.Duration(min(left+1, longestWait.Seconds()) * float64(time.Second)))
	}
	run := newRun(p.s.Cron, due)
	if hold, held := p.s.Holds[holdKey(run)]; held && p.now.Before(hold.Until) {
		p.again(hold.Until.Sub(p.now))
		return
	}
	p.do(action.Create{
		Object: run, Group: holdKey(run), Why: "the tick of " + due.Format(time.RFC3339) + " has come",
		Done:   action.Normal("CreatedRayJob", "Create", "created the RayJob of "+due.Format(time.RFC3339)),
		Failed: action.Warning(rayv1.ReasonFailedToCreateRayJob, "Create", "cannot create the RayJob of "+due.Format(time.RFC3339)),
	})
}

func holdKey(run *rayv1.RayJob) string { return "RayJob/" + run.Name }

// releaseRecorded lets go of the RayJobs whose tick the stored status knows.
func (p *planner) releaseRecorded() {
	recorded := handledBefore(p.s.Cron)
	for _, run := range p.s.Runs {
		switch {
		case !slices.Contains(run.Finalizers, rayv1.FinalizerRayCronJobTick):
		case tickOf(run).After(recorded):
			p.again(nextStep)
		default:
			p.release(run, "the tick is recorded")
		}
	}
}

func (p *planner) release(run *rayv1.RayJob, why string) {
	rest := slices.DeleteFunc(slices.Clone(run.Finalizers), func(f string) bool { return f == rayv1.FinalizerRayCronJobTick })
	if len(rest) < len(run.Finalizers) {
		p.do(action.Finalizers{Object: run, Want: rest, Why: why})
	}
}
