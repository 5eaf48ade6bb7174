package raycronjob

import (
	"time"

	. "github.com/onsi/gomega"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func scheduleCases() []Case {
	atQuarterToTwo := func(edits ...edit) func(*env) {
		return func(e *env) {
			cron := e.given(edits...)
			e.runsAt(cron, nextDaily(cron, 13*time.Hour+45*time.Minute))
		}
	}
	return []Case{
		{Row: 17, Kind: same, Given: "timeZone Asia/Taipei, schedule `45 21 * * *`", When: "it is 13:45 UTC", Then: "a RayJob whose annotation says 13:45 UTC",
			Run: atQuarterToTwo(zone("Asia/Taipei"), schedule("45 21 * * *"))},
		{Row: 18, Kind: same, Given: "timeZone UTC", When: "a tick comes", Then: "the same as without a time zone", Run: func(e *env) {
			other := e.stored(called("other"), zone("UTC"), schedule("45 13 * * *"))
			cron := e.given(schedule("45 13 * * *"))
			tick := nextDaily(cron, 13*time.Hour+45*time.Minute)
			e.runsAt(cron, tick)
			e.touch(other)
			e.ran(other, tick)
			e.Expect(cron.Status.TimeZone).To(Equal("UTC"))
		}},
		{Row: 25, Kind: same, Given: "schedule `@hourly`", When: "it is 01:00", Then: "a RayJob", Run: func(e *env) {
			cron := e.given(schedule("@hourly"))
			e.runsAt(cron, cron.CreationTimestamp.UTC().Truncate(time.Hour).Add(time.Hour))
		}},
		{Row: 26, Kind: same, Given: "schedule `@every 2h`", When: "it is 02:00", Then: "a RayJob", Run: func(e *env) {
			cron := e.given(schedule("@every 2h"))
			e.runsAt(cron, cron.CreationTimestamp.UTC().Add(2*time.Hour))
		}},
		{Row: 44, Kind: same, Given: "schedule `0 0 15 * 1`, which names a day of the month and one of the week", When: "either comes", Then: "a RayJob", Run: func(e *env) {
			cron := e.given(schedule("0 0 15 * 1"))
			monday := func(day time.Time) bool { return day.Weekday() == time.Monday }
			fifteenth := func(day time.Time) bool { return day.Day() == 15 }
			first := nextDay(cron.CreationTimestamp.UTC(), func(day time.Time) bool { return monday(day) && !fifteenth(day) })
			e.runsAt(cron, first)
			e.runsAt(cron, nextDay(first, func(day time.Time) bool { return fifteenth(day) && !monday(day) }))
		}},
		{Row: 48, Kind: better, Weak: []string{"RC-W3"}, Theirs: "every minute since the last monthly run is made up for", Given: "schedule `0 0 1 * *`", When: "it becomes `* * * * *` days later", Then: "the next minute is run, and none before it",
			How: "a changed schedule or time zone counts from when it is first seen", Run: func(e *env) {
				cron := e.given(schedule("0 0 1 * *"))
				noon := nextDay(cron.CreationTimestamp.UTC(), func(day time.Time) bool { return day.Day() == 9 }).Add(12 * time.Hour)
				e.at(cron, noon.Add(-30*time.Second))
				e.rest()
				before := e.names() // the first of the month may lie between
				e.change(cron, schedule("* * * * *"))
				e.rest()
				e.Expect(e.names()).To(Equal(before))
				e.at(cron, noon)
				e.ran(cron, noon)
				e.rest()
				e.Expect(e.names()).To(HaveLen(len(before) + 1))
			}},
		{Row: 63, Kind: better, Weak: []string{"RC-W17"}, Theirs: "in the night in which clocks are put back a job runs twice, in the other one not at all", Given: "timeZone Europe/Berlin, schedule `30 2 * * *`", When: "clocks are put forward, and when they are put back", Then: "one run in either night",
			How: "a tick is the first moment at which the clock shows its time, or a later one", Run: func(e *env) {
				cron := e.given(zone("Europe/Berlin"), schedule("30 2 * * *"))
				for range 2 {
					change, forward := nextClockChange(e.t, e.clock.Now(), "Europe/Berlin")
					e.at(cron, change.Add(-6*time.Hour)) // whatever was missed until then
					e.rest()
					before := len(e.names())
					for night := change.Add(-2 * time.Hour); night.Before(change.Add(4 * time.Hour)); night = night.Add(30 * time.Minute) {
						e.at(cron, night)
						e.Eventually(func() bool {
							e.refresh(cron)
							return cron.Status.NextScheduleTime.Time.After(night)
						}).Should(BeTrue(), "the tick is not handled")
					}
					want := change.Add(-30 * time.Minute) // the first half past two
					if forward {
						want = change // there is none
					}
					e.ran(cron, want)
					e.rest()
					e.Expect(e.names()).To(HaveLen(before + 1))
				}
			}},
	}
}

// runsAt checks that a tick is run, and not a moment before.
func (e *env) runsAt(cron *rayv1.RayCronJob, tick time.Time) {
	e.t.Helper()
	before := cron.DeepCopy()
	e.at(cron, tick.Add(-time.Second))
	e.rest()
	e.Expect(e.names()).ToNot(ContainElement(runName(cron, tick)))
	e.at(before, tick)
	run := e.ran(cron, tick)
	e.Expect(run.Annotations).To(HaveKeyWithValue("ray.io/cronjob-scheduled-timestamp", tick.UTC().Format(time.RFC3339)))
}

// nextDaily is the first time of day after the RayCronJob was created.
func nextDaily(cron *rayv1.RayCronJob, ofDay time.Duration) time.Time {
	created := cron.CreationTimestamp.UTC()
	at := created.Truncate(24 * time.Hour).Add(ofDay)
	if !at.After(created) {
		at = at.Add(24 * time.Hour)
	}
	return at
}

// nextDay is the first midnight of such a day.
func nextDay(after time.Time, such func(time.Time) bool) time.Time {
	day := after.Truncate(24 * time.Hour).Add(24 * time.Hour)
	for !such(day) {
		day = day.Add(24 * time.Hour)
	}
	return day
}
