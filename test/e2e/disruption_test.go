//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// evict asks for the eviction of a Pod, as kubectl drain does, and tells whether it was granted.
func (w *world) evict(t *testing.T, pod *corev1.Pod) bool {
	t.Helper()
	err := w.typed.PolicyV1().Evictions(pod.Namespace).Evict(t.Context(),
		&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
	if err != nil && !apierrors.IsTooManyRequests(err) {
		t.Fatalf("evict Pod %s: %v", pod.Name, err)
	}
	return err == nil
}

// keeps waits until a PodDisruptionBudget allows as many evictions as said.
func (w *world) keeps(t *testing.T, g Gomega, budget string, allowed int32) {
	t.Helper()
	g.Eventually(func() int32 {
		found := &policyv1.PodDisruptionBudget{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: budget}, found); err != nil {
			return -1
		}
		if found.Status.ObservedGeneration != found.Generation {
			return -1
		}
		return found.Status.DisruptionsAllowed
	}, podPatience, time.Second).Should(Equal(allowed), "evictions that %s allows", budget)
}

// slowTask runs on a worker for 40 seconds and is never tried again.
const slowTask = `
import ray, time
ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=1, max_retries=0)
def slow():
    print("begun", flush=True)
    time.sleep(40)
    return ray.util.get_node_ip_address()
print("ended on", ray.get(slow.remote(), timeout=120))
`

// ended is how a program ended, and what it printed.
type ended struct {
	out string
	err error
}

// runSlowTask starts slowTask from a head and sends how it ended.
func (w *world) runSlowTask(t *testing.T, head *corev1.Pod) <-chan ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	done := make(chan ended, 1)
	go func() {
		out, err := w.exec(ctx, head, "python", "-c", slowTask)
		done <- ended{out, err}
	}()
	return done
}

// endsOn waits for slowTask, which must have come to its end on that Pod.
func endsOn(g Gomega, done <-chan ended, worker *corev1.Pod) {
	task := <-done
	g.Expect(task.err).ToNot(HaveOccurred(), "the task on the evicted worker; it printed %s", task.out)
	g.Expect(task.out).To(ContainSubstring("ended on " + worker.Status.PodIP))
}

// TestEvictions: a head is not evicted while a job runs, workers go one at a time, and what a worker is at comes to its end.
func TestEvictions(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "../../docs/examples/raycluster-protected.yaml")
	w.ready(t, g, "protected")
	workers := client.MatchingLabels{rayv1.LabelCluster: "protected", rayv1.LabelNodeType: rayv1.NodeTypeWorker}
	w.allJoined(t, g, "protected", 3)
	w.keeps(t, g, "protected-head", 1)
	w.keeps(t, g, "protected-workers.workers", 1)

	head := w.head(t, g, "protected")
	task := w.runSlowTask(t, head)
	w.keeps(t, g, "protected-head", 0)
	g.Expect(w.evict(t, head)).To(BeFalse(), "the head is evicted while a job runs")
	busy := w.busyWorker(t, g, workers)
	g.Expect(w.evict(t, busy)).To(BeTrue())
	for _, pod := range w.pods(t, workers) {
		if pod.UID != busy.UID && pod.DeletionTimestamp == nil {
			g.Expect(w.evict(t, &pod)).To(BeFalse(), "a second worker is evicted at a time")
		}
	}
	endsOn(g, task, busy)

	w.keeps(t, g, "protected-head", 1)
	g.Expect(w.evict(t, head)).To(BeTrue(), "nothing runs any more")
	w.newHead(t, g, "protected", head.Name)
	w.ready(t, g, "protected")
}

// busyWorker waits until one of the workers is at a task, and returns it.
func (w *world) busyWorker(t *testing.T, g Gomega, workers client.MatchingLabels) *corev1.Pod {
	t.Helper()
	var busy *corev1.Pod
	g.Eventually(func() *corev1.Pod {
		for _, pod := range w.pods(t, workers) {
			// A process of Ray's that is at a task has that as its title.
			if _, err := w.exec(t.Context(), &pod, "pgrep", "-f", "ray::slow"); err == nil {
				busy = &pod
			}
		}
		return busy
	}, podPatience, 2*time.Second).ShouldNot(BeNil(), "a worker that is at the task")
	return busy
}

// TestADeclaredOlderRayIsDrained: a worker whose Ray is said to be older than 2.57 is drained by its preStop hook. The image has a
// newer Ray, which is told not to drain by itself, so that without the hook the task would end with its Pod.
func TestADeclaredOlderRayIsDrained(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "testdata/raycluster-older-ray.yaml")
	w.ready(t, g, "older")
	workers := client.MatchingLabels{rayv1.LabelCluster: "older", rayv1.LabelNodeType: rayv1.NodeTypeWorker}
	w.allJoined(t, g, "older", 3)
	task := w.runSlowTask(t, w.head(t, g, "older"))
	busy := w.busyWorker(t, g, workers)
	g.Expect(w.evict(t, busy)).To(BeTrue())
	endsOn(g, task, busy)
}

// TestExamplesOfRecovery runs the programs that docs/recovery.md explains.
func TestExamplesOfRecovery(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "../../docs/examples/raycluster.yaml")
	w.ready(t, g, "first")
	w.allJoined(t, g, "first", 3)
	for _, run := range []struct{ file, says string }{
		{"max_restarts.py", "with max_restarts=3 it lives again, and counts from 1\nwithout it is dead: True"},
		{"detached_actor.py", "the actor was asked 1 times"},
		{"detached_actor.py", "the actor was asked 2 times"},
		{"checkpoint.py", "after its process was lost it counts on with 4"},
	} {
		program, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "recovery", run.file))
		g.Expect(err).ToNot(HaveOccurred())
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		out, err := w.exec(ctx, w.head(t, g, "first"), "python", "-c", string(program))
		cancel()
		g.Expect(err).ToNot(HaveOccurred(), "%s says %s", run.file, out)
		g.Expect(out).To(ContainSubstring(run.says), "what %s says", run.file)
	}
}
