package rayjob

import (
	"strconv"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// ray waits until the operator asks the dashboard of the present attempt, and returns that.
func (e *env) ray(job *rayv1.RayJob) *fakedashboard.Dashboard {
	e.t.Helper()
	var ray *fakedashboard.Dashboard
	e.follow(job, func(s *rayv1.RayJobStatus) any {
		ray = e.Rays.Dashboard(s.DashboardURL)
		return ray != nil
	}).Should(BeTrue(), "the dashboard of the job is never asked")
	return ray
}

// mark is the metadata of a job that was submitted for the RayJob.
func mark(job *rayv1.RayJob) map[string]string {
	return map[string]string{"heliostat.io/rayjob-uid": string(job.UID), "heliostat.io/attempt": strconv.Itoa(int(job.Status.Attempt))}
}

// submits plays the submitter: once its Job is there, Ray has the job.
func (e *env) submits(job *rayv1.RayJob) (*fakedashboard.Dashboard, *batchv1.Job) {
	e.t.Helper()
	e.phase(job, rayv1.JobDeploymentStatusRunning)
	submitter := e.submitter(job)
	ray := e.ray(job)
	ray.PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Entrypoint: job.Spec.Entrypoint, Metadata: mark(job),
		Step: fakedashboard.Step{Status: "RUNNING"}})
	return ray, submitter
}

// submitted makes the RayJob and follows it until its job runs in Ray, in any mode in which somebody submits.
func (e *env) submitted(edits ...edit) (*rayv1.RayJob, *fakedashboard.Dashboard) {
	e.t.Helper()
	job := e.given(edits...)
	ray := e.runs(job)
	return job, ray
}

// runs follows the RayJob until its job runs in Ray, in any mode in which somebody submits.
func (e *env) runs(job *rayv1.RayJob) *fakedashboard.Dashboard {
	e.t.Helper()
	if job.Spec.SubmissionMode == rayv1.K8sJobMode {
		e.submits(job)
	}
	e.phase(job, rayv1.JobDeploymentStatusRunning)
	if job.Spec.SubmissionMode == rayv1.SidecarMode {
		e.letIn(job)
		e.ray(job).PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Metadata: mark(job), Step: fakedashboard.Step{Status: "RUNNING"}})
	}
	e.jobStatus(job, rayv1.JobStatusRunning)
	return e.ray(job)
}

// letIn waits until the submitter in the head Pod may submit.
func (e *env) letIn(job *rayv1.RayJob) {
	e.t.Helper()
	e.Eventually(func() map[string]string { return e.head(job).Annotations }).
		Should(HaveKey(rayv1.AnnotationSubmitTo), "the sidecar is never let in")
}

// raySays gives the job of the present attempt a status in Ray, with Ray's usual message.
func (e *env) raySays(job *rayv1.RayJob, status rayv1.JobStatus) {
	e.t.Helper()
	e.ray(job).SetStep(job.Status.JobId, fakedashboard.Step{Status: string(status)})
}

// ends has the job end in Ray and its submitter, if there is one, end in peace.
func (e *env) ends(job *rayv1.RayJob, status rayv1.JobStatus) {
	e.t.Helper()
	e.raySays(job, status)
	if job.Spec.SubmissionMode == rayv1.K8sJobMode {
		e.FinishJob(e.t, e.submitter(job), batchv1.JobComplete)
	}
}

// succeeded makes the RayJob and follows it to its end.
func (e *env) succeeded(edits ...edit) *rayv1.RayJob {
	e.t.Helper()
	job, _ := e.submitted(edits...)
	e.ends(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	return job
}

// head waits for the head Pod of the present attempt and returns it.
func (e *env) head(job *rayv1.RayJob) *corev1.Pod {
	e.t.Helper()
	var pods []corev1.Pod
	e.soon(func() any {
		pods = e.heads(job)
		return pods
	}).Should(HaveLen(1))
	return &pods[0]
}

// heads are the head Pods of the present attempt, terminating ones included.
func (e *env) heads(job *rayv1.RayJob) []corev1.Pod {
	return e.Pods(e.t, e.ns, harness.HeadOf(job.Status.RayClusterName))
}
