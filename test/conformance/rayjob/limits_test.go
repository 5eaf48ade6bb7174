package rayjob

import (
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// checkFailures is since when Ray cannot be asked, or nil.
func checkFailures(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }

func trackingLimitCases() []Case {
	return []Case{
		{Row: 18, Kind: better, Weak: []string{"RJ-W24"}, Given: "Ray has said SUCCEEDED", When: "the submitter never ends", Then: "Complete after the grace period, with its reason",
			Theirs: "the period counts from Ray's end time, by two clocks", How: "it counts from when we first heard of the end", Run: func(e *env) {
				e.start(harness.Env("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", "3"))
				job, _ := e.submitted()
				e.raySays(job, rayv1.JobStatusSucceeded)
				e.phase(job, rayv1.JobDeploymentStatusComplete)
				e.Expect(job.Status.Reason).To(Equal(rayv1.JobDeploymentStatusTransitionGracePeriodExceeded))
				e.counts(job, 1, 0)
			}},
		{Row: 19, Kind: same, Given: "a running job", When: "the dashboard refuses connections", Then: "jobStatusCheckFailureStartTime is set and stays", Run: func(e *env) {
			job, ray := e.submitted()
			ray.Down()
			e.follow(job, checkFailures).ShouldNot(BeNil())
			since := job.Status.JobStatusCheckFailureStartTime
			e.rest()
			e.refresh(job)
			e.Expect(job.Status.JobStatusCheckFailureStartTime).To(Equal(since))
			e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusRunning))
		}},
		{Row: 20, Kind: same, Given: "the dashboard refuses connections", When: "it answers again", Then: "the field is cleared", Run: func(e *env) {
			job, ray := e.submitted()
			ray.Down()
			e.follow(job, checkFailures).ShouldNot(BeNil())
			ray.Up()
			e.follow(job, checkFailures).Should(BeNil())
			e.phase(job, rayv1.JobDeploymentStatusRunning)
		}},
		{Row: 21, Kind: same, Given: "the dashboard refuses connections, backoffLimit 2", When: "the limit is over", Then: "Failed, JobStatusCheckTimeoutExceeded, no retry", Run: func(e *env) {
			e.start(harness.Env("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "4"))
			job, ray := e.submitted(func(j *rayv1.RayJob) { j.Spec.BackoffLimit = ptr.To[int32](2) })
			ray.Down()
			e.fails(job, rayv1.JobStatusCheckTimeoutExceeded)
			e.rest()
			e.fails(job, rayv1.JobStatusCheckTimeoutExceeded)
			e.counts(job, 0, 1)
		}},
	}
}
