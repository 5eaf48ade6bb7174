//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// count makes a detached actor, or finds it, and prints how often it was asked. Its state is in its own memory, on a worker.
const count = `
import ray
ray.init(address="auto", namespace="e2e", log_to_driver=False, logging_level="ERROR")
@ray.remote(num_cpus=0.1, max_restarts=0)
class Counter:
    def __init__(self): self.n = 0
    def add(self):
        self.n += 1
        return self.n
counter = Counter.options(name="counter", lifetime="detached", get_if_exists=True).remote()
print("count", ray.get(counter.add.remote(), timeout=60))
`

// counts waits until the counter answers, and checks that it says that number.
func (w *world) counts(t *testing.T, g Gomega, cluster string, want int) {
	t.Helper()
	var out string
	g.Eventually(func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var err error
		out, err = w.exec(ctx, w.head(t, g, cluster), "python", "-c", count)
		return err
	}, podPatience, 2*time.Second).Should(Succeed())
	g.Expect(out).To(ContainSubstring("count %d\n", want), "what the counter has in memory")
}

// headIsLost deletes the head Pod as a lost node would, and waits for the next one.
func (w *world) headIsLost(t *testing.T, g Gomega, cluster string) {
	t.Helper()
	lost := w.head(t, g, cluster)
	g.Expect(w.Delete(t.Context(), lost, client.GracePeriodSeconds(0))).To(Succeed())
	w.newHead(t, g, cluster, lost.Name)
	w.ready(t, g, cluster)
}

// gcsIsKilled kills the process that keeps the state, and waits until the head's container has started again.
func (w *world) gcsIsKilled(t *testing.T, g Gomega, cluster string) {
	t.Helper()
	head := w.head(t, g, cluster)
	before := head.Status.ContainerStatuses[0].RestartCount
	// The command may be cut off by what it does.
	_, err := w.exec(t.Context(), head, "pkill", "-9", "gcs_server")
	t.Logf("kill the GCS: %v", err)
	g.Eventually(func() int32 { return w.head(t, g, cluster).Status.ContainerStatuses[0].RestartCount }, podPatience, time.Second).
		Should(BeNumerically(">", before), "the head's container starts again")
	g.Expect(w.head(t, g, cluster).UID).To(Equal(head.UID), "in the same Pod")
	w.ready(t, g, cluster)
}

// redisPod is the Pod of the Redis that the example brings.
func (w *world) redisPod(t *testing.T, g Gomega) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	g.Eventually(func() bool {
		pods := w.pods(t, client.MatchingLabels{"app": "redis"})
		if len(pods) != 1 {
			return false
		}
		pod = pods[0]
		return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Ready
	}, podPatience, time.Second).Should(BeTrue(), "the Pod of Redis")
	return &pod
}

// redis runs a command of Redis.
func (w *world) redis(t *testing.T, g Gomega, command ...string) string {
	t.Helper()
	out, err := w.exec(t.Context(), w.redisPod(t, g), append([]string{"redis-cli", "-a", "change-me", "--no-auth-warning"}, command...)...)
	g.Expect(err).ToNot(HaveOccurred())
	return strings.TrimSpace(out)
}

// gone deletes a RayCluster and waits until it is gone.
func (w *world) gone(t *testing.T, g Gomega, name string) {
	t.Helper()
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	g.Expect(w.Delete(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	}, podPatience, time.Second).Should(BeTrue(), "RayCluster %s must go", name)
}

