//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const sharedCluster = "shared"

// TestRayJobsOnOneCluster: jobs that share a cluster end truthfully in each mode, are stopped in Ray when they must not
// go on, are submitted once also when they come in a crowd, and fail when their head is lost.
func TestRayJobsOnOneCluster(t *testing.T) {
	w := connect(t)
	w.create(t, "testdata/raycluster-jobs.yaml", func(cluster *rayv1.RayCluster) { cluster.Name = sharedCluster })
	w.ready(t, NewWithT(t), sharedCluster)
	t.Run("together", func(t *testing.T) { w.together(t, sharedCases()) })
	t.Run("fifty at once", func(t *testing.T) { jobTest{w, t, NewWithT(t)}.fiftyAtOnce() })
	t.Run("the head is lost", func(t *testing.T) { jobTest{w, t, NewWithT(t)}.sharedHeadIsLost() })
}

func sharedCases() []jobCase {
	const k8sJob, http, interactive = rayv1.K8sJobMode, rayv1.HTTPMode, rayv1.InteractiveMode
	const fails = "echo last words; exit 3"
	job := func(name string, mode rayv1.JobSubmissionMode) *rayv1.RayJob {
		return onCluster(sharedCluster, name, mode, gated(name))
	}
	suspended := job("suspended", k8sJob)
	suspended.Spec.ShutdownAfterJobFinishes = true // what suspend asks for; a selected cluster stays all the same
	return []jobCase{
		{"K8sJobMode/the entrypoint arrives as it is", awkward(onCluster(sharedCluster, "awkward-k8s", k8sJob, "")), jobTest.arrivesAsItIs},
		{"HTTPMode/the entrypoint arrives as it is", awkward(onCluster(sharedCluster, "awkward-http", http, "")), jobTest.arrivesAsItIs},
		{"K8sJobMode/a failure", onCluster(sharedCluster, "fails-k8s", k8sJob, fails), jobTest.failsAfterItsSubmitterCompleted},
		{"HTTPMode/a failure", onCluster(sharedCluster, "fails-http", http, fails), func(j jobTest, job *rayv1.RayJob) {
			j.failsItself(job, 3, "last words")
			j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusFailed))
		}},
		{"InteractiveMode/a success", onCluster(sharedCluster, "by-hand", interactive, ""), func(j jobTest, job *rayv1.RayJob) {
			j.submitByHand(job, "true")
			j.succeeds(job)
		}},
		{"InteractiveMode/a failure", onCluster(sharedCluster, "by-hand-fails", interactive, ""), func(j jobTest, job *rayv1.RayJob) {
			j.submitByHand(job, fails)
			j.failsItself(job, 3, "last words")
		}},
		{"the submitter is killed", job("killed", k8sJob), jobTest.outlivesSubmitterPod},
		{"the submitter Job is deleted", job("orphaned", k8sJob), jobTest.outlivesSubmitterJob},
		{"the RayJob is deleted", job("deleted", k8sJob), func(j jobTest, job *rayv1.RayJob) {
			j.runs(job, 1)
			j.g.Expect(j.Delete(j.t.Context(), job.DeepCopy())).To(Succeed())
			j.gone(job.DeepCopy())
			j.stopped(job)
			j.ready(j.t, j.g, sharedCluster)
		}},
		{"the deadline passes", job("late", http), func(j jobTest, job *rayv1.RayJob) {
			j.runs(job, 1)
			j.change(job, func(spec *rayv1.RayJobSpec) { spec.ActiveDeadlineSeconds = ptr.To[int32](1) })
			j.ends(job, rayv1.JobDeploymentStatusFailed, rayv1.JobStatusStopped, rayv1.DeadlineExceeded, 1)
			j.stopped(job)
			j.ready(j.t, j.g, sharedCluster)
		}},
		{"the RayJob is suspended and resumed", suspended, jobTest.suspendAndResume},
	}
}

