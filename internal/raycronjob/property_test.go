package raycronjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

// world is a RayCronJob in a store, and an operator that may die after each of its writes.
type world struct {
	t    *rapid.T
	cron *rayv1.RayCronJob
	zone *time.Location
	runs []*rayv1.RayJob
	now  time.Time
	uids int
	// refusing has the API server refuse RayJobs.
	refusing bool
	// created are the ticks for which a RayJob was ever created.
	created map[time.Time]bool
	// since counts what was created since the time last went on.
	since int
}

// TestAnyHistoryRunsEachTickOnce: whatever is done to a RayCronJob and its RayJobs, and wherever the operator dies, no tick
// is run twice, no more than one run makes up for what was missed, and every tick that has passed was run or told.
func TestAnyHistoryRunsEachTickOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			w.happens()
			for range rapid.IntRange(0, 4).Draw(t, "passes") {
				w.pass()
			}
		}
		w.refusing = false
		w.quiet()
	})
}

func newWorld(t *rapid.T) *world {
	cron := given().Cron
	in := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
	w := &world{t: t, cron: cron, zone: in, now: aTime(t, in, "begin"), created: map[time.Time]bool{}}
	cron.CreationTimestamp, cron.Status = metav1.NewTime(w.now), rayv1.RayCronJobStatus{}
	cron.Spec.TimeZone = ptr.To(rapid.SampledFrom(zones).Draw(t, "zone"))
	cron.Spec.Schedule = rapid.SampledFrom(expressions).Draw(t, "schedule")
	cron.Spec.ConcurrencyPolicy = rapid.SampledFrom([]rayv1.ConcurrencyPolicy{"", "Allow", "Forbid", "Replace"}).Draw(t, "policy")
	if rapid.Bool().Draw(t, "with a deadline") {
		cron.Spec.StartingDeadlineSeconds = ptr.To(rapid.Int64Range(1, 1000).Draw(t, "deadline"))
	}
	if rapid.Bool().Draw(t, "with limits") {
		cron.Spec.SuccessfulJobsHistoryLimit, cron.Spec.FailedJobsHistoryLimit = ptr.To(rapid.Int32Range(0, 3).Draw(t, "limit")), ptr.To[int32](1)
	}
	return w
}

// happens is one thing that the world does.
func (w *world) happens() {
	w.since = 0
	switch rapid.IntRange(0, 9).Draw(w.t, "what") {
	case 0:
		w.cron.Spec.Suspend = ptr.To(!ptr.Deref(w.cron.Spec.Suspend, false))
	case 1:
		w.cron.Spec.Schedule = rapid.SampledFrom(append(expressions, "wrong")).Draw(w.t, "schedule")
	case 2:
		w.refusing = !w.refusing
	case 3, 4:
		if len(w.runs) > 0 {
			w.remove(rapid.SampledFrom(w.runs).Draw(w.t, "deleted"))
		}
	case 5:
		if len(w.runs) > 0 {
			run := rapid.SampledFrom(w.runs).Draw(w.t, "ended")
			run.Status.JobDeploymentStatus, run.Status.JobStatus = complete, rayv1.JobStatusSucceeded
			run.Status.EndTime = ptr.To(metav1.NewTime(w.now.Truncate(time.Second)))
		}
	case 6:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3*24*3600).Draw(w.t, "seconds of absence")) * time.Second)
	default:
		w.now = w.now.Add(time.Duration(rapid.IntRange(0, 400_000).Draw(w.t, "milliseconds")) * time.Millisecond)
	}
	w.cron.Generation++
}

// pass is one pass of an operator that may die before any of its writes, and knows nothing of the pass before.
func (w *world) pass() {
	runs := make([]*rayv1.RayJob, len(w.runs))
	for i, run := range w.runs {
		runs[i] = run.DeepCopy()
	}
	slices.SortFunc(runs, byTick)
	plan := Plan(Snapshot{Cron: w.cron.DeepCopy(), Runs: runs}, rayjob.Settings{}, w.now)
	dies := rapid.IntRange(0, 8).Draw(w.t, "dies before write")
	if plan.Status != nil {
		if dies == 0 {
			return
		}
		w.write(plan)
	}
	for i, a := range plan.Actions {
		if dies == i+1 {
			return
		}
		w.perform(a)
	}
}

// write stores the status, which must not take back what was handled.
func (w *world) write(plan action.Plan) {
	next := plan.Status.Object.(*rayv1.RayCronJob).Status
	if before := handledBefore(w.cron); next.LastHandledTime.Time.Before(before) {
		w.t.Fatalf("handled up to %s, after %s", next.LastHandledTime, before)
	}
	w.account(next, plan.Events)
	w.cron.Status = next
}

