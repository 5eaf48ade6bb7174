package raycronjob

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

const (
	running  = rayv1.JobDeploymentStatusRunning
	complete = rayv1.JobDeploymentStatusComplete
	failed   = rayv1.JobDeploymentStatusFailed
)

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func TestTicks(t *testing.T) {
	for name, c := range map[string]struct {
		given []edit
		now   string
		does  string
		tells string
		// last, next and skipped are those of the status; skipped is "count reason last".
		last, next, skipped string
		again               time.Duration
	}{
		"before the first tick, nothing":             {now: "12:04:00", next: "12:05:00", again: time.Minute},
		"at the tick, its RayJob":                    {now: "12:05:00", does: "create " + named("12:05:00"), next: "12:05:00", again: 5 * time.Minute},
		"late, its RayJob, and then the usual ticks": {now: "12:05:30", does: "create " + named("12:05:00"), next: "12:05:00", again: 4*time.Minute + 30*time.Second},
		"its RayJob is there, it is recorded": {given: []edit{run("12:05:00", running, unrecorded)}, now: "12:05:01",
			last: "12:05:00", next: "12:10:00", again: nextStep},
		"it is recorded, its RayJob is let go": {given: []edit{ran("12:05:00"), run("12:05:00", running, unrecorded)}, now: "12:05:02",
			does: "release " + named("12:05:00"), last: "12:05:00", next: "12:10:00", again: 4*time.Minute + 58*time.Second},
		"its RayJob is being deleted before it is recorded, it is recorded all the same": {given: []edit{run("12:05:00", running, unrecorded, deleted)}, now: "12:05:01",
			last: "12:05:00", next: "12:10:00", again: nextStep},
		"its RayJob was deleted after it was recorded, nothing": {given: []edit{ran("12:05:00")}, now: "12:06:00", last: "12:05:00", next: "12:10:00", again: 4 * time.Minute},
		"the run before goes on, another one": {given: []edit{ran("12:05:00"), run("12:05:00", running)}, now: "12:10:00",
			does: "create " + named("12:10:00"), last: "12:05:00", next: "12:10:00", again: 5 * time.Minute},
		"one tick was missed, it is made up for": {given: []edit{ran("12:05:00")}, now: "12:14:00", does: "create " + named("12:10:00"), last: "12:05:00", next: "12:10:00", again: time.Minute},
		"many were missed, the newest is made up for": {given: []edit{ran("12:05:00")}, now: "13:12:00",
			does: "create " + named("13:10:00"), last: "12:05:00", next: "13:10:00", again: 3 * time.Minute},
		"and what was skipped is told with its record": {given: []edit{ran("12:05:00"), run("13:10:00", running, unrecorded)}, now: "13:12:01",
			tells: "MissSchedule", last: "13:10:00", next: "13:15:00", skipped: "12 MissSchedule 13:05:00", again: nextStep},
		"the newest is too old, none is run": {given: []edit{ran("12:05:00"), deadline(120)}, now: "12:14:00",
			tells: "MissSchedule", last: "12:05:00", next: "12:15:00", skipped: "1 MissSchedule 12:10:00", again: time.Minute},
		"the newest is in time": {given: []edit{ran("12:05:00"), deadline(120)}, now: "12:12:00", does: "create " + named("12:10:00"), last: "12:05:00", next: "12:10:00", again: time.Second},
		"Forbid, and nothing runs": {given: []edit{policy(rayv1.ForbidConcurrent), ran("12:05:00"), run("12:05:00", complete)}, now: "12:10:00",
			does: "create " + named("12:10:00"), last: "12:05:00", next: "12:10:00", again: 5 * time.Minute},
		"Forbid, and a run goes on": {given: []edit{policy(rayv1.ForbidConcurrent), ran("12:05:00"), run("12:05:00", running)}, now: "12:10:00",
			tells: "JobAlreadyActive", last: "12:05:00", next: "12:15:00", skipped: "1 JobAlreadyActive 12:10:00", again: 5 * time.Minute},
		"Forbid, and a run is being deleted": {given: []edit{policy(rayv1.ForbidConcurrent), ran("12:05:00"), run("12:05:00", running, deleted)}, now: "12:10:00",
			tells: "JobAlreadyActive", last: "12:05:00", next: "12:15:00", skipped: "1 JobAlreadyActive 12:10:00", again: 5 * time.Minute},
		"Replace, first the new run": {given: []edit{policy(rayv1.ReplaceConcurrent), ran("12:05:00"), run("12:05:00", running)}, now: "12:10:00",
			does: "create " + named("12:10:00"), last: "12:05:00", next: "12:10:00", again: 5 * time.Minute},
		"Replace, then the old one goes": {given: []edit{policy(rayv1.ReplaceConcurrent), ran("12:05:00"), run("12:05:00", running), run("12:10:00", running, unrecorded)}, now: "12:10:01",
			does: "delete " + named("12:05:00"), last: "12:05:00", next: "12:15:00", again: nextStep},
		"Replace, then it is recorded": {given: []edit{policy(rayv1.ReplaceConcurrent), ran("12:05:00"), run("12:05:00", running, deleted), run("12:10:00", running, unrecorded)}, now: "12:10:02",
			last: "12:10:00", next: "12:15:00", again: nextStep},
		"Replace was chosen while runs go on, they go on": {given: []edit{policy(rayv1.ReplaceConcurrent), ran("12:10:00"), run("12:05:00", running), run("12:10:00", running)}, now: "12:11:00",
			last: "12:10:00", next: "12:15:00", again: 4 * time.Minute},
		"suspended, nothing": {given: []edit{suspended, ran("12:05:00")}, now: "12:30:00", tells: "SuspendedRayCronJob", last: "12:05:00"},
		"suspended for long": {given: []edit{suspended, wasSuspended, ran("12:05:00")}, now: "12:30:00", last: "12:05:00"},
		"resumed, its ticks are not made up for": {given: []edit{wasSuspended, ran("12:05:00")}, now: "13:07:00",
			tells: "Suspended, ResumedRayCronJob", last: "12:05:00", next: "13:10:00", skipped: "12 Suspended 13:05:00", again: 3 * time.Minute},
		"resumed before a tick": {given: []edit{wasSuspended, ran("12:05:00")}, now: "12:07:00", tells: "ResumedRayCronJob", last: "12:05:00", next: "12:10:00", again: 3 * time.Minute},
		"another schedule begins now": {given: []edit{from("0 0 1 * *"), scheduled("* * * * *")}, now: "13:07:30",
			next: "13:08:00", again: 30 * time.Second},
		"another schedule, and a tick of the earlier one was missed": {given: []edit{scheduled("0 * * * *")}, now: "12:07:30",
			tells: "ScheduleChanged", next: "13:00:00", skipped: "1 ScheduleChanged 12:05:00", again: longestWait},
		"another time zone": {given: []edit{from("0 13 * * *"), spec(func(s *rayv1.RayCronJobSpec) { s.TimeZone = ptr.To("Asia/Taipei") })}, now: "12:30:00",
			next: "05:00:00", again: longestWait},
		"the time zone that was meant is said aloud": {given: []edit{spec(func(s *rayv1.RayCronJobSpec) { s.TimeZone = ptr.To("UTC") })}, now: "12:05:00",
			does: "create " + named("12:05:00"), next: "12:05:00", again: 5 * time.Minute},
		"an interval goes on after a suspension": {given: []edit{from("@every 30m"), wasSuspended}, now: "13:07:00",
			tells: "Suspended, ResumedRayCronJob", next: "13:30:00", skipped: "2 Suspended 13:00:00", again: longestWait},
		"the clock was put back":      {given: []edit{ran("12:30:00")}, now: "12:10:00", last: "12:30:00", next: "12:35:00", again: longestWait},
		"the clock was put forward":   {given: []edit{ran("12:05:00")}, now: "23:59:00", does: "create " + named("23:55:00"), last: "12:05:00", next: "23:55:00", again: time.Minute},
		"KubeRay has run ticks":       {given: []edit{status(kubeRay)}, now: "12:16:00", does: "create " + named("12:15:00"), last: "12:10:00", next: "12:15:00", again: 4 * time.Minute},
		"KubeRay has just made a run": {given: []edit{status(kubeRay), run("12:15:00", running)}, now: "12:16:00", last: "12:15:00", next: "12:20:00", again: 4 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			plan, st := planAt(t, c.now, given(c.given...))
			skipped := ""
			if s := st.LastSkipped; s != nil {
				skipped = fmt.Sprint(s.Count, " ", s.Reason, " ", clockOf(&s.Time))
			}
			for what, got := range map[string][2]any{
				"does": {done(plan), c.does}, "tells": {told(plan), c.tells}, "last": {clockOf(st.LastScheduleTime), c.last},
				"next": {clockOf(st.NextScheduleTime), c.next}, "skipped": {skipped, c.skipped}, "looks again": {plan.LookAgain, c.again},
			} {
				if got[0] != got[1] {
					t.Errorf("%s: %v, want %v", what, got[0], got[1])
				}
			}
		})
	}
}

