package raycronjob

import (
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func suspendCases() []Case {
	return []Case{
		{Row: 14, Kind: same, Given: "suspend true", When: "three ticks pass", Then: "no RayJob; lastScheduleTime unchanged; event SuspendedRayCronJob", How: "one event, not one in each pass", Run: func(e *env) {
			cron := e.given(suspend(true))
			for n := range 3 {
				e.at(cron, tick(cron, n))
				e.rest()
			}
			e.nothing()
			e.said(cron, "Normal", "SuspendedRayCronJob")
			e.Expect(e.Events(e.t, cron)).To(HaveLen(1))
			e.Expect(e.Events(e.t, cron)[0].Series).To(BeNil())
			e.refresh(cron)
			e.Expect(cron.Status.LastScheduleTime).To(BeNil())
			e.have(cron, rayv1.ConditionRayCronJobSuspended, metav1.ConditionTrue, rayv1.ReasonSuspended)
		}},
		{Row: 15, Kind: same, Given: "the run of 00:05 goes on", When: "suspend becomes true", Then: "the RayJob is left alone", Run: func(e *env) {
			cron, run := e.firstRun()
			e.change(cron, suspend(true))
			e.rest()
			uid := run.UID
			e.refresh(run)
			e.Expect(run.DeletionTimestamp).To(BeNil())
			e.Expect(run.UID).To(Equal(uid))
			e.Expect(run.Spec.Suspend).To(BeFalse())
		}},
		{Row: 16, Kind: same, Given: "it is suspended", When: "suspend becomes false", Then: "the next tick is run", Run: func(e *env) {
			cron := e.given(suspend(true))
			e.change(cron, suspend(false))
			e.at(cron, tick(cron))
			e.ran(cron, tick(cron))
		}},
		{Row: 47, Kind: better, Weak: []string{"RC-W2"}, Theirs: "every tick of the hour is made up for", Given: "it was suspended for an hour", When: "suspend becomes false", Then: "no RayJob for that hour",
			How: "status.lastSkipped and events tell what was skipped; the next tick is run", Run: func(e *env) {
				cron := e.given(suspend(true))
				e.at(cron, tick(cron, 11).Add(time.Minute))
				e.rest()
				e.change(cron, suspend(false))
				e.skipped(cron, 12, rayv1.SkippedSuspended, tick(cron, 11))
				e.said(cron, "Normal", "ResumedRayCronJob")
				e.nothing()
				e.at(cron, tick(cron, 12))
				e.ran(cron, tick(cron, 12))
			}},
	}
}