func (w *world) perform(a action.Action) {
	switch a := a.(type) {
	case action.Create:
		if !w.refusing {
			w.create(a.Object.(*rayv1.RayJob))
		}
	case action.Delete:
		run := a.Object.(*rayv1.RayJob)
		if replaced := w.cron.Spec.ConcurrencyPolicy == rayv1.ReplaceConcurrent; !finished(run) && !replaced {
			w.t.Fatalf("RayJob %s had not ended and is deleted", run.Name)
		}
		w.remove(w.stored(run.Name))
	case action.Finalizers:
		if run := w.stored(a.Object.GetName()); run != nil {
			run.Finalizers = a.Want
			w.vanish(run)
		}
	}
}

func (w *world) create(run *rayv1.RayJob) {
	if w.stored(run.Name) != nil {
		return // it exists, and is ours
	}
	tick := tickOf(run)
	switch {
	case w.created[tick]:
		w.t.Fatalf("the tick of %s is run twice", tick)
	case tick.After(w.now):
		w.t.Fatalf("the tick of %s is run at %s", tick, w.now)
	case ptr.Deref(w.cron.Spec.Suspend, false):
		w.t.Fatalf("the tick of %s is run while suspended", tick)
	}
	if late := w.cron.Spec.StartingDeadlineSeconds; late != nil && w.now.Sub(tick) > time.Duration(*late)*time.Second {
		w.t.Fatalf("the tick of %s is run at %s", tick, w.now)
	}
	if w.cron.Spec.ConcurrencyPolicy == rayv1.ForbidConcurrent && len(unfinished(w.runs)) > 0 {
		w.t.Fatalf("the tick of %s is run beside another", tick)
	}
	if w.since++; w.since > 1 {
		w.t.Fatalf("%d runs make up for what was missed", w.since)
	}
	w.uids++
	stored := run.DeepCopy()
	stored.UID = types.UID(fmt.Sprint("run-", w.uids))
	w.runs = append(w.runs, stored)
	w.created[tick] = true
}

func (w *world) stored(name string) *rayv1.RayJob {
	for _, run := range w.runs {
		if run.Name == name {
			return run
		}
	}
	return nil
}

// remove deletes a RayJob, which goes when nothing holds it.
func (w *world) remove(run *rayv1.RayJob) {
	if run != nil {
		run.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
		w.vanish(run)
	}
}

func (w *world) vanish(gone *rayv1.RayJob) {
	if gone.DeletionTimestamp != nil && len(gone.Finalizers) == 0 {
		w.runs = slices.DeleteFunc(w.runs, func(run *rayv1.RayJob) bool { return run == gone })
	}
}

// quiet lets an operator that does not die work until there is nothing to do.
func (w *world) quiet() {
	for range 20 {
		runs := slices.SortedFunc(slices.Values(w.runs), byTick)
		plan := Plan(Snapshot{Cron: w.cron.DeepCopy(), Runs: runs}, rayjob.Settings{}, w.now)
		if plan.Status == nil && len(plan.Actions) == 0 {
			return
		}
		if plan.Status != nil {
			w.write(plan)
		}
		for _, a := range plan.Actions {
			w.perform(a)
		}
	}
	w.t.Fatal("there is always something to do")
}

// account checks that every tick up to the one that is recorded as handled was run, or is told as skipped.
func (w *world) account(next rayv1.RayCronJobStatus, events []action.Event) {
	followed := w.cron.DeepCopy()
	if before := w.cron.Status; before.Schedule != "" {
		followed.Spec.Schedule, followed.Spec.TimeZone = before.Schedule, &before.TimeZone
	}
	schedule, readable := readSchedule(followed)
	if !readable {
		return
	}
	from, until := handledBefore(w.cron), next.LastHandledTime.Time
	told := int32(0)
	for _, event := range events {
		count := int32(1)
		if _, err := fmt.Sscanf(event.Note, "skipped %d ticks", &count); err == nil || strings.HasPrefix(event.Note, "skipped the tick") {
			told += count
		}
	}
	run := int32(0)
	for tick := range w.created {
		if tick.After(from) && !tick.After(until) {
			run++
		}
	}
	if passed := schedule.Count(from, until); passed != run+told && passed < maxCount {
		w.t.Fatalf("%d ticks have passed from %s to %s, %d were run and %d are told as skipped", passed, from, until, run, told)
	}
}