// TestStateInRedis: the memory of an actor survives whatever becomes of the head, and nothing is left when the cluster goes.
func TestStateInRedis(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "../../docs/examples/raycluster-redis.yaml")
	w.ready(t, g, "durable")
	w.counts(t, g, "durable", 1)
	worker := w.podUIDs(t, "durable")
	delete(worker, w.head(t, g, "durable").Name)

	w.gcsIsKilled(t, g, "durable")
	w.counts(t, g, "durable", 2)
	w.headIsLost(t, g, "durable")
	w.counts(t, g, "durable", 3)
	told := w.recovery(t, g, "durable", podPatience, rayv1.LostHead, complete)
	g.Expect(told.Actors).To(HaveValue(Equal(rayv1.RecoveryCounts{Kept: 1})), "what the report says")

	redis := w.redisPod(t, g)
	_, err := w.exec(t.Context(), redis, "sh", "-c", "kill 1")
	t.Logf("kill Redis: %v", err)
	g.Eventually(func() int32 { return w.redisPod(t, g).Status.ContainerStatuses[0].RestartCount }, podPatience, time.Second).
		Should(BeNumerically(">", redis.Status.ContainerStatuses[0].RestartCount), "Redis starts again")
	w.ready(t, g, "durable")
	w.counts(t, g, "durable", 4)
	for name, uid := range worker {
		g.Expect(w.podUIDs(t, "durable")).To(HaveKeyWithValue(name, uid), "the worker, and the actor on it, was never touched")
	}

	g.Expect(w.redis(t, g, "flushall")).To(Equal("OK"))
	w.headIsLost(t, g, "durable")
	told = w.recovery(t, g, "durable", podPatience, rayv1.LostHead, complete)
	g.Expect(told.LostActors).To(ConsistOf("counter"), "what the report says")
	w.counts(t, g, "durable", 1)

	g.Expect(w.redis(t, g, "dbsize")).ToNot(Equal("0"))
	w.gone(t, g, "durable")
	g.Expect(w.redis(t, g, "keys", "*")).To(BeEmpty(), "what the cluster left in Redis")
}

// TestEveryWayToNameRedis: whatever way the address and the credentials are written, the head starts, and nothing is left. The
// last cluster does not hold its namespace.
func TestEveryWayToNameRedis(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "../../docs/examples/raycluster-redis.yaml")
	w.gone(t, g, "durable")
	g.Expect(w.redis(t, g, "acl", "setuser", "ray", "on", ">pass word*", "~*", "&*", "+@all")).To(Equal("OK"))
	fromSecret := &rayv1.RedisCredential{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "redis-password"}, Key: "password"}}}
	address := corev1.EnvVar{Name: "RAY_REDIS_ADDRESS", Value: "redis:6379"}
	ways := []func(*rayv1.RayCluster){
		func(c *rayv1.RayCluster) { c.Spec.GcsFaultToleranceOptions.RedisPassword = fromSecret },
		func(c *rayv1.RayCluster) {
			c.Spec.GcsFaultToleranceOptions.RedisAddress = "redis://redis:6379"
			c.Spec.GcsFaultToleranceOptions.RedisUsername = &rayv1.RedisCredential{Value: "ray"}
			c.Spec.GcsFaultToleranceOptions.RedisPassword = &rayv1.RedisCredential{Value: "pass word*"}
			c.Spec.GcsFaultToleranceOptions.ExternalStorageNamespace = "mine"
		},
		func(c *rayv1.RayCluster) {
			c.Spec.GcsFaultToleranceOptions = nil
			c.Annotations = map[string]string{rayv1.AnnotationFTEnabled: "true"}
			c.Spec.HeadGroupSpec.RayStartParams["redis-password"] = "$REDIS_PASSWORD"
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Env = []corev1.EnvVar{address, {Name: "REDIS_PASSWORD", ValueFrom: fromSecret.ValueFrom}}
		},
		func(c *rayv1.RayCluster) {
			c.Spec.GcsFaultToleranceOptions = nil
			c.Annotations = map[string]string{rayv1.AnnotationFTEnabled: "TRUE", rayv1.AnnotationExternalStorageNamespace: "old-way"}
			c.Spec.HeadGroupSpec.RayStartParams["redis-password"] = "change-me"
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Env = []corev1.EnvVar{address}
		},
	}
	for i, edit := range ways {
		name := fmt.Sprintf("way-%d", i)
		w.create(t, "../../docs/examples/raycluster.yaml", func(c *rayv1.RayCluster) {
			c.Name, c.Spec.WorkerGroupSpecs = name, nil
			c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: "redis:6379"}
			edit(c)
		})
		w.ready(t, g, name)
		g.Expect(w.redis(t, g, "keys", "*")).ToNot(BeEmpty(), "the head of %s keeps its state in Redis", name)
		if i == len(ways)-1 {
			return // it goes with its namespace
		}
		w.gone(t, g, name)
		g.Expect(w.redis(t, g, "keys", "*")).To(BeEmpty(), "what %s left in Redis", name)
	}
}