// kubeRay leaves of the status what KubeRay has written.
func kubeRay(st *rayv1.RayCronJobStatus) {
	*st = rayv1.RayCronJobStatus{LastScheduleTime: ptr.To(metav1.NewTime(clockAt("12:10:00")))}
}

// Given nothing new, when it is looked at again, then nothing is written.
func TestNothingNewIsNothingWritten(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"waiting":   given(ran("12:05:00")),
		"running":   given(ran("12:05:00"), run("12:05:00", running)),
		"suspended": given(suspended),
		"invalid":   given(scheduled("not a cron")),
	} {
		s.Cron.Status = *statusAfter(Plan(s, rayjob.Settings{}, clockAt("12:06:00")), s.Cron)
		if plan := Plan(s, rayjob.Settings{}, clockAt("12:07:00")); plan.Status != nil || len(plan.Actions)+len(plan.Events) > 0 {
			t.Errorf("%s: %+v", name, plan)
		}
	}
}

func TestConditions(t *testing.T) {
	held := func(hold action.Hold) edit {
		return func(s *Snapshot) { s.Holds = map[string]action.Hold{"RayJob/" + named("12:05:00"): hold} }
	}
	for name, c := range map[string]struct {
		given     []edit
		now, want string
		does      string
	}{
		"waiting":             {now: "12:01:00", want: "Valid/SpecValid Ready/Scheduled"},
		"suspended":           {given: []edit{suspended}, now: "12:01:00", want: "Valid/SpecValid Suspended/Suspended"},
		"invalid":             {given: []edit{scheduled("?")}, now: "12:06:00", want: "Stalled/SpecInvalid"},
		"invalid and suspend": {given: []edit{scheduled("?"), suspended}, now: "12:06:00", want: "Suspended/Suspended Stalled/SpecInvalid"},
		"refused": {given: []edit{held(action.Hold{Reason: rayv1.ReasonFailedToCreateRayJob, Until: clockAt("12:07:00")})}, now: "12:06:00",
			want: "Valid/SpecValid Stalled/FailedToCreateRayJob"},
		"refused, and tried again": {given: []edit{held(action.Hold{Reason: rayv1.ReasonFailedToCreateRayJob, Until: clockAt("12:05:10")})}, now: "12:06:00",
			want: "Valid/SpecValid Stalled/FailedToCreateRayJob", does: "create " + named("12:05:00")},
		"in the place of ours": {given: []edit{held(action.Hold{Reason: rayv1.ReasonFailedToCreateRayJob, Collision: true, Until: clockAt("12:07:00")})}, now: "12:06:00",
			want: "Valid/SpecValid Stalled/NameCollision"},
		"refused, and given up for the next tick": {given: []edit{held(action.Hold{Reason: rayv1.ReasonFailedToCreateRayJob, Until: clockAt("12:11:00")})}, now: "12:10:00",
			want: "Valid/SpecValid Ready/Scheduled", does: "create " + named("12:10:00")},
	} {
		t.Run(name, func(t *testing.T) {
			plan, st := planAt(t, c.now, given(c.given...))
			if got := conditions(st); got != c.want {
				t.Errorf("true are %s, want %s", got, c.want)
			}
			if got := done(plan); got != c.does {
				t.Errorf("does %q, want %q", got, c.does)
			}
			for _, condition := range st.Conditions {
				if condition.ObservedGeneration != 1 {
					t.Errorf("condition %s speaks of generation %d", condition.Type, condition.ObservedGeneration)
				}
			}
		})
	}
}

