package raycluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

const redis = "redis:6379"

func inRedis(c *rayv1.RayCluster) {
	c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: redis}
}

// inRedisTheOldWay keeps the state in Redis as manifests of earlier years ask for it.
func inRedisTheOldWay(c *rayv1.RayCluster) {
	c.Annotations = map[string]string{rayv1.AnnotationFTEnabled: "true"}
	withRedisAddress(c)
}

func withRedisAddress(c *rayv1.RayCluster) {
	container := &c.Spec.HeadGroupSpec.Template.Spec.Containers[0]
	container.Env = append(container.Env, corev1.EnvVar{Name: "RAY_REDIS_ADDRESS", Value: redis})
}

func deletionLimit(seconds string) edit {
	return func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationGCSFTDeletionTimeout: seconds}
	}
}

func onVolume(edits ...func(*rayv1.GcsEmbeddedStorage)) edit {
	return func(c *rayv1.RayCluster) {
		storage := &rayv1.GcsEmbeddedStorage{}
		for _, edit := range edits {
			edit(storage)
		}
		c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{Backend: rayv1.GcsBackendRocksDB, Storage: storage}
	}
}

// embedded starts the operator with the gate of the embedded store on.
func (e *env) embedded() {
	e.start(harness.Args("--feature-gates=GCSFaultToleranceEmbeddedStorage=true"))
}

