package raycronjob

import (
	"fmt"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func policyCases() []Case {
	return []Case{
		{Row: 49, Kind: better, Weak: []string{"RC-W4"}, Theirs: "there is no such policy", Given: "concurrencyPolicy Forbid, the run of 00:05 goes on", When: "it is 00:10", Then: "no RayJob",
			How: "event JobAlreadyActive and status.lastSkipped; when the run has ended, the next tick is run", Run: func(e *env) {
				cron, first := e.firstRun(policy(rayv1.ForbidConcurrent))
				e.at(cron, tick(cron, 1))
				e.skipped(cron, 1, rayv1.SkippedActive, tick(cron, 1))
				e.Expect(e.said(cron, "Normal", "JobAlreadyActive")).To(ContainSubstring(first.Name))
				e.rest()
				e.Expect(e.names()).To(HaveLen(1))
				e.lastIs(cron, tick(cron))
				e.ends(first, rayv1.JobStatusFailed)
				e.rest()
				e.Expect(e.names()).To(HaveLen(1), "a skipped tick is not made up for")
				e.at(cron, tick(cron, 2))
				e.ran(cron, tick(cron, 2))
			}},
		{Row: 50, Kind: better, Weak: []string{"RC-W4"}, Theirs: "there is no such policy", Given: "concurrencyPolicy Replace, the job of 00:05 runs in Ray", When: "it is 00:10", Then: "a new RayJob; the old one goes, and its job is stopped",
			How: "the old one goes once the new one is there", Run: replaces},
		{Row: 51, Kind: better, Weak: []string{"RC-W5"}, Theirs: "RayJobs are kept for ever", Given: "successfulJobsHistoryLimit 2, failedJobsHistoryLimit 1", When: "five runs have succeeded and three have failed", Then: "the two newest successes and the newest failure are left",
			How: "the oldest go first; what has not ended never goes", Run: func(e *env) {
				cron := e.stored(func(c *rayv1.RayCronJob) {
					c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = ptr.To[int32](2), ptr.To[int32](1)
					// So that the test alone says how the runs end.
					c.Spec.JobTemplate.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue)
				})
				e.start()
				e.looked(cron)
				var runs []*rayv1.RayJob
				for n := range 9 {
					e.at(cron, tick(cron, n))
					runs = append(runs, e.ran(cron, tick(cron, n)))
				}
				for n, run := range runs[:8] {
					e.ends(run, map[bool]rayv1.JobStatus{true: rayv1.JobStatusFailed, false: rayv1.JobStatusSucceeded}[n%3 == 2 || n == 0])
				}
				// 0, 2 and 5 have failed, 1, 3, 4, 6 and 7 have succeeded, 8 goes on.
				e.Eventually(e.names).Should(ConsistOf(runs[5].Name, runs[6].Name, runs[7].Name, runs[8].Name))
				e.rest()
				e.Expect(e.names()).To(HaveLen(4))
			}},
	}
}

// replaces follows a run in Ray until another one takes its place.
func replaces(e *env) {
	cron, first := e.firstRun(policy(rayv1.ReplaceConcurrent))
	ray := e.inRay(first)
	e.clock.set(tick(cron, 1), true)
	e.touch(cron)
	second := e.ran(cron, tick(cron, 1))
	e.Eventually(func() []string {
		e.Kubelet(e.t, e.ns)
		e.CollectGarbage(e.t, e.ns)
		return e.names()
	}).Should(ConsistOf(second.Name))
	job, _ := ray.Job(first.Status.JobId)
	e.Expect(job.Step.Status).To(Equal("STOPPED"))
	e.said(cron, "Normal", "DeletedRayJob")
}

// inRay waits until the job of a RayJob runs in Ray, while the clock runs.
func (e *env) inRay(run *rayv1.RayJob) *fakedashboard.Dashboard {
	e.t.Helper()
	e.clock.set(e.clock.Now(), true)
	e.Eventually(func() string {
		e.Kubelet(e.t, e.ns)
		e.refresh(run)
		return fmt.Sprint(run.Status.JobStatus, " ", run.Status.Message)
	}).Should(HavePrefix("RUNNING"))
	return e.Rays.Dashboard(run.Status.DashboardURL)
}

