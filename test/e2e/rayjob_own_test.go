//go:build e2e

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestRayJobsOnTheirOwnClusters: what a RayJob makes of the loss of its head, and the mode that is only for such clusters.
func TestRayJobsOnTheirOwnClusters(t *testing.T) {
	w := connect(t)
	const sidecar = rayv1.SidecarMode
	again, once := reportedLoss(t, "again"), reportedLoss(t, "once")
	again.Spec.BackoffLimit = ptr.To[int32](1)
	once.Spec.ShutdownAfterJobFinishes = true
	w.together(t, []jobCase{
		{"the head is lost and another attempt allowed", again, jobTest.succeedsOnAnotherCluster},
		{"the head is lost and no other attempt allowed", once, jobTest.isLostAndCleanedUp},
		{"SidecarMode/the head is lost", onItsOwn(t, "sidecar-lost", sidecar, gated("sidecar-lost")), jobTest.hasNoOtherHead},
		{"SidecarMode/the entrypoint arrives as it is", awkward(onItsOwn(t, "sidecar-awkward", sidecar, "")), jobTest.arrivesAsItIs},
		{"SidecarMode/a failure", onItsOwn(t, "sidecar-fails", sidecar, "echo last words; exit 5"), func(j jobTest, job *rayv1.RayJob) {
			j.failsItself(job, 5, "last words")
			j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusFailed))
		}},
	})
}

// reportedLoss is the RayJob of the reports about lost heads: neither its submitter nor its head is tried again.
func reportedLoss(t *testing.T, name string) *rayv1.RayJob {
	t.Helper()
	job := onItsOwn(t, name, rayv1.K8sJobMode, gated(name))
	job.Spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](0)}
	job.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return job
}

func (j jobTest) succeedsOnAnotherCluster(job *rayv1.RayJob) {
	j.runs(job, 1)
	first := job.DeepCopy()
	j.losesHead(job)
	since := time.Now()
	j.eventOf(job, "JobLost")
	j.t.Logf("the job is known to be lost %s after its head went", time.Since(since).Round(100*time.Millisecond))
	j.runs(job, 2)
	j.t.Logf("it runs again %s after its head went", time.Since(since).Round(time.Second))
	j.g.Expect(job.Status.RayClusterName).ToNot(Equal(first.Status.RayClusterName))
	j.g.Expect(job.Status.JobId).ToNot(Equal(first.Status.JobId))
	j.gone(&rayv1.RayCluster{ObjectMeta: objectMeta(j.namespace, first.Status.RayClusterName)})
	j.open(job)
	j.ends(job, rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded, "", 1)
	j.g.Expect(j.records(job.Status.RayClusterName)).To(HaveLen(1))
	j.g.Expect(j.only(job).Status).To(Equal(rayv1.JobStatusSucceeded))
	found := job.Status.PostMortem
	j.g.Expect(found).ToNot(BeNil())
	j.g.Expect([]any{found.Attempt, found.Reason, found.RayClusterName}).To(Equal([]any{int32(1), rayv1.JobLost, first.Status.RayClusterName}))
}

func (j jobTest) isLostAndCleanedUp(job *rayv1.RayJob) {
	j.runs(job, 1)
	since := time.Now()
	j.losesHead(job)
	j.ends(job, rayv1.JobDeploymentStatusFailed, rayv1.JobStatusRunning, rayv1.JobLost, 1)
	j.t.Logf("the job is known to be lost %s after its head went", time.Since(since).Round(100*time.Millisecond))
	j.eventOf(job, "JobLost")
	j.gone(&rayv1.RayCluster{ObjectMeta: objectMeta(j.namespace, job.Status.RayClusterName)})
	j.g.Eventually(func() []corev1.Pod {
		return j.pods(j.t, client.MatchingLabels{rayv1.LabelCluster: job.Status.RayClusterName})
	},
		podPatience, time.Second).Should(BeEmpty(), "Pods of the cluster")
}

// hasNoOtherHead: in SidecarMode the head carries the submitter, so that another head would be another submission.
func (j jobTest) hasNoOtherHead(job *rayv1.RayJob) {
	j.runs(job, 1)
	since := time.Now()
	j.losesHead(job)
	j.ends(job, rayv1.JobDeploymentStatusFailed, rayv1.JobStatusRunning, rayv1.JobLost, 1)
	j.t.Logf("the job is known to be lost %s after its head went", time.Since(since).Round(100*time.Millisecond))
	j.g.Consistently(func() []corev1.Pod {
		return j.pods(j.t, client.MatchingLabels{rayv1.LabelCluster: job.Status.RayClusterName})
	},
		10*time.Second, time.Second).Should(BeEmpty(), "a SidecarMode job has one head")
}