func storageCases() []Case {
	return []Case{
		{Row: 71, Kind: same, Given: "fault tolerance with Redis", When: "the cluster is created", Then: "the finalizer is there before the first head; the head is told the address and the storage namespace, workers wait 600 s for a lost head", Run: redisIsSetUp},
		{Row: 72, Kind: same, Given: "fault tolerance with Redis, all Pods ready", When: "the cluster is deleted", Then: "head and workers go; then Job demo-redis-cleanup (one try, 300 s) runs; when it is complete the cluster is gone", Run: func(e *env) {
			cluster := e.ready(inRedis)
			e.delete(cluster)
			job := e.cleanup()
			e.Expect(e.heads()).To(BeEmpty())
			e.Expect(job.Spec.BackoffLimit).To(HaveValue(BeEquivalentTo(0)))
			e.Expect(job.Spec.ActiveDeadlineSeconds).To(HaveValue(BeEquivalentTo(300)))
			e.FinishJob(e.t, job, batchv1.JobComplete)
			e.goes(cluster)
		}},
		{Row: 73, Kind: same, Given: "fault tolerance with Redis and a deletion limit of 1 s; the Job never ends", When: "the cluster is deleted", Then: "the cluster is gone, with a Warning", Run: func(e *env) {
			cluster := e.ready(inRedis, deletionLimit("1"))
			e.delete(cluster)
			e.goes(cluster)
			e.Expect(e.said(cluster, corev1.EventTypeWarning, "ForceDeletedStuckCluster")).To(ContainSubstring(string(cluster.UID)))
		}},
		{Row: 74, Kind: better, Weak: []string{"W4"}, Theirs: "the cluster stays for ever", Given: "the same, and the head Pod is held by a finalizer", When: "the cluster is deleted", Then: "the cluster is gone, with a Warning",
			How: "one limit covers the whole deletion", Run: func(e *env) {
				cluster := e.ready(inRedis, deletionLimit("1"))
				e.holdAll(e.heads())
				defer e.releaseAll()
				e.delete(cluster)
				e.goes(cluster)
				e.Expect(e.said(cluster, corev1.EventTypeWarning, "ForceDeletedStuckCluster")).To(ContainSubstring("the head Pod is still there"))
			}},
		{Row: 75, Kind: better, Weak: []string{"W5"}, Theirs: "the cluster goes, and nothing says that its data stayed", Given: "a deleted cluster with Redis", When: "the Job fails", Then: "a Warning that names the storage namespace; the cluster is gone",
			How: "what may remain is always named", Run: func(e *env) {
				cluster := e.ready(inRedis)
				e.delete(cluster)
				e.FinishJob(e.t, e.cleanup(), batchv1.JobFailed)
				e.goes(cluster)
				e.Expect(e.said(cluster, corev1.EventTypeWarning, "RedisCleanupFailed")).To(And(ContainSubstring(string(cluster.UID)), ContainSubstring(redis)))
			}},
		{Row: 76, Kind: better, Weak: []string{"W1"}, Theirs: "the cluster is never gone", Given: "fault tolerance with Redis, all Pods ready", When: "the options are removed, and then the cluster is deleted", Then: "the recorded storage namespace is emptied; the cluster is gone",
			How: "status.redisStorages remembers where the state went", Run: func(e *env) {
				cluster := e.ready(inRedis)
				e.change(cluster, func(c *rayv1.RayCluster) { c.Spec.GcsFaultToleranceOptions = nil })
				e.delete(cluster)
				job := e.cleanup()
				container := job.Spec.Template.Spec.Containers[0]
				e.Expect(envOf(container, "RAY_external_storage_namespace")).To(HaveValue(HaveField("Value", string(cluster.UID))))
				e.Expect(envOf(container, "RAY_REDIS_ADDRESS")).To(HaveValue(HaveField("Value", redis)))
				e.FinishJob(e.t, job, batchv1.JobComplete)
				e.goes(cluster)
			}},
		{Row: 77, Kind: better, Weak: []string{"W3"}, Theirs: "the cluster stays, and its Pods go on running", Given: "fault tolerance with Redis, all Pods ready", When: "the spec becomes invalid, and then the cluster is deleted", Then: "the cluster is gone",
			How: "a deletion is never validated", Run: func(e *env) {
				cluster := e.ready(inRedis)
				e.change(cluster, func(c *rayv1.RayCluster) {
					c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RAY_REDIS_ADDRESS", Value: "other:1"}}
				})
				e.have(cluster, rayv1.ConditionValid, metav1.ConditionFalse, "")
				e.delete(cluster)
				e.FinishJob(e.t, e.cleanup(), batchv1.JobComplete)
				e.goes(cluster)
			}},
		{Row: 78, Kind: same, Given: "annotation ray.io/ft-enabled and the variable RAY_REDIS_ADDRESS", When: "the cluster is created", Then: "the finalizer is there, and the storage namespace is the UID", Run: func(e *env) {
			cluster := e.given(inRedisTheOldWay)
			head := e.head()
			e.Expect(e.finalizers(cluster)).To(ContainElement(rayv1.FinalizerGCSFTRedisCleanup))
			e.Expect(envOf(head.Spec.Containers[0], "RAY_external_storage_namespace")).To(HaveValue(HaveField("Value", string(cluster.UID))))
		}},
		{Row: 79, Kind: same, Given: "annotation ray.io/ft-enabled and the options", When: "the cluster is created", Then: "a Warning, no Pods", Run: func(e *env) {
			cluster := e.given(inRedis, func(c *rayv1.RayCluster) { c.Annotations = map[string]string{rayv1.AnnotationFTEnabled: "true"} })
			e.isInvalid(cluster, "InvalidRayClusterMetadata", rayv1.AnnotationFTEnabled)
		}},
		{Row: 80, Kind: same, Given: "the variable RAY_REDIS_ADDRESS without fault tolerance", When: "the cluster is created", Then: "a Warning, no Pods", Run: func(e *env) {
			e.isInvalid(e.given(withRedisAddress), invalidSpec, "RAY_REDIS_ADDRESS")
		}},
		{Row: 81, Kind: same, Given: "gate GCSFaultToleranceEmbeddedStorage on, backend rocksdb", When: "the cluster is created", Then: "claim demo-gcs-pvc (ReadWriteOnce, 1Gi, owned by the cluster), mounted at /data/gcs; no finalizer", Run: func(e *env) {
			e.embedded()
			cluster := e.given(onVolume())
			claim := e.claim("demo-gcs-pvc")
			e.Expect(metav1.IsControlledBy(claim, cluster)).To(BeTrue())
			e.Expect(claim.Spec.AccessModes).To(Equal([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}))
			e.Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("1Gi"))
			head := e.head()
			e.Expect(head.Spec.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("Name", "gcs-storage"), HaveField("MountPath", "/data/gcs"))))
			e.rest()
			e.Expect(e.finalizers(cluster)).To(BeEmpty())
		}},
		{Row: 82, Kind: same, Given: "the same with deletionPolicy Retain", When: "the cluster is created", Then: "the claim has no owner", Run: func(e *env) {
			e.embedded()
			cluster := e.given(onVolume(func(s *rayv1.GcsEmbeddedStorage) { s.DeletionPolicy = ptr.To(rayv1.GCSStorageRetain) }))
			e.Expect(e.claim("demo-gcs-pvc").OwnerReferences).To(BeEmpty())
			e.change(cluster, func(c *rayv1.RayCluster) { c.Spec.GcsFaultToleranceOptions.Storage.DeletionPolicy = nil })
			e.Eventually(func() bool { return metav1.IsControlledBy(e.claim("demo-gcs-pvc"), cluster) }).Should(BeTrue())
		}},
		{Row: 83, Kind: same, Given: "the same with a claimName that does not exist", When: "the cluster is created", Then: "a Warning; no claim is made; the head is made and waits for it", Run: func(e *env) {
			e.embedded()
			cluster := e.given(onVolume(func(s *rayv1.GcsEmbeddedStorage) { s.ClaimName = "mine" }))
			e.head()
			e.Expect(e.said(cluster, corev1.EventTypeWarning, "FailedToCreatePVC")).To(ContainSubstring("mine"))
			e.have(cluster, rayv1.ConditionStorageReady, metav1.ConditionFalse, rayv1.ReasonClaimMissing)
			e.Expect(e.listed(&corev1.PersistentVolumeClaimList{})).To(BeEmpty())
		}},
	}
}

