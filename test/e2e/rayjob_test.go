//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// jobTest looks at RayJobs from both sides: as objects of Kubernetes, and as records in Ray's own list.
type jobTest struct {
	*world
	t *testing.T
	g Gomega
}

// jobCase is a RayJob that is started together with others, and what is then done to it and asked of it.
type jobCase struct {
	name  string
	given *rayv1.RayJob
	then  func(jobTest, *rayv1.RayJob)
}

// together starts all the jobs, so that Ray is busy with all of them, and then goes through the cases.
func (w *world) together(t *testing.T, cases []jobCase) {
	t.Helper()
	for _, c := range cases {
		jobTest{w, t, NewWithT(t)}.create(c.given)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			since := time.Now()
			c.then(jobTest{w, t, NewWithT(t)}, c.given)
			t.Logf("this took another %s", time.Since(since).Round(time.Second))
		})
	}
}

// record is a job as Ray's job API tells it.
type record struct {
	Type         string            `json:"type"`
	SubmissionID string            `json:"submission_id"`
	Status       rayv1.JobStatus   `json:"status"`
	Entrypoint   string            `json:"entrypoint"`
	Metadata     map[string]string `json:"metadata"`
	RuntimeEnv   struct {
		EnvVars map[string]string `json:"env_vars"`
	} `json:"runtime_env"`
}

// ray calls Ray's job API through the API server and the head Service of a cluster.
func (w *world) ray(ctx context.Context, method, cluster, path string, body any) ([]byte, error) {
	service := fmt.Sprintf("/api/v1/namespaces/%s/services/%s-head-svc:dashboard/proxy", w.namespace, cluster)
	request := w.typed.CoreV1().RESTClient().Verb(method).AbsPath(service + path)
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		request = request.SetHeader("Content-Type", "application/json").Body(encoded)
	}
	answer, err := request.Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("%s %s of RayCluster %s: %w: %s", method, path, cluster, err, answer)
	}
	return answer, nil
}

// records are all jobs that were ever submitted to a cluster.
func (j jobTest) records(cluster string) []record {
	j.t.Helper()
	var all []record
	j.g.Eventually(func(g Gomega) {
		answer, err := j.ray(j.t.Context(), "GET", cluster, "/api/jobs/", nil)
		g.Expect(err).ToNot(HaveOccurred())
		g.Expect(json.Unmarshal(answer, &all)).To(Succeed(), "%s", answer)
	}, podPatience, time.Second).Should(Succeed())
	return slices.DeleteFunc(all, func(r record) bool { return r.Type != "SUBMISSION" })
}

// marked are the records that carry the operator's mark of this RayJob.
func (j jobTest) marked(job *rayv1.RayJob) []record {
	j.t.Helper()
	return slices.DeleteFunc(j.records(job.Status.RayClusterName), func(r record) bool {
		return r.Metadata[rayv1.MetadataRayJobUID] != string(job.UID)
	})
}

// only is the one record of the RayJob: it was submitted once, as the attempt that the status names.
func (j jobTest) only(job *rayv1.RayJob) record {
	j.t.Helper()
	records := j.marked(job)
	j.g.Expect(records).To(HaveLen(1), "RayJob %s was submitted once", job.Name)
	j.g.Expect(records[0].SubmissionID).To(Equal(job.Status.JobId))
	j.g.Expect(records[0].Metadata).To(HaveKeyWithValue(rayv1.MetadataAttempt, fmt.Sprint(job.Status.Attempt)))
	return records[0]
}

// output is what the driver wrote, as Ray keeps it.
func (j jobTest) output(job *rayv1.RayJob) string {
	j.t.Helper()
	answer, err := j.ray(j.t.Context(), "GET", job.Status.RayClusterName, "/api/jobs/"+job.Status.JobId+"/logs", nil)
	j.g.Expect(err).ToNot(HaveOccurred())
	var log struct {
		Logs string `json:"logs"`
	}
	j.g.Expect(json.Unmarshal(answer, &log)).To(Succeed())
	return log.Logs
}

func (j jobTest) create(job *rayv1.RayJob) {
	j.t.Helper()
	job.Namespace = j.namespace
	j.g.Expect(j.Create(j.t.Context(), job)).To(Succeed())
}