// outlivesSubmitterPod kills the Pod of the submitter in mid-run: the next one only follows the log (RJ-097).
func (j jobTest) outlivesSubmitterPod(job *rayv1.RayJob) {
	follows := func(not string) string {
		var follower string
		j.g.Eventually(func(g Gomega) {
			for _, pod := range j.pods(j.t, client.MatchingLabels{"job-name": job.Name}) {
				if pod.Name != not && pod.Status.Phase == corev1.PodRunning {
					follower = pod.Name
				}
			}
			g.Expect(follower).ToNot(BeEmpty(), "a submitter of RayJob %s runs", job.Name)
			g.Expect(j.logs(follower, "ray-job-submitter", 500)).To(ContainSubstring("the driver waits\n"))
		}, jobPatience, time.Second).Should(Succeed())
		return follower
	}
	j.runs(job, 1)
	first := follows("")
	j.g.Expect(j.Delete(j.t.Context(), &corev1.Pod{ObjectMeta: objectMeta(j.namespace, first)}, client.GracePeriodSeconds(0))).To(Succeed())
	follows(first)
	j.open(job)
	j.succeeds(job)
	j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusSucceeded))
	j.g.Expect(j.submitterLog(j.t, job.Name)).To(ContainSubstring("the driver goes on\n"))
}

// outlivesSubmitterJob takes the submitter away for good.
func (j jobTest) outlivesSubmitterJob(job *rayv1.RayJob) {
	j.runs(job, 1)
	submitter := &batchv1.Job{ObjectMeta: objectMeta(j.namespace, job.Name)}
	j.g.Expect(j.Delete(j.t.Context(), submitter, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	j.gone(submitter)
	j.g.Expect(j.DeleteAllOf(j.t.Context(), &corev1.Pod{}, client.InNamespace(j.namespace), client.MatchingLabels{"job-name": job.Name},
		client.GracePeriodSeconds(0))).To(Succeed())
	j.open(job)
	j.succeeds(job)
	j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusSucceeded))
	j.g.Expect(j.pods(j.t, client.MatchingLabels{"job-name": job.Name})).To(BeEmpty(), "a job that Ray has needs no other submitter")
}