func TestHistory(t *testing.T) {
	limits := func(good, bad int32) edit {
		return spec(func(s *rayv1.RayCronJobSpec) { s.SuccessfulJobsHistoryLimit, s.FailedJobsHistoryLimit = &good, &bad })
	}
	stopped := func(job *rayv1.RayJob) { job.Status.JobStatus = rayv1.JobStatusStopped }
	several := []edit{ran("12:35:00"), run("12:05:00", complete), run("12:10:00", failed), run("12:15:00", complete), run("12:20:00", failed),
		run("12:25:00", complete), run("12:30:00", rayv1.JobDeploymentStatusValidationFailed), run("12:35:00", running)}
	for name, c := range map[string]struct {
		given []edit
		want  []string
	}{
		"no limits keep all":                   {given: several},
		"of each kind the newest are kept":     {given: append([]edit{limits(2, 1)}, several...), want: []string{"12:05:00", "12:10:00", "12:20:00"}},
		"none is kept, but what has not ended": {given: append([]edit{limits(0, 0)}, several...), want: []string{"12:05:00", "12:15:00", "12:25:00", "12:10:00", "12:20:00", "12:30:00"}},
		"a stopped run is no success":          {given: []edit{limits(5, 0), ran("12:35:00"), run("12:05:00", complete, stopped)}, want: []string{"12:05:00"}},
		"what is being deleted does not count": {given: []edit{limits(1, 1), ran("12:35:00"), run("12:05:00", complete, deleted), run("12:10:00", complete)}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, tick := range c.want {
				want = append(want, "delete "+named(tick))
			}
			plan, _ := planAt(t, "12:36:00", given(c.given...))
			if got := done(plan); got != strings.Join(want, ", ") {
				t.Errorf("does %s, want %v", got, want)
			}
		})
	}
}

