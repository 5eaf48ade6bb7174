package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// follow waits until the job has the wanted state, with the kubelet at work meanwhile.
func follow(t *testing.T, g Gomega, c harness.Cluster, job *rayv1.RayJob, want rayv1.JobDeploymentStatus) {
	t.Helper()
	g.Eventually(func() rayv1.JobDeploymentStatus {
		c.Kubelet(t, job.Namespace)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return job.Status.JobDeploymentStatus
	}).Should(Equal(want), "message: %s", job.Status.Message)
}

func dashboardOf(g Gomega, c harness.Cluster, job *rayv1.RayJob) *fakedashboard.Dashboard {
	g.Expect(job.Status.DashboardURL).ToNot(BeEmpty())
	var ray *fakedashboard.Dashboard
	g.Eventually(func() *fakedashboard.Dashboard {
		ray = c.Rays.Dashboard(job.Status.DashboardURL)
		return ray
	}).ShouldNot(BeNil())
	return ray
}

func TestRayJobOverHTTP(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns)
	job := harness.NewJob(ns, rayv1.HTTPMode)
	job.Spec.ShutdownAfterJobFinishes = true
	job.Spec.RuntimeEnvYAML = "env_vars: {A: b}"
	g.Expect(c.Create(t.Context(), job)).To(Succeed())
	follow(t, g, c, job, rayv1.JobDeploymentStatusRunning)
	g.Expect(job.Finalizers).To(ContainElement(rayv1.FinalizerRayJob))
	ray := dashboardOf(g, c, job)
	g.Eventually(func() int { return ray.Submissions(job.Status.JobId) }).Should(Equal(1))
	ray.SetStep(job.Status.JobId, fakedashboard.Steps("SUCCEEDED")[0])
	follow(t, g, c, job, rayv1.JobDeploymentStatusComplete)

	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	g.Expect(*job.Status.Succeeded).To(Equal(int32(1)))
	g.Expect(job.Status.EndTime).ToNot(BeNil())
	g.Expect(ray.Submissions(job.Status.JobId)).To(Equal(1))
	g.Eventually(func() error {
		return c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: job.Status.RayClusterName}, &rayv1.RayCluster{})
	}).ShouldNot(Succeed(), "shutdownAfterJobFinishes deletes the cluster")
	head := &corev1.Service{}
	g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "train-head-svc"}, head)).To(Succeed())
	g.Expect(head.Spec.Selector).To(HaveKeyWithValue(rayv1.LabelCluster, job.Status.RayClusterName))

	g.Expect(c.Delete(t.Context(), job)).To(Succeed())
	g.Eventually(func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(job), job) }).ShouldNot(Succeed())
}

func TestRayJobThroughSubmitter(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns)
	job := harness.NewJob(ns, rayv1.K8sJobMode)
	g.Expect(c.Create(t.Context(), job)).To(Succeed())
	follow(t, g, c, job, rayv1.JobDeploymentStatusRunning)

	submitter := &batchv1.Job{}
	g.Eventually(func() error {
		return c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "train"}, submitter)
	}).Should(Succeed())
	g.Expect(metav1.IsControlledBy(submitter, job)).To(BeTrue())
	container := submitter.Spec.Template.Spec.Containers[0]
	g.Expect(container.Image).To(Equal("img:1"))
	g.Expect(container.Command).To(Equal([]string{"/bin/bash", "-ce", "--"}))
	g.Expect(container.Env).To(ContainElements(
		corev1.EnvVar{Name: "RAY_DASHBOARD_ADDRESS", Value: job.Status.DashboardURL},
		corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: job.Status.JobId}))

	ray := dashboardOf(g, c, job)
	ray.PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Step: fakedashboard.Step{Status: "RUNNING"}})
	g.Eventually(func() rayv1.JobStatus {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return job.Status.JobStatus
	}).Should(Equal(rayv1.JobStatusRunning))
	ray.SetStep(job.Status.JobId, fakedashboard.Step{Status: "FAILED", Message: "ValueError: no data"})
	finished := metav1.Now()
	submitter.Status.StartTime = &finished
	submitter.Status.CompletionTime = &finished
	submitter.Status.Succeeded = 1
	submitter.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: finished},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: finished}}
	g.Expect(c.Status().Update(t.Context(), submitter)).To(Succeed())
	follow(t, g, c, job, rayv1.JobDeploymentStatusFailed)
	g.Expect(job.Status.Reason).To(Equal(rayv1.AppFailed))
	g.Expect(job.Status.Message).To(ContainSubstring("ValueError: no data"))
	g.Expect(*job.Status.Failed).To(Equal(int32(1)))
	g.Expect(ray.Submissions(job.Status.JobId)).To(BeZero(), "in this mode only the submitter submits")
}

func TestDeletingARunningRayJobStopsTheRayJobFirst(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns)
	job := harness.NewJob(ns, rayv1.HTTPMode)
	g.Expect(c.Create(t.Context(), job)).To(Succeed())
	follow(t, g, c, job, rayv1.JobDeploymentStatusRunning)
	ray := dashboardOf(g, c, job)
	ray.SetDefaultScript(fakedashboard.Steps("RUNNING")...)
	g.Eventually(func() rayv1.JobStatus {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return job.Status.JobStatus
	}).Should(Or(Equal(rayv1.JobStatusPending), Equal(rayv1.JobStatusRunning)))
	ray.SetStep(job.Status.JobId, fakedashboard.Steps("RUNNING")[0])

	g.Expect(c.Delete(t.Context(), job)).To(Succeed())
	g.Eventually(func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(job), job) }).ShouldNot(Succeed())
	stopped, found := ray.Job(job.Status.JobId)
	g.Expect(found).To(BeTrue())
	g.Expect(stopped.Step.Status).To(Equal("STOPPED"))
	g.Expect(ray.Requests(fakedashboard.EndpointStop)).To(BeNumerically(">=", 1))
}
