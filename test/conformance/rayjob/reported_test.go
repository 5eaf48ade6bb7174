package rayjob

import (
	"net/http"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// lagging is how far the operator's caches are behind.
const lagging = 400 * time.Millisecond

func statusIsLost(e *env) {
	e.start(harness.Transport(harness.DelayWatches(lagging)), harness.Transport(harness.LoseAnswers("patch", "rayjobs/status", 4)))
	job, ray := e.submitted(overHTTP, tries(1))
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.rest()
	e.Expect(ray.JobIDs()).To(Equal([]string{job.Status.JobId}))
	e.Expect(ray.Submissions(job.Status.JobId)).To(Equal(1))
	e.Expect(e.clusters()).To(HaveLen(1))
	e.counts(job, 1, 0)
}

func lateAnswer(e *env) {
	e.newRays(func(ray *fakedashboard.Dashboard) {
		ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointSubmit, Times: 1, TakesEffect: true, Delay: 5 * time.Second,
			Code: http.StatusGatewayTimeout, Body: "upstream request timeout"})
	})
	job, ray := e.submitted(overHTTP)
	e.stays(job, ray, rayv1.JobDeploymentStatusRunning)
	e.Expect(ray.Attempts(job.Status.JobId)).To(Equal(1))
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.counts(job, 1, 0)
}

func dashboardAway(e *env) {
	job, ray := e.submitted(tries(1))
	cluster, submitter := e.cluster(job), e.submitter(job)
	ray.Down()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).ShouldNot(BeNil())
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusRunning))
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusRunning))
	ray.Up()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).Should(BeNil())
	e.ends(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.counts(job, 1, 0)
	e.Expect(e.cluster(job).UID).To(Equal(cluster.UID))
	e.Expect(e.submitter(job).UID).To(Equal(submitter.UID))
}

// noRestarts is the RayJob of the report: neither the submitter nor the head is tried again.
func noRestarts(j *rayv1.RayJob) {
	j.Spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](0)}
	j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
}

// headDies kills the head under a job that runs; the submitter, which follows the log there, fails with it.
func headDies(e *env, job *rayv1.RayJob) {
	e.t.Helper()
	ray, submitter := e.ray(job), e.submitter(job)
	e.Kill(e.t, e.head(job))
	ray.Restart()
	e.FinishJob(e.t, submitter, batchv1.JobFailed)
}

func headKilled(e *env) {
	job, _ := e.submitted(named("once"), noRestarts, givesUpCluster(0))
	cluster := e.cluster(job)
	headDies(e, job)
	e.fails(job, rayv1.JobLost)
	e.gone(cluster)
	e.counts(job, 0, 1)

	again, _ := e.submitted(named("twice"), noRestarts, givesUpCluster(0), tries(1))
	first := again.Status.RayClusterName
	headDies(e, again)
	e.follow(again, func(s *rayv1.RayJobStatus) any { return s.Attempt }).Should(BeEquivalentTo(2))
	e.runs(again)
	e.Expect(again.Status.RayClusterName).ToNot(Equal(first))
	headDies(e, again)
	e.fails(again, rayv1.JobLost)
	e.Expect(again.Status.Attempt).To(BeEquivalentTo(2))
	e.counts(again, 0, 2)
}

func sidecarHeadDeleted(e *env) {
	job, ray := e.submitted(mode(rayv1.SidecarMode))
	e.Kill(e.t, e.head(job))
	ray.Down()
	e.phase(job, rayv1.JobDeploymentStatusFailed)
	e.rest()
	e.Expect(e.heads(job)).To(BeEmpty(), "the head is made again")
	e.counts(job, 0, 1)
}

func programFails(e *env) {
	job, ray := e.submitted()
	submitter := e.submitter(job)
	submitter.Status.Failed = 1
	e.Expect(e.Status().Update(e.t.Context(), submitter)).To(Succeed())
	ray.SetStep(job.Status.JobId, fakedashboard.Step{Status: "FAILED", ErrorType: "JOB_ENTRYPOINT_COMMAND_ERROR", ExitCode: ptr.To(1),
		Message: "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\nboom"})
	e.FinishJob(e.t, submitter, batchv1.JobComplete)
	e.fails(job, rayv1.AppFailed)
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusFailed))
	e.Expect(job.Status.Message).To(ContainSubstring("boom"))
	e.Expect(job.Status.PostMortem.ExitCode).To(HaveValue(BeEquivalentTo(1)))
	e.counts(job, 0, 1)
}

