package raycronjob

import (
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func missedCases() []Case {
	everyMinute := schedule("* * * * *")
	return []Case{
		{Row: 45, Kind: better, Weak: []string{"RC-W1"}, Theirs: "all 60 ticks are made up for", Given: "schedule `* * * * *`, the operator is down for an hour", When: "it is back", Then: "one RayJob, for the newest tick",
			How: "an event and status.lastSkipped tell how many were skipped", Run: func(e *env) {
				cron, newest := e.down(time.Hour, everyMinute)
				e.ran(cron, newest)
				e.rest()
				e.Expect(e.names()).To(HaveLen(1))
				e.skipped(cron, 59, rayv1.SkippedMissed, newest.Add(-time.Minute))
				e.Expect(e.said(cron, "Warning", "MissSchedule")).To(ContainSubstring("skipped 59 ticks"))
				e.nextIs(cron, newest.Add(time.Minute))
			}},
		{Row: 46, Kind: better, Weak: []string{"RC-W1"}, Theirs: "all ticks are made up for, however old", Given: "startingDeadlineSeconds 120, the operator is down for ten minutes", When: "it is back", Then: "nothing older than 120 s is run",
			How: "what is too old is skipped, and told", Run: func(e *env) {
				cron := e.stored(func(c *rayv1.RayCronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](120) })
				e.clock.set(tick(cron, 1).Add(3*time.Minute), false)
				e.start()
				e.skipped(cron, 2, rayv1.SkippedMissed, tick(cron, 1))
				e.nothing()
				e.operator.Stop()
				e.clock.set(tick(cron, 3).Add(2*time.Minute), false)
				e.start()
				e.ran(cron, tick(cron, 3))
				e.rest()
				e.Expect(e.names()).To(HaveLen(1))
			}},
		{Row: 64, Kind: better, Weak: []string{"RC-W17"}, Theirs: "every tick of the day is run at once", When: "the clock is put forward by a day", Then: "one RayJob", How: "as after an absence of the operator", Run: func(e *env) {
			cron := e.given()
			newest := tick(cron, 24*12)
			e.at(cron, newest.Add(time.Minute))
			e.ran(cron, newest)
			e.rest()
			e.Expect(e.names()).To(HaveLen(1))
			e.skipped(cron, 100, rayv1.SkippedMissed, newest.Add(-5*time.Minute))
		}},
	}
}

// down has an operator look at the RayCronJob, go away for a while and come back. It returns the last minute before that.
func (e *env) down(while time.Duration, edits ...edit) (*rayv1.RayCronJob, time.Time) {
	e.t.Helper()
	cron := e.given(edits...)
	e.operator.Stop()
	newest := cron.CreationTimestamp.UTC().Truncate(time.Minute).Add(while)
	e.clock.set(newest.Add(30*time.Second), false)
	e.start()
	return cron, newest
}