func reportCases() []Case {
	return []Case{
		{Row: 42, Kind: same, When: "kubectl get asks for the table", Then: "the columns schedule, timezone, last schedule, age and suspend", Run: func(e *env) {
			cron, _ := e.firstRun(zone("UTC"), suspend(false))
			e.Expect(e.table()).To(Equal([]string{"name=" + cron.Name, "schedule=*/5 * * * *", "timezone=UTC", "last schedule", "age", "suspend=false"}))
		}},
		{Row: 60, Kind: better, Weak: []string{"RC-W14"}, Theirs: "the status is lastScheduleTime and nothing else", Given: "any state", When: "the status is read", Then: "it explains the state",
			How: "conditions Valid, Suspended, Ready, Reconciling and Stalled, and Troubled while something is wrong; observedGeneration, nextScheduleTime, active, lastSkipped", Run: func(e *env) {
				cron := e.given()
				e.explains(cron, rayv1.ReasonScheduled)
				e.nextIs(cron, tick(cron))
				e.at(cron, tick(cron))
				run := e.ran(cron, tick(cron))
				e.nextIs(cron, tick(cron, 1))
				e.Expect(cron.Status.Active).To(HaveLen(1))
				e.Expect(cron.Status.Active[0]).To(And(HaveField("Kind", "RayJob"), HaveField("Name", run.Name), HaveField("UID", run.UID)))
				e.ends(run, rayv1.JobStatusSucceeded)
				e.Eventually(func() any {
					e.refresh(cron)
					return cron.Status.Active
				}).Should(BeEmpty())
				e.change(cron, suspend(true))
				e.explains(cron, rayv1.ReasonSuspended)
				e.Expect(cron.Status.NextScheduleTime).To(BeNil())
				e.change(cron, schedule("not a cron"))
				e.explains(cron, rayv1.ReasonSpecInvalid)
			}},
		{Row: 62, Kind: better, Weak: []string{"RC-W14"}, Theirs: "the operator tries again in silence", Given: "a quota that allows no RayJob", When: "it is 00:05", Then: "a Warning and a condition; it is tried again",
			How: "with growing pauses, until the next tick or the end of startingDeadlineSeconds", Run: func(e *env) {
				quota := e.noJobs()
				cron := e.given()
				e.clock.set(tick(cron), true)
				e.touch(cron)
				e.Expect(e.said(cron, "Warning", "FailedToCreateRayJob")).To(ContainSubstring("exceeded quota"))
				e.Expect(e.have(cron, rayv1.ConditionStalled, metav1.ConditionTrue, rayv1.ReasonFailedToCreateRayJob)).To(ContainSubstring("exceeded quota"))
				e.Lift(e.t, quota)
				e.ran(cron, tick(cron))
				e.have(cron, rayv1.ConditionStalled, metav1.ConditionFalse, rayv1.ReasonScheduled)
			}},
	}
}

// explains waits until the condition Ready has the reason, and checks that every condition speaks of the present spec.
func (e *env) explains(cron *rayv1.RayCronJob, reason string) {
	e.t.Helper()
	status := metav1.ConditionFalse
	if reason == rayv1.ReasonScheduled {
		status = metav1.ConditionTrue
	}
	e.have(cron, rayv1.ConditionReady, status, reason)
	e.Expect(cron.Status.ObservedGeneration).To(Equal(cron.Generation))
	var kinds []string
	for _, c := range cron.Status.Conditions {
		kinds = append(kinds, c.Type)
		e.Expect(c.ObservedGeneration).To(Equal(cron.Generation), "condition %s", c.Type)
	}
	wanted := []string{"Valid", "Suspended", "Ready", "Reconciling", "Stalled"}
	if reason == rayv1.ReasonSpecInvalid {
		wanted = append(wanted, "Troubled")
	}
	e.Expect(kinds).To(ConsistOf(wanted))
}
