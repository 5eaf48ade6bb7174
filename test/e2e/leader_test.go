//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
)

const operatorNamespace = "heliostat-system"

// leader is the operator Pod that holds the lease.
func (w *world) leader(t *testing.T, g Gomega) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: config.LeaseName}, lease)).To(Succeed())
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return pod
}

// TestKillingTheLeaderChangesNothingForTheJob kills the leading replica while a job runs.
func TestKillingTheLeaderChangesNothingForTheJob(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "testdata/rayjob-steps.yaml")
	job := &rayv1.RayJob{}
	g.Eventually(func() rayv1.JobStatus {
		w.get(t, g, "steps", job)
		return job.Status.JobStatus
	}, jobPatience, time.Second).Should(Equal(rayv1.JobStatusRunning))
	id, cluster := job.Status.JobId, job.Status.RayClusterName
	podsBefore := w.podUIDs(t, cluster)

	killed := w.leader(t, g)
	t.Logf("killing the leader, Pod %s", killed)
	g.Expect(w.Delete(t.Context(), &corev1.Pod{ObjectMeta: objectMeta(operatorNamespace, killed)}, client.GracePeriodSeconds(0))).To(Succeed())
	since := time.Now()
	g.Eventually(func() string { return w.leader(t, g) }, podPatience, 200*time.Millisecond).ShouldNot(Or(Equal(killed), BeEmpty()))
	t.Logf("another replica holds the lease %s later", time.Since(since).Round(100*time.Millisecond))

	job = w.ended(t, g, "steps")
	g.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusComplete), "message: %s", job.Status.Message)
	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	g.Expect([]string{job.Status.JobId, job.Status.RayClusterName}).To(Equal([]string{id, cluster}), "one submission, one cluster")
	g.Expect(w.podUIDs(t, cluster)).To(Equal(podsBefore), "no Pod of the cluster was touched")
	log := w.submitterLog(t, "steps")
	for i := range 25 {
		g.Expect(strings.Count(log, fmt.Sprintf("step %d\n", i))).To(Equal(1), "step %d is in the log once:\n%s", i, log)
	}
}

func (w *world) podUIDs(t *testing.T, cluster string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for _, pod := range w.pods(t, client.MatchingLabels{rayv1.LabelCluster: cluster}) {
		uids[pod.Name] = string(pod.UID)
	}
	return uids
}