// Given a RayCronJob that goes, then no RayJob is made for it, and none is held by it.
func TestDeletion(t *testing.T) {
	deleting := given(run("12:05:00", running, unrecorded))
	deleting.Cron.DeletionTimestamp = ptr.To(metav1.NewTime(clockAt("12:06:00")))
	gone := Snapshot{Orphans: deleting.Runs}
	for name, s := range map[string]Snapshot{"in the foreground": deleting, "in the background": gone} {
		plan := Plan(s, rayjob.Settings{}, clockAt("12:10:00"))
		if got, want := done(plan), "release "+named("12:05:00"); got != want || plan.Status != nil {
			t.Errorf("%s: does %q, want %q", name, got, want)
		}
	}
}

// Given a name that was used before, then what the earlier owner of the name left is let go.
func TestRunsOfAnEarlierRayCronJobAreLetGo(t *testing.T) {
	s := given()
	old := given(run("12:05:00", running, unrecorded)).Runs[0]
	s.Orphans = []*rayv1.RayJob{old}
	plan, _ := planAt(t, "12:01:00", s)
	if got, want := done(plan), "release "+old.Name; got != want {
		t.Errorf("does %q, want %q", got, want)
	}
}

func TestStatusTellsWhatRuns(t *testing.T) {
	_, st := planAt(t, "12:16:00", given(ran("12:15:00"), run("12:05:00", complete), run("12:10:00", running), run("12:15:00", running, deleted)))
	if len(st.Active) != 2 || st.Active[0].Name != named("12:10:00") || st.Active[0].UID != "uid-12:10:00" || st.Active[0].Kind != "RayJob" {
		t.Errorf("active are %v", st.Active)
	}
	if got := clockOf(st.LastSuccessfulTime); got != "12:06:00" {
		t.Errorf("the last success was at %s", got)
	}
	if st.Schedule != "*/5 * * * *" || st.TimeZone != "UTC" || st.ObservedGeneration != 1 {
		t.Errorf("the status speaks of %q in %s, generation %d", st.Schedule, st.TimeZone, st.ObservedGeneration)
	}
}
