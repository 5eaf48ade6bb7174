//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// away is how long the API server is gone: longer than a lease of the operator lasts, and than nodes are waited for.
const away = time.Minute

// TestTheAPIServerIsAway: nobody in the cluster can read or write anything for a minute. What Ray does goes on, a job that ends
// meanwhile has ended, and nothing is taken for lost.
func TestTheAPIServerIsAway(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.create(t, "../../docs/examples/raycluster.yaml", func(*rayv1.RayCluster) {})
	w.ready(t, g, name)
	w.counts(t, g, name, 1)
	w.apply(t, "testdata/rayjob-steps.yaml")
	job := &rayv1.RayJob{}
	g.Eventually(func() rayv1.JobStatus {
		w.get(t, g, "steps", job)
		return job.Status.JobStatus
	}, jobPatience, time.Second).Should(Equal(rayv1.JobStatusRunning))
	id, pods, jobPods := job.Status.JobId, w.podUIDs(t, name), w.podUIDs(t, job.Status.RayClusterName)

	comeBack := takenAway(t, g, []string{"program", "stop", "kube-apiserver"}, []string{"program", "start", "kube-apiserver"})
	g.Consistently(func() error {
		return w.typed.RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).Do(t.Context()).Error()
	}, away, 5*time.Second).ShouldNot(Succeed(), "there is no API server")
	g.Expect(comeBack()).To(Succeed())
	g.Eventually(func() error {
		return w.typed.RESTClient().Get().AbsPath("/readyz").Timeout(5 * time.Second).Do(t.Context()).Error()
	}, podPatience, time.Second).Should(Succeed(), "the API server is back")

	ended := w.ended(t, g, "steps")
	g.Expect(ended.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusComplete), "message: %s", ended.Status.Message)
	g.Expect(ended.Status.JobId).To(Equal(id), "one submission")
	g.Expect(w.podUIDs(t, job.Status.RayClusterName)).To(Equal(jobPods), "no Pod of the job's cluster was touched")
	log := w.submitterLog(t, "steps")
	for i := range 25 {
		g.Expect(strings.Count(log, fmt.Sprintf("step %d\n", i))).To(Equal(1), "step %d is in the log once:\n%s", i, log)
	}
	cluster := w.ready(t, g, name)
	w.counts(t, g, name, 2)
	g.Expect(w.podUIDs(t, name)).To(Equal(pods), "no Pod of the cluster was touched")
	g.Expect(cluster.Status.Recoveries).To(BeEmpty(), "nothing was lost")
}