// TestACleanUpThatFailsLetsTheClusterGo: with Redis gone the deletion ends, and says what may remain.
func TestACleanUpThatFailsLetsTheClusterGo(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.apply(t, "../../docs/examples/raycluster-redis.yaml")
	cluster := w.ready(t, g, "durable")
	g.Expect(w.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "redis"}})).To(Succeed())
	w.edit(t, g, "durable", func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationGCSFTDeletionTimeout: "100"}
	})
	w.gone(t, g, "durable")
	g.Expect(w.warnings(t, cluster)).To(ContainElement(ContainSubstring(string(cluster.UID))), "a Warning names what may remain")
}

// warnings are the notes of the Warning events about an object.
func (w *world) warnings(t *testing.T, about client.Object) []string {
	t.Helper()
	events, err := w.typed.EventsV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.uid=" + string(about.GetUID())})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// TestStateOnAVolume: the memory of an actor survives whatever becomes of the head.
func TestStateOnAVolume(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.volume(t, g, "first")
	w.apply(t, "../../docs/examples/raycluster-volume.yaml")
	w.ready(t, g, "embedded")
	w.counts(t, g, "embedded", 1)
	w.gcsIsKilled(t, g, "embedded")
	w.counts(t, g, "embedded", 2)
	w.headIsLost(t, g, "embedded")
	w.counts(t, g, "embedded", 3)
	told := w.recovery(t, g, "embedded", podPatience, rayv1.LostHead, complete)
	g.Expect(told.Actors).To(HaveValue(Equal(rayv1.RecoveryCounts{Kept: 1})), "what the report says")

	workers := w.pods(t, client.MatchingLabels{rayv1.LabelCluster: "embedded", rayv1.LabelNodeType: rayv1.NodeTypeWorker})
	g.Expect(workers).To(HaveLen(1))
	g.Expect(w.Delete(t.Context(), &workers[0], client.GracePeriodSeconds(0))).To(Succeed())
	told = w.recovery(t, g, "embedded", podPatience, rayv1.LostWorker, complete)
	g.Expect(told.LostActors).To(ConsistOf("counter"), "a store keeps nothing of what a worker has in memory")
	w.counts(t, g, "embedded", 1)
	w.condition(t, g, "embedded", rayv1.ConditionStorageReady)
	w.gone(t, g, "embedded")
	g.Eventually(func() bool {
		return apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "embedded-gcs-pvc"}, &corev1.PersistentVolumeClaim{}))
	}, podPatience, time.Second).Should(BeTrue(), "the claim goes with its cluster")
}

// TestALostVolumeIsReported: with the volume all that Ray knew is lost. The report says so, and the cluster can be used again on
// the next volume.
func TestALostVolumeIsReported(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	w.volume(t, g, "first")
	w.apply(t, "../../docs/examples/raycluster-volume.yaml")
	w.ready(t, g, "embedded")
	w.edit(t, g, "embedded", func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadWhileJobsRun}
	})
	w.actorsAreKnown(t, g, "embedded")

	w.volume(t, g, "second")
	claim := &corev1.PersistentVolumeClaim{}
	w.get(t, g, "embedded-gcs-pvc", claim)
	g.Expect(w.Delete(t.Context(), claim)).To(Succeed())
	w.headIsLost(t, g, "embedded")
	told := w.recovery(t, g, "embedded", podPatience, rayv1.LostHead, complete)
	g.Expect(told.LostActors).To(ConsistOf("frail", "tough"))
	next := &corev1.PersistentVolumeClaim{}
	w.get(t, g, "embedded-gcs-pvc", next)
	g.Expect(next.UID).ToNot(Equal(claim.UID), "the claim was made anew")
	w.counts(t, g, "embedded", 1)
	w.condition(t, g, "embedded", rayv1.ConditionStorageReady)
}

// volume makes a volume for the claim of the test's namespace, because localkube has nothing that makes volumes. All nodes are
// on this machine.
func (w *world) volume(t *testing.T, g Gomega, name string) {
	t.Helper()
	dir := t.TempDir()
	g.Expect(os.Chmod(dir, 0o777)).To(Succeed())
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		ClaimRef:               &corev1.ObjectReference{Namespace: w.namespace, Name: "embedded-gcs-pvc"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: ptr.To(corev1.HostPathDirectory)}},
	}}
	g.Expect(w.Create(t.Context(), volume)).To(Succeed())
	t.Cleanup(func() {
		if err := w.Delete(context.Background(), volume); err != nil {
			t.Logf("delete the volume: %v", err)
		}
	})
}
