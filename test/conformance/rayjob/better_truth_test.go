package rayjob

import (
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// truthCases are about whom to believe: Ray's own word about a job decides, and only a fresh one.
func truthCases() []Case {
	return []Case{
		{Row: 61, Kind: better, Weak: []string{"RJ-W1"}, Theirs: "Failed, because the submitter ended more than 30 s ago",
			Given: "a job that succeeds, and a submitter that ends, while the operator is away", When: "the operator comes back after a minute",
			Then: "Complete, SUCCEEDED, one success", How: "Ray is asked before anything is concluded", Run: succeedsMeanwhile},
		{Row: 62, Kind: better, Weak: []string{"RJ-W1"}, Theirs: "Failed, and the job runs once more",
			Given: "jobStatus SUCCEEDED stored, the operator away for a minute, one retry left, Ray gone", When: "the operator comes back",
			Then: "Complete; no second attempt", How: "a final word of Ray is final", Run: knownSuccess},
		{Row: 63, Kind: better, Weak: []string{"RJ-W2"}, Theirs: "Failed without asking Ray once",
			Given: "a failure timer that is 400 s old, Ray in good health", When: "the operator starts", Then: "Ray is asked, the timer is gone, the job goes on",
			How: "only silence that this process has heard itself counts", Run: oldTimer},
		{Row: 64, Kind: better, Weak: []string{"RJ-W3"}, Theirs: "Failed, SubmissionFailed",
			Given: "a job that runs", When: "its submitter fails", Then: "stays Running; the end is the one that Ray tells",
			How: "the submitter is a hint", Run: submitterFails},
		{Row: 65, Kind: better, Weak: []string{"RJ-W3"}, Theirs: "SubmissionFailed, with jobStatus RUNNING for ever",
			Given: "SidecarMode, a job that runs", When: "the sidecar exits with 1 before Ray says FAILED", Then: "Failed, AppFailed, jobStatus FAILED",
			How: "the sidecar is a hint", Run: sidecarIsFirst},
		{Row: 66, Kind: better, Weak: []string{"RJ-W4"}, Theirs: "errors for ever; Ray is never asked",
			Given: "a job that runs", When: "its submitter Job is deleted and Ray says SUCCEEDED later", Then: "Complete, SUCCEEDED; no new submitter",
			How: "a job that Ray has confirmed needs no submitter", Run: submitterDeleted},
		{Row: 102, Kind: better, Weak: []string{"RJ-W24"}, Theirs: "no grace at all, because two clocks are compared",
			Given: "a head whose clock is 10 minutes behind, a submitter that does not end", When: "the job succeeds",
			Then: "the grace period has its full length", How: "it counts from when the operator first heard of the end", Run: headClockBehind},
	}
}

func succeedsMeanwhile(e *env) {
	job, ray := e.submitted()
	submitter := e.submitter(job)
	e.operator.Stop()
	ray.SetStep(job.Status.JobId, fakedashboard.Step{Status: "SUCCEEDED"})
	e.endedAgo(submitter, batchv1.JobComplete)
	e.start()
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	e.counts(job, 1, 0)
}

func knownSuccess(e *env) {
	job, ray := e.submitted(tries(1))
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.jobStatus(job, rayv1.JobStatusSucceeded)
	cluster, submitter := job.Status.RayClusterName, e.submitter(job)
	e.operator.Stop()
	ray.Down()
	e.endedAgo(submitter, batchv1.JobFailed)
	e.start()
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.rest()
	e.refresh(job)
	e.counts(job, 1, 0)
	e.Expect(job.Status.Attempt).To(BeEquivalentTo(1))
	e.Expect(job.Status.RayClusterName).To(Equal(cluster))
	e.Expect(e.clusters()).To(HaveLen(1))
}

func oldTimer(e *env) {
	job, ray := e.submitted(overHTTP, tries(1))
	e.operator.Stop()
	e.changeStatus(job, func(s *rayv1.RayJobStatus) {
		s.JobStatusCheckFailureStartTime = ptr.To(metav1.NewTime(time.Now().Add(-400 * time.Second)))
	})
	e.start()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).Should(BeNil())
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	e.counts(job, 0, 0)
}

func submitterFails(e *env) {
	job, ray := e.submitted(tries(1))
	e.FinishJob(e.t, e.submitter(job), batchv1.JobFailed)
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.counts(job, 1, 0)
}

func sidecarIsFirst(e *env) {
	job, ray := e.submitted(mode(rayv1.SidecarMode))
	e.sidecarEnds(e.head(job), 1)
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	e.raySays(job, rayv1.JobStatusFailed)
	e.fails(job, rayv1.AppFailed)
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusFailed))
	e.counts(job, 0, 1)
}

func submitterDeleted(e *env) {
	job, ray := e.submitted()
	e.Expect(e.Delete(e.t.Context(), e.submitter(job), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	e.Expect(e.jobs()).To(BeEmpty(), "the submitter of a job that Ray has is made again")
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.counts(job, 1, 0)
}

func headClockBehind(e *env) {
	const grace, behind = 8 * time.Second, 10 * time.Minute
	e.start(graceOf(grace))
	job, ray := e.submitted()
	told := time.Now()
	ray.PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Metadata: mark(job), Step: fakedashboard.Step{Status: "SUCCEEDED"},
		StartTime: told.Add(-behind - time.Minute), EndTime: told.Add(-behind)})
	e.jobStatus(job, rayv1.JobStatusSucceeded)
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusRunning))
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	// Times in a status have whole seconds.
	e.Expect(job.Status.EndTime.Add(time.Second)).To(BeTemporally(">=", told.Add(grace)))
	e.counts(job, 1, 0)
}
