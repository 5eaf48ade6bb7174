package rayjob

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// specCases are about specs that are wrong, and that change.
func specCases() []Case {
	return []Case{
		{Row: 67, Kind: better, Weak: []string{"RJ-W5"}, Theirs: "ValidationFailed for ever; the job is not followed any more",
			Given: "a job that runs", When: "the spec becomes invalid, and is repaired", Then: "the job is followed all the time; the violation stands in a condition until then",
			How: "condition Valid; the last valid spec counts meanwhile", Run: invalidMeanwhile},
		{Row: 68, Kind: better, Weak: []string{"RJ-W5"}, Theirs: "the cluster stays",
			Given: "Complete, the time to live of the cluster not over", When: "the spec becomes invalid", Then: "the cluster is deleted in time",
			How: "a clean-up does not depend on a valid spec", Run: invalidBeforeCleanUp},
		{Row: 69, Kind: better, Weak: []string{"RJ-W5"}, Theirs: "ValidationFailed for ever",
			Given: "an invalid spec from the start", When: "it is repaired", Then: "the job starts", How: "ValidationFailed is left", Run: invalidFromTheStart},
		{Row: 91, Kind: better, Weak: []string{"RJ-W18"}, Theirs: "observedGeneration is never set",
			Given: "an invalid spec, a job that runs, one that has ended", When: "the spec changes", Then: "observedGeneration follows", How: "the whole status is written", Run: generations},
	}
}

func invalidMeanwhile(e *env) {
	job, ray := e.submitted(overHTTP)
	e.have(job, rayv1.ConditionValid, metav1.ConditionTrue, "")
	e.changeSeen(job, nonsense)
	e.Expect(e.have(job, rayv1.ConditionValid, metav1.ConditionFalse, "")).To(ContainSubstring("runtimeEnvYAML"))
	e.said(job, corev1.EventTypeWarning, "InvalidRayJobSpec")
	e.raySays(job, rayv1.JobStatusPending)
	e.jobStatus(job, rayv1.JobStatusPending)
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusRunning))
	e.changeSeen(job, repaired)
	e.have(job, rayv1.ConditionValid, metav1.ConditionTrue, "")
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.Expect(ray.Attempts(job.Status.JobId)).To(Equal(1))
}

func invalidBeforeCleanUp(e *env) {
	job := e.succeeded(overHTTP, givesUpCluster(12))
	e.changeSeen(job, nonsense)
	cluster := e.cluster(job)
	e.have(job, rayv1.ConditionValid, metav1.ConditionFalse, "")
	e.gone(cluster)
	e.refresh(job)
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusComplete))
}

func invalidFromTheStart(e *env) {
	job := e.given(overHTTP, nonsense)
	e.phase(job, rayv1.JobDeploymentStatusValidationFailed)
	e.said(job, corev1.EventTypeWarning, "InvalidRayJobSpec")
	e.rest()
	e.Expect(e.clusters()).To(BeEmpty())
	e.change(job, repaired)
	ray := e.runs(job)
	e.Expect(ray.Submissions(job.Status.JobId)).To(Equal(1))
	e.Expect(job.Status.Reason).To(BeEmpty())
	e.have(job, rayv1.ConditionValid, metav1.ConditionTrue, "")
}

func generations(e *env) {
	job := e.given(overHTTP, nonsense)
	e.phase(job, rayv1.JobDeploymentStatusValidationFailed)
	e.changeSeen(job, func(j *rayv1.RayJob) { j.Spec.Entrypoint = "python other.py" })
	e.changeSeen(job, repaired)
	e.runs(job)
	e.changeSeen(job, func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](3600) })
	e.raySays(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.changeSeen(job, func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = nil })
}

// awkwardSpecCases are about specs that KubeRay takes and then never gets anywhere with.
func awkwardSpecCases() []Case {
	return []Case{
		{Row: 83, Kind: better, Weak: []string{"RJ-W13"}, Theirs: "Running for ever; nothing is submitted",
			Given: "submissionMode Foo", When: "the RayJob is created, or changed to it", Then: "refused", How: "only the four modes are taken", Run: unknownMode},
		{Row: 85, Kind: better, Weak: []string{"RJ-W14"}, Theirs: "an endless loop of errors without a word in the status",
			Given: "metadata, rayVersion nightly", When: "the RayJob is created", Then: "the job is submitted with its metadata", How: "every Ray that is supported takes metadata", Run: nightly},
		{Row: 86, Kind: better, Weak: []string{"RJ-W14"}, Theirs: "a panic in each pass; a Job that the API server refuses",
			Given: "a submitter template without containers, and one without restartPolicy", When: "the RayJobs are created",
			Then: "the first one fails with a message; the second one has restartPolicy Never", How: "what is missing is told or filled in", Run: poorTemplates},
		{Row: 101, Kind: better, Weak: []string{"RJ-W23"}, Theirs: "documented as the limit of restarts, and rejected",
			Given: "SidecarMode, submitterConfig.backoffLimit", When: "the RayJob is created", Then: "ValidationFailed; the message names the field",
			How: "the rule is documented: the sidecar does not restart", Run: sidecarWithConfig},
	}
}

func unknownMode(e *env) {
	for _, mode := range []rayv1.JobSubmissionMode{"Foo", "httpmode"} {
		job := e.newJob(func(j *rayv1.RayJob) { j.Spec.SubmissionMode = mode })
		err := e.Create(e.t.Context(), job)
		e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused: %v", err)
		e.Expect(err.Error()).To(ContainSubstring("spec.submissionMode"))
	}
	job, _ := e.submitted()
	job.Spec.SubmissionMode = "Foo"
	err := e.Update(e.t.Context(), job)
	e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused: %v", err)
}

func nightly(e *env) {
	job := e.given(overHTTP, func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.RayVersion, j.Spec.Metadata = "nightly", map[string]string{"team": "a"}
	})
	ray := e.runs(job)
	in, _ := ray.Job(job.Status.JobId)
	e.Expect(in.Metadata).To(HaveKeyWithValue("team", "a"))

	other := e.given(named("other"), func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.RayVersion, j.Spec.Metadata = "nightly", map[string]string{"team": "a"}
	})
	e.runs(other)
}

func poorTemplates(e *env) {
	none := e.given(named("none"), func(j *rayv1.RayJob) {
		j.Spec.SubmitterPodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{}}}
	})
	e.follow(none, func(s *rayv1.RayJobStatus) any { return s.Message }).Should(ContainSubstring("submitterPodTemplate"))
	e.Expect(none.Status.JobDeploymentStatus).To(BeElementOf(rayv1.JobDeploymentStatusValidationFailed, rayv1.JobDeploymentStatusFailed))

	job := e.given(func(j *rayv1.RayJob) {
		j.Spec.SubmitterPodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mine", Image: "img:2"}}}}
	})
	e.runs(job)
	template := e.submitter(job).Spec.Template
	e.Expect(template.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
	e.Expect(container(template).Image).To(Equal("img:2"))
}

func sidecarWithConfig(e *env) {
	job := e.given(mode(rayv1.SidecarMode), func(j *rayv1.RayJob) {
		j.Spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](1)}
	})
	e.phase(job, rayv1.JobDeploymentStatusValidationFailed)
	e.Expect(job.Status.Message).To(ContainSubstring("spec.submitterConfig"))
	e.Expect(e.clusters()).To(BeEmpty())
}