// failsAfterItsSubmitterCompleted looks at both ends of a failure: the submitter did its part (RJ-096), the job failed.
func (j jobTest) failsAfterItsSubmitterCompleted(job *rayv1.RayJob) {
	j.failsItself(job, 3, "last words")
	j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusFailed))
	submitter := &batchv1.Job{}
	j.get(j.t, j.g, job.Name, submitter)
	j.g.Expect(submitter.Status.Failed).To(BeZero(), "failed Pods of the submitter")
	j.g.Expect(submitter.Status.Conditions).To(ContainElement(And(
		HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
	j.g.Expect(j.submitterLog(j.t, job.Name)).To(ContainSubstring("last words\n"))
}

// submitByHand does what the user of an interactive job does: submits, and writes the id into the spec.
func (j jobTest) submitByHand(job *rayv1.RayJob, entrypoint string) {
	j.t.Helper()
	j.phase(job, rayv1.JobDeploymentStatusWaiting)
	id := "id-of-" + job.Name
	_, err := j.ray(j.t.Context(), "POST", job.Status.RayClusterName, "/api/jobs/",
		map[string]string{"entrypoint": entrypoint, "submission_id": id})
	j.g.Expect(err).ToNot(HaveOccurred())
	j.change(job, func(spec *rayv1.RayJobSpec) { spec.JobId = id })
}

// suspendAndResume: suspending stops the job and leaves a selected cluster alone; resuming submits under a new id.
func (j jobTest) suspendAndResume(job *rayv1.RayJob) {
	j.runs(job, 1)
	first := job.DeepCopy()
	j.change(job, func(spec *rayv1.RayJobSpec) { spec.Suspend = true })
	j.phase(job, rayv1.JobDeploymentStatusSuspended)
	j.g.Expect(j.pods(j.t, client.MatchingLabels{"job-name": job.Name})).To(BeEmpty(), "a suspended job has no Pods")
	j.stopped(first)
	j.ready(j.t, j.g, sharedCluster)

	j.change(job, func(spec *rayv1.RayJobSpec) { spec.Suspend = false })
	j.runs(job, 2)
	j.open(job)
	j.succeeds(job)
	seen := map[string]rayv1.JobStatus{}
	for _, r := range j.marked(job) {
		seen[r.Metadata[rayv1.MetadataAttempt]+": "+r.SubmissionID] = r.Status
	}
	j.g.Expect(job.Status.JobId).ToNot(Equal(first.Status.JobId))
	j.g.Expect(seen).To(Equal(map[string]rayv1.JobStatus{
		"1: " + first.Status.JobId: rayv1.JobStatusStopped,
		"2: " + job.Status.JobId:   rayv1.JobStatusSucceeded,
	}))
}

// fiftyAtOnce: a crowd of RayJobs, a few of them by submitter, a few of them failing, makes as many records in Ray.
func (j jobTest) fiftyAtOnce() {
	before := len(j.records(sharedCluster))
	since := time.Now()
	var all []*rayv1.RayJob
	for i := range 50 {
		job := onCluster(sharedCluster, fmt.Sprintf("crowd-%02d", i), rayv1.HTTPMode, "true")
		job.Spec.EntrypointNumCpus = 1
		switch i % 10 {
		case 4:
			job.Spec.Entrypoint = "exit 7"
		case 9:
			job.Spec.SubmissionMode = rayv1.K8sJobMode
		}
		j.create(job)
		all = append(all, job)
	}
	j.t.Logf("50 RayJobs were created within %s", time.Since(since).Round(100*time.Millisecond))
	for i, job := range all {
		if i%10 == 4 {
			j.failsItself(job, 7, "")
			continue
		}
		j.succeeds(job)
	}
	j.t.Logf("all of them had ended after %s", time.Since(since).Round(time.Second))

	records := j.records(sharedCluster)
	j.g.Expect(len(records)-before).To(Equal(50), "jobs in Ray's own list")
	byUID := map[string][]record{}
	for _, r := range records {
		byUID[r.Metadata[rayv1.MetadataRayJobUID]] = append(byUID[r.Metadata[rayv1.MetadataRayJobUID]], r)
	}
	for _, job := range all {
		j.g.Expect(byUID[string(job.UID)]).To(ConsistOf(And(
			HaveField("SubmissionID", job.Status.JobId),
			HaveField("Status", job.Status.JobStatus),
			HaveField("Entrypoint", job.Spec.Entrypoint),
			HaveField("Metadata", HaveKeyWithValue(rayv1.MetadataAttempt, "1")),
		)), "RayJob %s was submitted once", job.Name)
	}
}

// sharedHeadIsLost: the new head knows none of the jobs of the lost one, and none of them runs a second time there.
func (j jobTest) sharedHeadIsLost() {
	jobs := []*rayv1.RayJob{
		onCluster(sharedCluster, "lost-http", rayv1.HTTPMode, gated("lost-http")),
		onCluster(sharedCluster, "lost-k8s", rayv1.K8sJobMode, gated("lost-k8s")),
	}
	for _, job := range jobs {
		j.create(job)
	}
	for _, job := range jobs {
		j.runs(job, 1)
	}
	lost := j.head(j.t, j.g, sharedCluster).Name
	since := time.Now()
	j.losesHead(jobs[0])
	for _, job := range jobs {
		j.ends(job, rayv1.JobDeploymentStatusFailed, rayv1.JobStatusRunning, rayv1.JobLost, 1)
		j.t.Logf("RayJob %s is known to be lost %s after its head went", job.Name, time.Since(since).Round(100*time.Millisecond))
		j.eventOf(job, "JobLost")
	}
	j.g.Eventually(func() []corev1.Pod { return j.pods(j.t, client.MatchingLabels{"job-name": "lost-k8s"}) }, podPatience, time.Second).
		Should(BeEmpty(), "nobody is left who could submit the lost job again")
	j.newHead(j.t, j.g, sharedCluster, lost)
	j.ready(j.t, j.g, sharedCluster)
	j.g.Expect(j.records(sharedCluster)).To(BeEmpty(), "jobs on the new head")
}
