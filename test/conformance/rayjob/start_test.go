package rayjob

import (
	"slices"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func startCases() []Case {
	return []Case{
		{Row: 1, Kind: same, When: "the job is created", Then: "finalizer, phase Initializing, jobId, rayClusterName, startTime and counters are there before the first child", Run: recordsBeforeItActs},
		{Row: 2, Kind: same, When: "the job is created", Then: "exactly one RayCluster of the recorded name, controlled by the job, with its labels and annotations and the three of its origin", Run: makesOneCluster},
		{Row: 3, Kind: same, Given: "the cluster is not ready", When: "its status changes", Then: "status.rayClusterStatus follows, and there is no Job", Run: followsTheCluster},
		{Row: 4, Kind: better, Weak: []string{"RJ-W13"}, Given: "port dashboard is 9999", When: "the cluster is ready", Then: "phase Running, dashboardURL in full, and a Job of the RayJob's name",
			Theirs: "the same, but the Job is made at once and waits for the dashboard without end", How: "the Job is made when the dashboard answers", Run: submitsWhenTheDashboardAnswers},
		{Row: 10, Kind: same, Given: "jobId abc", When: "the job starts", Then: "status.jobId and the submitter's RAY_JOB_SUBMISSION_ID are abc", Run: func(e *env) {
			job := e.given(func(j *rayv1.RayJob) { j.Spec.JobId = "abc" })
			e.Expect(container(e.submitter(job).Spec.Template).Env).To(ContainElement(corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: "abc"}))
			e.refresh(job)
			e.Expect(job.Status.JobId).To(Equal("abc"))
		}},
		{Row: 59, Kind: same, Given: "a running job", When: "spec.rayClusterSpec is edited", Then: "its cluster stays as it is", Run: func(e *env) {
			job, _ := e.submitted(mode(rayv1.HTTPMode))
			before := e.cluster(job)
			e.changeSeen(job, func(j *rayv1.RayJob) { *j.Spec.RayClusterSpec.WorkerGroupSpecs[0].Replicas = 3 })
			e.rest()
			after := e.cluster(job)
			e.Expect(after.UID).To(Equal(before.UID))
			e.Expect(after.Generation).To(Equal(before.Generation))
		}},
		{Row: 99, Kind: same, Given: "the head Service has a name of its own", When: "the job starts", Then: "dashboardURL has that name", Run: func(e *env) {
			job := e.given(mode(rayv1.HTTPMode), func(j *rayv1.RayJob) {
				j.Spec.RayClusterSpec.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "my-head"}}
			})
			e.phase(job, rayv1.JobDeploymentStatusRunning)
			e.Expect(job.Status.DashboardURL).To(Equal("my-head." + e.ns + ".svc.cluster.local:8265"))
		}},
		{Row: 100, Kind: better, Weak: []string{"RJ-W18"}, When: "the phase becomes Running", Then: "status.rayClusterStatus says ready in the same write",
			Theirs: "the status of the cluster is refreshed some seconds later", How: "each write has the whole status", Run: func(e *env) {
				seen := e.record()
				job := e.given(mode(rayv1.HTTPMode))
				e.phase(job, rayv1.JobDeploymentStatusRunning)
				e.Eventually(seen.phases).Should(ContainElement(rayv1.JobDeploymentStatusRunning))
				all := seen.all()
				first := slices.IndexFunc(all, func(s rayv1.RayJobStatus) bool { return s.JobDeploymentStatus == rayv1.JobDeploymentStatusRunning })
				e.Expect(all[first].RayClusterStatus.State).To(Equal(rayv1.ClusterStateReady))
			}},
	}
}

func recordsBeforeItActs(e *env) {
	e.noKubelet = true
	job := e.given()
	e.cluster(job)
	e.Expect(job.Finalizers).To(ContainElement("ray.io/rayjob-finalizer"))
	s := job.Status
	e.Expect(s.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusInitializing))
	e.Expect(s.JobId).To(MatchRegexp("^train-[a-z0-9]{5}$"))
	e.Expect(s.RayClusterName).To(MatchRegexp("^train-[a-z0-9]{5}$"))
	e.Expect(s.StartTime).ToNot(BeNil())
	e.counts(job, 0, 0)
	writes := e.operator.Traffic.All()
	of := func(verbs []string, resource string) int {
		return slices.IndexFunc(writes, func(r harness.Request) bool { return r.Resource == resource && slices.Contains(verbs, r.Verb) })
	}
	recorded := of([]string{"patch", "update", "apply"}, "rayjobs/status")
	e.Expect(recorded).To(BeNumerically(">", of([]string{"patch", "update", "apply"}, "rayjobs")), "the finalizer comes first")
	e.Expect(recorded).To(And(BeNumerically(">=", 0), BeNumerically("<", of([]string{"create", "apply"}, "rayclusters"))), "%v", writes)
}

func makesOneCluster(e *env) {
	e.noKubelet = true
	job := e.given(func(j *rayv1.RayJob) {
		j.Labels, j.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "b"}
	})
	cluster := e.cluster(job)
	e.rest()
	e.Expect(e.clusters()).To(HaveLen(1))
	e.Expect(metav1.IsControlledBy(cluster, job)).To(BeTrue())
	for label, value := range map[string]string{"team": "a", "ray.io/originated-from-cr-name": name,
		"ray.io/originated-from-crd": "RayJob", "ray.io/job-submission-mode": "K8sJobMode"} {
		e.Expect(cluster.Labels).To(HaveKeyWithValue(label, value))
	}
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("note", "b"))
	e.Expect(cluster.Annotations).ToNot(HaveKey("ray.io/disable-provisioned-head-restart"))
}

func followsTheCluster(e *env) {
	e.noKubelet = true
	job := e.given()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.RayClusterStatus.DesiredWorkerReplicas }).Should(Equal(int32(1)))
	head := e.head(job)
	e.SetPod(e.t, head, harness.Ready)
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.RayClusterStatus.Head.PodIP }).Should(Equal(head.Status.PodIP))
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusInitializing))
	e.Expect(e.jobs()).To(BeEmpty())
}

func submitsWhenTheDashboardAnswers(e *env) {
	e.newRays((*fakedashboard.Dashboard).Down)
	job := e.given(func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "dashboard", ContainerPort: 9999}}
	})
	e.phase(job, rayv1.JobDeploymentStatusRunning)
	e.Expect(job.Status.DashboardURL).To(Equal(job.Status.RayClusterName + "-head-svc." + e.ns + ".svc.cluster.local:9999"))
	ray := e.ray(job)
	e.rest()
	e.Expect(e.jobs()).To(BeEmpty())
	ray.Up()
	e.submitter(job)
}