func lateDashboard(e *env) {
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.Down() })
	withJob := e.given(named("k8s"))
	withHTTP := e.given(named("http"), overHTTP)
	for _, job := range []*rayv1.RayJob{withJob, withHTTP} {
		e.phase(job, rayv1.JobDeploymentStatusRunning)
		e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatusCheckFailureStartTime }).ShouldNot(BeNil())
	}
	ray := e.ray(withHTTP)
	e.Consistently(e.jobs, "5s", "1s").Should(BeEmpty(), "a submitter is made while nobody answers")
	e.Expect(ray.Attempts(withHTTP.Status.JobId)).To(BeZero())

	ray.Up()
	e.ray(withJob).Up()
	e.runs(withHTTP)
	e.runs(withJob)
	e.counts(withJob, 0, 0)
}

func crashLoop(e *env) {
	e.noKubelet = true
	open := e.given(named("open"))
	limited := e.given(named("limited"), func(j *rayv1.RayJob) { j.Spec.PreRunningDeadlineSeconds = ptr.To[int32](3600) })
	for _, job := range []*rayv1.RayJob{open, limited} {
		e.cluster(job)
		e.soon(func() any { return e.heads(job) }).Should(HaveLen(1))
		head := e.head(job)
		e.SetPod(e.t, head, harness.Ready, harness.Waiting("ray-head", "CrashLoopBackOff", "back-off 5m0s restarting failed container"))
	}
	e.soon(func() any {
		e.refresh(open)
		messages := []string{open.Status.Message}
		for _, condition := range open.Status.Conditions {
			messages = append(messages, condition.Reason+": "+condition.Message)
		}
		return messages
	}).Should(ContainElement(ContainSubstring("CrashLoopBackOff")))
	e.Expect(open.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusInitializing))

	e.follow(limited, func(s *rayv1.RayJobStatus) any { return s.Message }).Should(ContainSubstring("CrashLoopBackOff"))
	e.change(limited, func(j *rayv1.RayJob) { j.Spec.PreRunningDeadlineSeconds = ptr.To[int32](1) })
	e.fails(limited, rayv1.PreRunningDeadlineExceeded)
	e.Expect(limited.Status.Message).To(ContainSubstring("CrashLoopBackOff"))
}

func submitterReadsToTheEnd(e *env) {
	job, ray := e.submitted(givesUpCluster(0))
	cluster, submitter := e.cluster(job), e.submitter(job)
	pod := e.JobPod(e.t, submitter)
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.jobStatus(job, rayv1.JobStatusSucceeded)
	e.rest()
	e.refresh(job)
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusRunning))
	e.Expect(e.isGone(cluster)).To(BeFalse(), "the cluster goes while the submitter reads the log")
	e.SetPod(e.t, pod, harness.Ended(corev1.PodSucceeded, ""))
	e.FinishJob(e.t, submitter, batchv1.JobComplete)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	e.gone(cluster)
	e.Expect(e.isGone(submitter)).To(BeFalse(), "the log is lost")
	e.Expect(slices.ContainsFunc(e.Pods(e.t, e.ns, nil), func(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })).To(BeFalse())
	e.Expect(ray.Requests(fakedashboard.EndpointStop)).To(BeZero())
}

func interactiveRetries(e *env) {
	job := e.given(mode(rayv1.InteractiveMode), tries(2))
	e.phase(job, rayv1.JobDeploymentStatusValidationFailed)
	e.Expect(job.Status.Message).To(ContainSubstring("spec.backoffLimit"))
	e.Expect(e.clusters()).To(BeEmpty())
}

func httpNeverEnds(e *env) {
	e.start(silenceOf(6 * time.Second))
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.Down() })
	silent := e.given(named("silent"), overHTTP, tries(1))
	e.phase(silent, rayv1.JobDeploymentStatusRunning)
	e.ray(silent)
	e.newRays(func(ray *fakedashboard.Dashboard) { hidesJobs(ray) })
	forgetful := e.given(named("forgetful"), overHTTP)
	e.fails(silent, rayv1.JobStatusCheckTimeoutExceeded)
	e.phase(forgetful, rayv1.JobDeploymentStatusFailed)
	e.Expect(forgetful.Status.Reason).To(BeElementOf(rayv1.JobLost, rayv1.JobStatusCheckTimeoutExceeded))
	e.Expect(e.ray(forgetful).Submissions(forgetful.Status.JobId)).To(Equal(1))
}

// hidesJobs makes a dashboard take jobs and never know any.
func hidesJobs(ray *fakedashboard.Dashboard) {
	ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointGet, Code: http.StatusNotFound, Body: "Job does not exist"})
}
