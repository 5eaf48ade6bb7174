//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// twoActors makes two detached actors, of which only one is started anew when it is lost, and goes on until it is let go.
const twoActors = `
import os, ray, time
ray.init(address="auto", namespace="e2e", log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=0.1)
class Actor:
    def ready(self): return True
for name, restarts in [("frail", 0), ("tough", 3)]:
    ray.get(Actor.options(name=name, lifetime="detached", max_restarts=restarts).remote().ready.remote(), timeout=60)
while not os.path.exists("/tmp/let-go"): time.sleep(0.5)
`

// actorsAreKnown makes the two actors and waits until the operator has been told of them: it has asked Ray while their program
// ran, and again after its end, as the protection of the head shows.
func (w *world) actorsAreKnown(t *testing.T, g Gomega, cluster string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), podPatience)
	defer cancel()
	head := w.head(t, g, cluster)
	ended := make(chan error, 1)
	go func() {
		_, err := w.exec(ctx, head, "python", "-c", twoActors)
		ended <- err
	}()
	w.keeps(t, g, cluster+"-head", 0)
	_, err := w.exec(ctx, head, "touch", "/tmp/let-go")
	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(<-ended).To(Succeed(), "the program that makes the actors")
	w.keeps(t, g, cluster+"-head", 1)
}

// recovery waits until the last loss that the status tells of is one of that part, and as wanted.
func (w *world) recovery(t *testing.T, g Gomega, cluster string, patience time.Duration, part rayv1.LostPart, want func(rayv1.RayClusterRecovery) bool) rayv1.RayClusterRecovery {
	t.Helper()
	var last rayv1.RayClusterRecovery
	g.Eventually(func() bool {
		seen := &rayv1.RayCluster{}
		w.get(t, g, cluster, seen)
		if len(seen.Status.Recoveries) == 0 {
			return false
		}
		last = seen.Status.Recoveries[0]
		return last.Part == part && want(last)
	}, patience, time.Second).Should(BeTrue(), "what the status tells of the loss")
	t.Logf("%+v, actors %+v", last, last.Actors)
	return last
}

func complete(r rayv1.RayClusterRecovery) bool { return r.State == rayv1.RecoveryComplete }

// TestLossesAreReported: of the actors on a lost worker those that are lost and those that come back are told apart, and a lost
// head without a store takes all of them.
func TestLossesAreReported(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.create(t, "../../docs/examples/raycluster.yaml", func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadWhileJobsRun}
		c.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1)
	})
	w.ready(t, g, name)
	w.actorsAreKnown(t, g, name)
	workers := client.MatchingLabels{rayv1.LabelCluster: name, rayv1.LabelNodeType: rayv1.NodeTypeWorker}
	lost := w.pods(t, workers)[0]
	w.edit(t, g, name, func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](2) })
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)
	began := time.Now()
	g.Expect(w.Delete(t.Context(), &lost, client.GracePeriodSeconds(0))).To(Succeed())
	told := w.recovery(t, g, name, 2*time.Minute, rayv1.LostWorker, func(r rayv1.RayClusterRecovery) bool { return r.Actors != nil && r.Actors.Lost == 1 })
	t.Logf("told %s after the loss", time.Since(began).Round(time.Second))
	g.Expect(told.Actors.Restarting+told.Actors.Restored).To(BeEquivalentTo(1), "the one that can be started anew")
	g.Expect(told.LostActors).To(ConsistOf("frail"))
	g.Expect(told.Pod).To(Equal(lost.Name))
	told = w.recovery(t, g, name, podPatience, rayv1.LostWorker, complete)
	g.Expect(told.Actors).To(HaveValue(Equal(rayv1.RecoveryCounts{Lost: 1, Restored: 1})))
	w.ready(t, g, name)

	cluster := w.ready(t, g, name)
	w.headIsLost(t, g, name)
	told = w.recovery(t, g, name, podPatience, rayv1.LostHead, complete)
	g.Expect(told.LostActors).To(ContainElement("tough"))
	g.Expect(w.warnings(t, cluster)).To(ContainElement(ContainSubstring("tough")), "an event names it")
}

// TestAKilledGCSWithoutAStoreIsReported: when only the process dies that keeps the state, the head starts again in its Pod and has
// forgotten everything. The report names the actors, and a RayJob on the cluster ends as one whose head is lost.
func TestAKilledGCSWithoutAStoreIsReported(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.create(t, "../../docs/examples/raycluster.yaml", func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadWhileJobsRun}
		c.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1)
	})
	w.ready(t, g, name)
	w.actorsAreKnown(t, g, name)
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "long"}, Spec: rayv1.RayJobSpec{
		ClusterSelector: map[string]string{rayv1.LabelCluster: name}, SubmissionMode: rayv1.HTTPMode, Entrypoint: "sleep 900"}}
	g.Expect(w.Create(t.Context(), job)).To(Succeed())
	g.Eventually(func() rayv1.JobStatus {
		w.get(t, g, job.Name, job)
		return job.Status.JobStatus
	}, podPatience, time.Second).Should(Equal(rayv1.JobStatusRunning))

	w.gcsIsKilled(t, g, name)
	told := w.recovery(t, g, name, podPatience, rayv1.LostHeadContainer, complete)
	g.Expect(told.LostActors).To(ConsistOf("frail", "tough"))
	ended := w.ended(t, g, job.Name)
	g.Expect(ended.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusFailed))
	g.Expect(ended.Status.Reason).To(Equal(rayv1.JobLost), "message: %s", ended.Status.Message)
	w.ready(t, g, name)
}
