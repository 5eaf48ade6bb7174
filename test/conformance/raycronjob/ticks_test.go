package raycronjob

import (
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func tickCases() []Case {
	return []Case{
		{Row: 1, Kind: same, Given: "the feature gate RayCronJob is off", When: "it is created", Then: "no RayJob, no event, no status", Run: func(e *env) {
			cron := e.stored()
			e.start(harness.Args("--feature-gates=RayCronJob=false"))
			e.at(cron, tick(cron))
			e.nothing()
			e.refresh(cron)
			e.Expect(cron.Status).To(Equal(rayv1.RayCronJobStatus{}))
			e.Expect(e.Events(e.t, cron)).To(BeEmpty())
		}},
		{Row: 2, Kind: same, When: "it is 00:04", Then: "nothing", Run: func(e *env) {
			cron := e.given()
			e.at(cron, tick(cron).Add(-time.Minute))
			e.nothing()
		}},
		{Row: 3, Kind: same, When: "it becomes 00:05", Then: "one RayJob; lastScheduleTime is 00:05:00", How: "nobody has to look: the operator wakes up for the tick", Run: func(e *env) {
			cron := e.stored()
			e.clock.set(tick(cron).Add(-5*time.Second), true)
			e.start()
			e.looked(cron)
			e.ran(cron, tick(cron))
			e.rest()
			e.Expect(e.names()).To(HaveLen(1))
		}},
		{Row: 4, Kind: same, When: "it is 00:05", Then: "the RayJob's name is that of the RayCronJob and the minutes since the epoch", Run: func(e *env) {
			e.firstRun()
			e.Expect(e.names()).To(ConsistOf(MatchRegexp(`^nightly-[0-9]{8}$`)))
		}},
		{Row: 5, Kind: same, When: "it is 00:05", Then: "the RayJob is controlled by the RayCronJob", Run: func(e *env) {
			cron, run := e.firstRun()
			e.Expect(metav1.IsControlledBy(run, cron)).To(BeTrue())
			e.Expect(*metav1.GetControllerOf(run)).To(And(HaveField("Kind", "RayCronJob"), HaveField("APIVersion", "ray.io/v1"), HaveField("Name", name)))
		}},
		{Row: 6, Kind: same, When: "it is 00:05", Then: "the RayJob has the label ray.io/cronjob-name, and 00:05 in the annotation ray.io/cronjob-scheduled-timestamp", Run: func(e *env) {
			cron, run := e.firstRun()
			e.Expect(run.Labels).To(Equal(map[string]string{"ray.io/cronjob-name": name}))
			e.Expect(run.Annotations).To(Equal(map[string]string{"ray.io/cronjob-scheduled-timestamp": tick(cron).Format(time.RFC3339)}))
		}},
		{Row: 7, Kind: same, When: "it is 00:05", Then: "the RayJob's spec is the jobTemplate", Run: func(e *env) {
			cron, run := e.firstRun()
			e.Expect(run.Spec).To(Equal(cron.Spec.JobTemplate))
		}},
		{Row: 8, Kind: same, Given: "an operator that is late", When: "it is 00:05:30", Then: "lastScheduleTime is 00:05:00, the next tick 00:10:00", Run: func(e *env) {
			cron := e.given()
			e.at(cron, tick(cron).Add(30*time.Second))
			e.ran(cron, tick(cron))
			e.nextIs(cron, tick(cron, 1))
		}},
		{Row: 9, Kind: same, Given: "the tick of 00:05 was run", When: "it is 00:10", Then: "a second RayJob; the first one is left alone", Run: func(e *env) {
			cron, first := e.firstRun()
			e.rest()
			e.refresh(first)
			e.at(cron, tick(cron, 1))
			e.ran(cron, tick(cron, 1))
			e.rest()
			e.Expect(e.names()).To(ConsistOf(first.Name, runName(cron, tick(cron, 1))))
			before := first.DeepCopy()
			e.refresh(first)
			e.Expect(first.Spec).To(Equal(before.Spec))
			e.Expect(first.UID).To(Equal(before.UID))
		}},
		{Row: 10, Kind: same, Given: "the run of 00:05 goes on", When: "it is 00:10", Then: "a second RayJob beside it", Run: func(e *env) {
			cron, first := e.firstRun()
			e.at(cron, tick(cron, 1))
			e.ran(cron, tick(cron, 1))
			e.refresh(first)
			e.Expect(first.DeletionTimestamp).To(BeNil())
			e.Expect(cron.Status.Active).To(HaveLen(2))
		}},
		{Row: 35, Kind: same, Given: "the tick of 00:05 was run", When: "the template changes", Then: "the next RayJob is made from it, the first one stays as it is", Run: func(e *env) {
			cron, first := e.firstRun()
			e.change(cron, template(func(s *rayv1.RayJobSpec) { s.Entrypoint = "python other.py" }))
			e.at(cron, tick(cron, 1))
			second := e.ran(cron, tick(cron, 1))
			e.refresh(first)
			e.Expect([]string{first.Spec.Entrypoint, second.Spec.Entrypoint}).To(Equal([]string{"python main.py", "python other.py"}))
		}},
		{Row: 41, Kind: same, Given: "two RayCronJobs of one schedule", When: "it is 00:05", Then: "a RayJob for each", Run: func(e *env) {
			cron := e.given()
			other := e.given(called("other"))
			first := tick(other) // that of cron as well, or the one after it
			e.at(cron, first)
			e.touch(other)
			e.ran(cron, first)
			e.ran(other, first)
			e.rest()
			e.Expect(e.names()).To(ContainElements(runName(cron, first), runName(other, first)))
		}},
		{Row: 43, Kind: same, Given: "the operator is down from 00:04 to 00:06", When: "it is back", Then: "one RayJob for 00:05, then the usual ticks", Run: func(e *env) {
			cron := e.given()
			e.operator.Stop()
			e.clock.set(tick(cron).Add(time.Minute), false)
			e.start()
			e.ran(cron, tick(cron))
			e.at(cron, tick(cron, 1))
			e.ran(cron, tick(cron, 1))
			e.rest()
			e.Expect(e.names()).To(HaveLen(2))
			e.Expect(cron.Status.LastSkipped).To(BeNil())
		}},
	}
}

// firstRun makes the RayCronJob and runs its first tick.
func (e *env) firstRun(edits ...edit) (*rayv1.RayCronJob, *rayv1.RayJob) {
	e.t.Helper()
	cron := e.given(edits...)
	e.at(cron, tick(cron))
	return cron, e.ran(cron, tick(cron))
}
