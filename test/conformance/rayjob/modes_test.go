package rayjob

import (
	"net/http"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func modeCases() []Case {
	return []Case{
		{Row: 22, Kind: same, Given: "HTTPMode", When: "the cluster is ready", Then: "one submission by the operator, and no Job", Run: func(e *env) {
			job, ray := e.submitted(mode(rayv1.HTTPMode))
			e.rest()
			e.Expect(ray.Attempts(job.Status.JobId)).To(Equal(1))
			sent, found := ray.Job(job.Status.JobId)
			e.Expect(found).To(BeTrue())
			e.Expect(sent.Entrypoint).To(Equal("python main.py"))
			e.Expect(e.jobs()).To(BeEmpty())
		}},
		{Row: 23, Kind: same, Given: "HTTPMode with runtime environment, metadata and reservations", When: "the job is submitted", Then: "objects and numbers where Ray wants them", Run: submitsEverything},
		{Row: 24, Kind: same, Given: "HTTPMode", When: "Ray takes the job, but answers that its id is taken", Then: "the job is followed; there is no second one", Run: func(e *env) {
			e.newRays(func(ray *fakedashboard.Dashboard) {
				ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointSubmit, Times: 1, TakesEffect: true, Code: http.StatusInternalServerError,
					Body: "ValueError: Job with submission_id x already exists. Please use a different submission_id.\n"})
			})
			job, ray := e.submitted(mode(rayv1.HTTPMode))
			e.rest()
			e.Expect(ray.Attempts(job.Status.JobId)).To(Equal(1))
			e.Expect(ray.JobIDs()).To(Equal([]string{job.Status.JobId}))
		}},
		{Row: 25, Kind: same, Given: "InteractiveMode", When: "the cluster is ready", Then: "Waiting, no jobId, no Job, no submission", Run: func(e *env) {
			job := e.waits()
			e.rest()
			e.refresh(job)
			e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusWaiting))
			e.Expect(job.Status.JobId).To(BeEmpty())
			e.Expect(e.jobs()).To(BeEmpty())
			if ray := e.Rays.Dashboard(job.Status.DashboardURL); ray != nil {
				e.Expect(ray.Requests(fakedashboard.EndpointSubmit)).To(BeZero())
			}
		}},
		{Row: 26, Kind: same, Given: "InteractiveMode, Waiting", When: "the user sets spec.jobId", Then: "Running with that jobId, and the job is followed", Run: func(e *env) {
			job := e.waits()
			e.change(job, func(j *rayv1.RayJob) { j.Spec.JobId = "mine" })
			e.phase(job, rayv1.JobDeploymentStatusRunning)
			e.Expect(job.Status.JobId).To(Equal("mine"))
			e.ray(job).PutJob(fakedashboard.Job{SubmissionID: "mine", Step: fakedashboard.Step{Status: "SUCCEEDED"}})
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			e.counts(job, 1, 0)
		}},
		{Row: 27, Kind: same, Given: "SidecarMode", When: "the cluster is made", Then: "its head template ends with container ray-job-submitter and never restarts, the annotation is set, and there is no Job", Run: addsSidecar},
		{Row: 28, Kind: same, Given: "SidecarMode, a running job", When: "the head Pod is deleted", Then: "Failed; no new head", Run: func(e *env) {
			job, _ := e.submitted(mode(rayv1.SidecarMode))
			e.Kill(e.t, e.head(job))
			e.phase(job, rayv1.JobDeploymentStatusFailed)
			e.rest()
			e.Expect(e.heads(job)).To(BeEmpty())
		}},
		{Row: 29, Kind: same, Given: "SidecarMode, Ray has said SUCCEEDED", When: "the sidecar ends with code 0", Then: "Complete", Run: func(e *env) {
			job, _ := e.submitted(mode(rayv1.SidecarMode))
			e.raySays(job, rayv1.JobStatusSucceeded)
			e.jobStatus(job, rayv1.JobStatusSucceeded)
			e.SetPod(e.t, e.head(job), harness.Exited("ray-job-submitter", "Completed", 0))
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			e.Expect(job.Status.Reason).To(BeEmpty())
			e.counts(job, 1, 0)
		}},
	}
}

// waits makes a RayJob whose user submits, and follows it until it waits for that.
func (e *env) waits(edits ...edit) *rayv1.RayJob {
	e.t.Helper()
	job := e.given(append([]edit{mode(rayv1.InteractiveMode)}, edits...)...)
	e.phase(job, rayv1.JobDeploymentStatusWaiting)
	return job
}

func submitsEverything(e *env) {
	job, ray := e.submitted(mode(rayv1.HTTPMode), func(j *rayv1.RayJob) {
		j.Spec.EntrypointNumCpus, j.Spec.EntrypointNumGpus, j.Spec.EntrypointResources = 1, 0.1, `{"fast": 2}`
		j.Spec.Metadata, j.Spec.RuntimeEnvYAML = map[string]string{"team": "a"}, "env_vars: {A: b}"
	})
	// The dashboard refuses other types than Ray's, and other keys.
	sent, found := ray.Job(job.Status.JobId)
	e.Expect(found).To(BeTrue())
	e.Expect(sent.NumCPUs).To(HaveValue(Equal(1.0)))
	e.Expect(sent.NumGPUs).To(HaveValue(Equal(0.1)))
	e.Expect(sent.Resources).To(Equal(map[string]float64{"fast": 2}))
	e.Expect(sent.RuntimeEnv).To(Equal(map[string]any{"env_vars": map[string]any{"A": "b"}}))
	e.Expect(sent.Metadata).To(HaveKeyWithValue("team", "a"))
}

func addsSidecar(e *env) {
	job := e.given(mode(rayv1.SidecarMode))
	cluster := e.cluster(job)
	head := cluster.Spec.HeadGroupSpec.Template.Spec
	e.Expect(head.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
	e.Expect(head.Containers).To(HaveLen(2))
	e.Expect(head.Containers[0].Name).To(Equal("ray-head"))
	sidecar := head.Containers[1]
	e.Expect(sidecar.Name).To(Equal("ray-job-submitter"))
	e.Expect(sidecar.Image).To(Equal("img:1"))
	e.Expect(sidecar.Resources.Limits).ToNot(BeEmpty())
	e.Expect(sidecar.Env).To(ContainElement(corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: job.Status.JobId}))
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("ray.io/disable-provisioned-head-restart", "true"))
	e.phase(job, rayv1.JobDeploymentStatusRunning)
	e.rest()
	e.Expect(e.jobs()).To(BeEmpty())
}
