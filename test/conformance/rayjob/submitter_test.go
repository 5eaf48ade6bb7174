package rayjob

import (
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func submitterCases() []Case {
	return []Case{
		{Row: 5, Kind: same, Given: "the head's image is img:1", When: "the submitter is made", Then: "container ray-job-submitter of that image, with requests and limits, never restarted; backoffLimit 2; three labels on Job and Pods", Run: defaultSubmitter},
		{Row: 6, Kind: same, Given: "submitterConfig.backoffLimit is 0", When: "the submitter is made", Then: "backoffLimit 0", Run: func(e *env) {
			job := e.given(func(j *rayv1.RayJob) { j.Spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](0)} })
			e.Expect(e.submitter(job).Spec.BackoffLimit).To(HaveValue(Equal(int32(0))))
		}},
		{Row: 7, Kind: same, Given: "submitterPodTemplate with a command", When: "the submitter is made", Then: "command and arguments stay; three variables are added", Run: ownCommand},
		{Row: 8, Kind: same, Given: "submitterPodTemplate without a command", When: "the submitter is made", Then: "bash waits for the dashboard, submits with --no-wait unless Ray has the job, and follows the log", Run: ownTemplate},
		{Row: 9, Kind: better, Weak: []string{"RJ-W20"}, Given: "reservations of 1 CPU and 0.5 GPUs, custom resources, metadata and a runtime environment", When: "the submitter is made", Then: "flags in KubeRay's order; none for what is not set",
			Theirs: "flags as described", How: "--metadata-json is always there, because each job of ours carries heliostat.io/rayjob-uid and heliostat.io/attempt", Run: submitFlags},
		{Row: 58, Kind: same, Given: "a cluster with token authentication", When: "the job starts", Then: "the operator's requests carry the token, and the submitter has it from the Secret", Run: tokenForAll},
		{Row: 98, Kind: same, Given: "operator with ENABLE_LOGIN_SHELL", When: "the submitter is made", Then: "bash -cel", Run: func(e *env) {
			e.start(harness.Env("ENABLE_LOGIN_SHELL", "true"))
			e.Expect(container(e.submitter(e.given()).Spec.Template).Command).To(Equal([]string{"/bin/bash", "-cel", "--"}))
		}},
	}
}

func defaultSubmitter(e *env) {
	submitter := e.submitter(e.given())
	e.Expect(submitter.Spec.BackoffLimit).To(HaveValue(Equal(int32(2))))
	e.Expect(submitter.Spec.Template.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
	c := container(submitter.Spec.Template)
	e.Expect(c.Name).To(Equal("ray-job-submitter"))
	e.Expect(c.Image).To(Equal("img:1"))
	for amount, resources := range map[string]corev1.ResourceList{"500m 200Mi": c.Resources.Requests, "1 1Gi": c.Resources.Limits} {
		e.Expect(resources.Cpu().String() + " " + resources.Memory().String()).To(Equal(amount))
	}
	for _, labels := range []map[string]string{submitter.Labels, submitter.Spec.Template.Labels} {
		e.Expect(labels).To(And(HaveKeyWithValue("ray.io/originated-from-cr-name", name), HaveKeyWithValue("ray.io/originated-from-crd", "RayJob"),
			HaveKeyWithValue("app.kubernetes.io/created-by", "kuberay-operator")))
	}
}

// template sets submitterPodTemplate.
func template(edit func(*corev1.Container)) edit {
	return func(j *rayv1.RayJob) {
		template := harness.PodTemplate("mine")
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		edit(&template.Spec.Containers[0])
		j.Spec.SubmitterPodTemplate = &template
	}
}

func ownCommand(e *env) {
	job := e.given(template(func(c *corev1.Container) {
		c.Command, c.Args, c.Env = []string{"submit"}, []string{"--now"}, []corev1.EnvVar{{Name: "A", Value: "b"}}
	}))
	c := container(e.submitter(job).Spec.Template)
	e.refresh(job)
	e.Expect(c.Command).To(Equal([]string{"submit"}))
	e.Expect(c.Args).To(Equal([]string{"--now"}))
	e.Expect(c.Env).To(Equal([]corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "PYTHONUNBUFFERED", Value: "1"},
		{Name: "RAY_DASHBOARD_ADDRESS", Value: job.Status.DashboardURL}, {Name: "RAY_JOB_SUBMISSION_ID", Value: job.Status.JobId}}))
}