// TestAQueueThatSuspendsTheCleanUpHoldsNoCluster is report L61.
func TestAQueueThatSuspendsTheCleanUpHoldsNoCluster(t *testing.T) {
	e := newEnv(t)
	cluster := e.ready(inRedis, deletionLimit("5"))
	e.delete(cluster)
	job := e.cleanup()
	base := job.DeepCopy()
	job.Spec.Suspend = ptr.To(true)
	e.Expect(e.Patch(t.Context(), job, client.MergeFrom(base))).To(Succeed())
	e.goes(cluster)
	e.Expect(e.said(cluster, corev1.EventTypeWarning, "ForceDeletedStuckCluster")).To(ContainSubstring("has not ended"))
}

func redisIsSetUp(e *env) {
	cluster := e.given(inRedis)
	head := e.head()
	// The head is the later one: its creation needs the finalizer.
	e.Expect(e.finalizers(cluster)).To(ContainElement(rayv1.FinalizerGCSFTRedisCleanup))
	e.Expect(head.Annotations).To(And(HaveKeyWithValue(rayv1.AnnotationFTEnabled, "true"),
		HaveKeyWithValue(rayv1.AnnotationExternalStorageNamespace, string(cluster.UID))))
	e.Expect(envOf(head.Spec.Containers[0], "RAY_REDIS_ADDRESS")).To(HaveValue(HaveField("Value", redis)))
	e.Expect(envOf(head.Spec.Containers[0], "RAY_external_storage_namespace")).To(HaveValue(HaveField("Value", string(cluster.UID))))
	worker := e.haveWorkers(2)[0]
	e.Expect(envOf(worker.Spec.Containers[0], "RAY_gcs_rpc_server_reconnect_timeout_s")).To(HaveValue(HaveField("Value", "600")))
}

func (e *env) finalizers(cluster *rayv1.RayCluster) []string {
	e.t.Helper()
	e.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
	return cluster.Finalizers
}

func (e *env) delete(cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.Expect(client.IgnoreNotFound(e.Delete(e.t.Context(), cluster.DeepCopy()))).To(Succeed())
}

// cleanup waits for the Job that empties Redis.
func (e *env) cleanup() *batchv1.Job {
	e.t.Helper()
	job := &batchv1.Job{}
	e.Eventually(func() error { return e.read(job, "demo-redis-cleanup") }).Should(Succeed())
	return job
}

// goes waits until the RayCluster is gone.
func (e *env) goes(cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.Eventually(func() bool {
		return apierrors.IsNotFound(e.Get(e.t.Context(), client.ObjectKeyFromObject(cluster), &rayv1.RayCluster{}))
	}).WithTimeout(time.Minute).Should(BeTrue(), "the RayCluster is still there")
}

func (e *env) claim(name string) *corev1.PersistentVolumeClaim {
	e.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	e.Eventually(func() error { return e.read(claim, name) }).Should(Succeed())
	return claim
}