func (j jobTest) change(job *rayv1.RayJob, change func(*rayv1.RayJobSpec)) {
	j.t.Helper()
	j.get(j.t, j.g, job.Name, job)
	base := job.DeepCopy()
	change(&job.Spec)
	j.g.Expect(j.Patch(j.t.Context(), job, client.MergeFrom(base))).To(Succeed())
}

// phase waits until the RayJob is in a phase.
func (j jobTest) phase(job *rayv1.RayJob, want rayv1.JobDeploymentStatus) {
	j.t.Helper()
	j.g.Eventually(func() rayv1.JobDeploymentStatus {
		j.get(j.t, j.g, job.Name, job)
		return job.Status.JobDeploymentStatus
	}, jobPatience, time.Second).Should(Equal(want), "RayJob %s", job.Name)
}

// runs waits until an attempt runs: its driver is there, and Ray, the RayJob and its conditions say so.
func (j jobTest) runs(job *rayv1.RayJob, attempt int32) {
	j.t.Helper()
	j.g.Eventually(func(g Gomega) {
		j.get(j.t, g, job.Name, job)
		g.Expect(job.Status.Attempt).To(Equal(attempt), "attempt of RayJob %s", job.Name)
		g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusRunning), "RayJob %s: %s", job.Name, job.Status.Message)
	}, jobPatience, time.Second).Should(Succeed())
	j.g.Expect(meta.IsStatusConditionTrue(job.Status.Conditions, rayv1.ConditionSubmitted)).To(BeTrue())
	j.g.Expect(meta.IsStatusConditionTrue(job.Status.Conditions, rayv1.ConditionRunning)).To(BeTrue())
	j.g.Eventually(func() string { return j.drivers(job) }, podPatience, time.Second).ShouldNot(BeEmpty(), "driver of RayJob %s", job.Name)
}

// ends waits until the RayJob has ended, as expected and after that many failed attempts. Its conditions say the same.
func (j jobTest) ends(job *rayv1.RayJob, phase rayv1.JobDeploymentStatus, status rayv1.JobStatus, reason rayv1.JobFailedReason, failed int32) {
	j.t.Helper()
	*job = *j.ended(j.t, j.g, job.Name)
	got := job.Status
	j.g.Expect(got.JobDeploymentStatus).To(Equal(phase), "RayJob %s: %s: %s", job.Name, got.Reason, got.Message)
	j.g.Expect(got.JobStatus).To(Equal(status), "RayJob %s: %s: %s", job.Name, got.Reason, got.Message)
	j.g.Expect(got.Reason).To(Equal(reason), "RayJob %s: %s", job.Name, got.Message)
	j.g.Expect(ptr.Deref(got.Failed, -1)).To(Equal(failed), "failed attempts of RayJob %s", job.Name)
	succeeded := status == rayv1.JobStatusSucceeded
	j.g.Expect(ptr.Deref(got.Succeeded, -1) == 1).To(Equal(succeeded), "status.succeeded of RayJob %s", job.Name)
	for condition, want := range map[string]bool{
		rayv1.ConditionSucceeded: succeeded,
		rayv1.ConditionFailed:    phase == rayv1.JobDeploymentStatusFailed,
		rayv1.ConditionStopped:   status == rayv1.JobStatusStopped,
		rayv1.ConditionRunning:   false,
	} {
		j.g.Expect(meta.IsStatusConditionTrue(got.Conditions, condition)).To(Equal(want), "condition %s of RayJob %s", condition, job.Name)
	}
}

func (j jobTest) succeeds(job *rayv1.RayJob) {
	j.t.Helper()
	j.ends(job, rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded, "", 0)
}

// failsItself waits until the RayJob has failed because of its program, which is kept on the object.
func (j jobTest) failsItself(job *rayv1.RayJob, exitCode int32, lastWords string) {
	j.t.Helper()
	j.ends(job, rayv1.JobDeploymentStatusFailed, rayv1.JobStatusFailed, rayv1.AppFailed, 1)
	found := job.Status.PostMortem
	j.g.Expect(found).ToNot(BeNil(), "post-mortem of RayJob %s", job.Name)
	j.g.Expect(found.Reason).To(Equal(rayv1.AppFailed))
	j.g.Expect(ptr.Deref(found.ExitCode, -1)).To(Equal(exitCode), "exit code of RayJob %s", job.Name)
	j.g.Expect(found.Log).To(ContainSubstring(lastWords))
}

