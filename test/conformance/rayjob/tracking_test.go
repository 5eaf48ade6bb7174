package rayjob

import (
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func trackingCases() []Case {
	return []Case{
		{Row: 11, Kind: same, When: "Ray says RUNNING", Then: "jobStatus, rayJobInfo.startTime, and Service <job>-head-svc", Run: followsRay},
		{Row: 12, Kind: same, Given: "the submitter still prints the log", When: "Ray says SUCCEEDED", Then: "jobStatus SUCCEEDED, and phase Running", Run: func(e *env) {
			job, _ := e.submitted()
			e.raySays(job, rayv1.JobStatusSucceeded)
			e.jobStatus(job, rayv1.JobStatusSucceeded)
			e.rest()
			e.phase(job, rayv1.JobDeploymentStatusRunning)
		}},
		{Row: 13, Kind: same, Given: "Ray has said SUCCEEDED", When: "the submitter is Complete", Then: "Complete, endTime, succeeded 1, no reason", Run: func(e *env) {
			job, _ := e.submitted()
			e.raySays(job, rayv1.JobStatusSucceeded)
			e.jobStatus(job, rayv1.JobStatusSucceeded)
			e.FinishJob(e.t, e.submitter(job), batchv1.JobComplete)
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			e.Expect(job.Status.EndTime).ToNot(BeNil())
			e.Expect(job.Status.Reason).To(BeEmpty())
			e.counts(job, 1, 0)
		}},
		{Row: 14, Kind: same, Given: "the submitter is Complete", When: "Ray says FAILED", Then: "Failed, AppFailed, failed 1, Ray's message", Run: func(e *env) {
			job, ray := e.submitted()
			ray.SetStep(job.Status.JobId, fakedashboard.Step{Status: "FAILED", Message: "ValueError: no data"})
			e.FinishJob(e.t, e.submitter(job), batchv1.JobComplete)
			e.fails(job, rayv1.AppFailed)
			e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusFailed))
			e.Expect(job.Status.Message).To(ContainSubstring("ValueError: no data"))
			e.counts(job, 0, 1)
		}},
		{Row: 15, Kind: same, Given: "the submitter is Complete", When: "Ray says STOPPED", Then: "Complete, STOPPED, counters 0", Run: func(e *env) {
			job, _ := e.submitted()
			e.ends(job, rayv1.JobStatusStopped)
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusStopped))
			e.counts(job, 0, 0)
		}},
		{Row: 16, Kind: same, Given: "Ray does not know the job", When: "the submitter has Failed", Then: "Failed, SubmissionFailed, no jobStatus",
			How: "Ray is asked once more before that", Run: func(e *env) { e.submitterEnds(batchv1.JobFailed, rayv1.SubmissionFailed) }},
		{Row: 17, Kind: same, Given: "Ray does not know the job", When: "the submitter is Complete", Then: "Failed, AppFailed",
			How: "Ray is asked once more before that", Run: func(e *env) { e.submitterEnds(batchv1.JobComplete, rayv1.AppFailed) }},
	}
}

func followsRay(e *env) {
	job := e.given()
	e.submitter(job)
	e.refresh(job)
	began := time.UnixMilli(1_700_000_000_123)
	e.ray(job).PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Metadata: mark(job), StartTime: began,
		Step: fakedashboard.Step{Status: "RUNNING"}})
	e.jobStatus(job, rayv1.JobStatusRunning)
	e.Expect(job.Status.RayJobInfo.StartTime.Unix()).To(Equal(began.Unix()))
	e.Expect(job.Status.RayJobInfo.EndTime).To(BeNil())
	service := &corev1.Service{}
	e.soon(func() any { return e.read(service, "train-head-svc") }).Should(BeNil())
	e.Expect(service.Spec.Selector).To(HaveKeyWithValue(rayv1.LabelCluster, job.Status.RayClusterName))
	e.Expect(service.Labels).To(And(HaveKeyWithValue("ray.io/originated-from-cr-name", name), HaveKeyWithValue("ray.io/originated-from-crd", "RayJob"),
		HaveKeyWithValue("ray.io/node-type", "head"), HaveKeyWithValue("ray.io/identifier", "train-head")))
}

// submitterEnds has the submitter end although Ray does not know the job.
func (e *env) submitterEnds(condition batchv1.JobConditionType, reason rayv1.JobFailedReason) {
	e.t.Helper()
	job := e.given()
	submitter := e.submitter(job)
	e.FinishJob(e.t, submitter, condition)
	e.fails(job, reason)
	e.Expect(job.Status.JobStatus).To(BeEmpty())
	e.counts(job, 0, 1)
}