func ownTemplate(e *env) {
	job := e.given(template(func(c *corev1.Container) { c.Image = "small:1" }))
	c := container(e.submitter(job).Spec.Template)
	e.refresh(job)
	e.Expect(c.Image).To(Equal("small:1"))
	e.Expect(c.Command).To(Equal([]string{"/bin/bash", "-ce", "--"}))
	address, id := "http://"+job.Status.DashboardURL, job.Status.JobId

	calls := e.runScript(c, "ray job status fails")
	e.Expect(calls[0][0]).To(Equal("python"))
	e.Expect(strings.Join(calls[0], " ")).To(And(ContainSubstring("/api/gcs_healthz"), ContainSubstring(address)))
	status, logs := []string{"ray", "job", "status", "--address", address, id}, []string{"ray", "job", "logs", "--address", address, "--follow", id}
	calls = rayCalls(calls)
	e.Expect(calls).To(HaveLen(3))
	e.Expect(calls[0]).To(Equal(status))
	e.Expect(strings.Join(calls[1], " ")).To(And(HavePrefix("ray job submit --address "+address+" --no-wait "), HaveSuffix(" -- python main.py")))
	e.Expect(calls[2]).To(Equal(logs))
	e.Expect(rayCalls(e.runScript(c, ""))).To(Equal([][]string{status, logs}), "a job that Ray has is only followed")
}

// rayCalls are those that run Ray's command line.
func rayCalls(calls [][]string) [][]string {
	return slices.DeleteFunc(calls, func(call []string) bool { return call[0] != "ray" })
}

func submitFlags(e *env) {
	full := e.given(func(j *rayv1.RayJob) {
		j.Spec.EntrypointNumCpus, j.Spec.EntrypointNumGpus, j.Spec.EntrypointResources = 1, 0.5, `{"fast": 2}`
		j.Spec.Metadata, j.Spec.RuntimeEnvYAML = map[string]string{"team": "a"}, "env_vars: {A: b}"
	})
	plain := e.given(func(j *rayv1.RayJob) { j.Name = "plain" })
	submit := e.submission(e.submitter(full))
	e.refresh(full)
	value := func(flag string) string {
		i := slices.Index(submit, flag)
		e.Expect(i).To(BeNumerically(">=", 0), "%s in %v", flag, submit)
		return submit[i+1]
	}
	e.Expect(flagsOf(submit)).To(Equal([]string{"--address", "--no-wait", "--runtime-env-json", "--metadata-json", "--submission-id",
		"--entrypoint-num-cpus", "--entrypoint-num-gpus", "--entrypoint-resources", "--"}))
	e.Expect(value("--runtime-env-json")).To(MatchJSON(`{"env_vars": {"A": "b"}}`))
	e.Expect(value("--metadata-json")).To(MatchJSON(`{"team": "a", "heliostat.io/rayjob-uid": "` + string(full.UID) + `", "heliostat.io/attempt": "1"}`))
	e.Expect(value("--submission-id")).To(Equal(full.Status.JobId))
	e.Expect(value("--entrypoint-num-cpus")).To(Equal("1.000000"))
	e.Expect(value("--entrypoint-num-gpus")).To(Equal("0.500000"))
	e.Expect(value("--entrypoint-resources")).To(Equal(`{"fast": 2}`))

	e.Expect(flagsOf(e.submission(e.submitter(plain)))).To(Equal([]string{"--address", "--no-wait", "--metadata-json", "--submission-id", "--"}))
}

// submission is the "ray job submit" that a submitter runs when Ray does not have the job.
func (e *env) submission(submitter *batchv1.Job) []string {
	e.t.Helper()
	for _, call := range e.runScript(container(submitter.Spec.Template), "ray job status fails") {
		if len(call) > 2 && call[2] == "submit" {
			return call
		}
	}
	e.t.Fatalf("Job %s submits nothing", submitter.Name)
	return nil
}

// flagsOf are the flags of a command up to the entrypoint, in their order.
func flagsOf(command []string) []string {
	var flags []string
	for _, word := range command {
		if strings.HasPrefix(word, "--") {
			flags = append(flags, word)
		}
		if word == "--" {
			break
		}
	}
	return flags
}

func tokenForAll(e *env) {
	const token = "s3cret"
	e.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "ours"}, StringData: map[string]string{"auth_token": token}})
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.RequireToken(token) })
	job, _ := e.submitted(func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.RayVersion = "2.52.0"
		j.Spec.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("ours")}
	})
	e.Expect(container(e.submitter(job).Spec.Template).Env).To(ContainElements(corev1.EnvVar{Name: "RAY_AUTH_MODE", Value: "token"},
		corev1.EnvVar{Name: "RAY_AUTH_TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "ours"}, Key: "auth_token"}}}))
}