// stopped looks for a trace of the stopped job: Ray has stopped it, and its driver is gone.
func (j jobTest) stopped(job *rayv1.RayJob) {
	j.t.Helper()
	j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusStopped), "Ray about the job of RayJob %s", job.Name)
	j.g.Expect(j.drivers(job)).To(BeEmpty(), "no driver of RayJob %s is left", job.Name)
}

// gated is an entrypoint that ends well as soon as the test opens the gate of that name in the head.
func gated(name string) string {
	return fmt.Sprintf("echo the driver waits; until test -e %s; do sleep 0.5; done; echo the driver goes on", gate(name))
}

func gate(name string) string { return "/tmp/gate-of-" + name }

// open lets the gated driver of a RayJob come to its end.
func (j jobTest) open(job *rayv1.RayJob) {
	j.t.Helper()
	_, err := j.exec(j.t.Context(), j.head(j.t, j.g, job.Status.RayClusterName), "touch", gate(job.Name))
	j.g.Expect(err).ToNot(HaveOccurred())
}

// drivers lists the processes in the head that run the gated entrypoint of a RayJob. The brackets keep the listing
// from finding itself.
func (j jobTest) drivers(job *rayv1.RayJob) string {
	j.t.Helper()
	find := fmt.Sprintf("grep -las '[/]tmp/gate-of-%s' /proc/[0-9]*/cmdline; true", job.Name)
	out, err := j.exec(j.t.Context(), j.head(j.t, j.g, job.Status.RayClusterName), "sh", "-c", find)
	j.g.Expect(err).ToNot(HaveOccurred())
	return out
}

// eventOf waits for an event about the RayJob.
func (j jobTest) eventOf(job *rayv1.RayJob, reason string) {
	j.t.Helper()
	j.g.Eventually(func() []string {
		events := &corev1.EventList{}
		j.g.Expect(j.List(j.t.Context(), events, client.InNamespace(j.namespace))).To(Succeed())
		var reasons []string
		for _, event := range events.Items {
			if event.InvolvedObject.UID == job.UID {
				reasons = append(reasons, event.Reason)
			}
		}
		return reasons
	}, podPatience, time.Second).Should(ContainElement(reason), "events of RayJob %s", job.Name)
}

// gone waits until an object does not exist.
func (j jobTest) gone(object client.Object) {
	j.t.Helper()
	j.g.Eventually(func() bool {
		return apierrors.IsNotFound(j.Get(j.t.Context(), client.ObjectKeyFromObject(object), object))
	}, podPatience, time.Second).Should(BeTrue(), "%T %s must go", object, object.GetName())
}

// losesHead takes away the head on which the RayJob runs, at once and without a word.
func (j jobTest) losesHead(job *rayv1.RayJob) {
	j.t.Helper()
	head := j.head(j.t, j.g, job.Status.RayClusterName)
	j.g.Expect(j.Delete(j.t.Context(), head, client.GracePeriodSeconds(0))).To(Succeed())
}

// onCluster is a RayJob for an existing cluster.
func onCluster(cluster, name string, mode rayv1.JobSubmissionMode, entrypoint string) *rayv1.RayJob {
	return &rayv1.RayJob{
		ObjectMeta: objectMeta("", name),
		Spec: rayv1.RayJobSpec{
			ClusterSelector: map[string]string{rayv1.LabelCluster: cluster},
			SubmissionMode:  mode,
			Entrypoint:      entrypoint,
		},
	}
}

// onItsOwn is a RayJob with a cluster of its own, which is the one of testdata/rayjob-http.yaml and stays after the end.
func onItsOwn(t *testing.T, name string, mode rayv1.JobSubmissionMode, entrypoint string) *rayv1.RayJob {
	t.Helper()
	text, err := os.ReadFile("testdata/rayjob-http.yaml")
	if err != nil {
		t.Fatal(err)
	}
	job := &rayv1.RayJob{}
	if err := yaml.UnmarshalStrict(text, job); err != nil {
		t.Fatal(err)
	}
	job.Name = name
	job.Spec.SubmissionMode, job.Spec.Entrypoint, job.Spec.ShutdownAfterJobFinishes = mode, entrypoint, false
	// Clusters that start side by side on two cores start slowly, and Ray would begin each start of a driver again.
	head := &job.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0]
	head.Env = append(head.Env, corev1.EnvVar{Name: "RAY_worker_register_timeout_seconds", Value: "600"})
	head.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("150m") // there must be room for submitters beside them
	return job
}
