package raycluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// What Ray reads about the storage of its GCS (Ray's documentation, "GCS fault tolerance in Ray"; spec/ray-runtime.md
// section 6).
const (
	envRedisAddress     = "RAY_REDIS_ADDRESS"
	envRedisUsername    = "REDIS_USERNAME"
	envRedisPassword    = "REDIS_PASSWORD"
	envStorageNamespace = "RAY_external_storage_namespace"
	envStorage          = "RAY_gcs_storage"
	envStoragePath      = "RAY_gcs_storage_path"
	envReconnectTimeout = "RAY_gcs_rpc_server_reconnect_timeout_s"

	paramRedisUsername = "redis-username"
	paramRedisPassword = "redis-password"

	storageVolume = "gcs-storage"
	storagePath   = "/data/gcs"

	// reconnectTimeout is how many seconds a worker waits for a head that went away. Ray's own default is 60, less than a
	// head takes to be made again on another node.
	reconnectTimeout = "600"
)

// FaultTolerant tells whether the state of a cluster's GCS, with it actors and job records, outlives its head.
func FaultTolerant(cluster *rayv1.RayCluster) bool {
	return cluster.Spec.GcsFaultToleranceOptions != nil || strings.EqualFold(cluster.Annotations[rayv1.AnnotationFTEnabled], "true")
}

// embedded tells whether the GCS keeps its state on a volume of the head.
func embedded(cluster *rayv1.RayCluster) bool {
	options := cluster.Spec.GcsFaultToleranceOptions
	return options != nil && options.Backend == rayv1.GcsBackendRocksDB
}

// inRedis tells whether the GCS keeps its state in Redis.
func inRedis(cluster *rayv1.RayCluster) bool { return FaultTolerant(cluster) && !embedded(cluster) }

// StorageNamespace is the prefix of the keys of a cluster in Redis, unless its head's own environment says otherwise.
func StorageNamespace(cluster *rayv1.RayCluster) string {
	if options := cluster.Spec.GcsFaultToleranceOptions; options != nil && options.ExternalStorageNamespace != "" {
		return options.ExternalStorageNamespace
	}
	if namespace := cluster.Annotations[rayv1.AnnotationExternalStorageNamespace]; namespace != "" {
		return namespace
	}
	return string(cluster.UID)
}

// redisStorage is where the head of a cluster keeps its state in Redis, nil when it does not.
func redisStorage(cluster *rayv1.RayCluster) *rayv1.RedisStorage {
	if !inRedis(cluster) {
		return nil
	}
	written := headEnvOf(cluster)
	storage := &rayv1.RedisStorage{Env: []corev1.EnvVar{{Name: envStorageNamespace, Value: StorageNamespace(cluster)}}}
	if own := envNamed(written, envStorageNamespace); own != nil {
		storage.Env[0] = *own
	}
	if options := cluster.Spec.GcsFaultToleranceOptions; options != nil {
		storage.Env = append(storage.Env, corev1.EnvVar{Name: envRedisAddress, Value: options.RedisAddress})
		storage.Env = append(storage.Env, credential(envRedisUsername, options.RedisUsername)...)
		storage.Env = append(storage.Env, credential(envRedisPassword, options.RedisPassword)...)
		return storage
	}
	if address := envNamed(written, envRedisAddress); address != nil {
		storage.Env = append(storage.Env, *address)
	}
	password, given := cluster.Spec.HeadGroupSpec.RayStartParams[paramRedisPassword]
	switch own := envNamed(written, envRedisPassword); {
	case own != nil:
		storage.Env = append(storage.Env, *own)
	case given:
		storage.Env = append(storage.Env, corev1.EnvVar{Name: envRedisPassword, Value: password})
	}
	return storage
}

func credential(name string, given *rayv1.RedisCredential) []corev1.EnvVar {
	if given == nil {
		return nil
	}
	return []corev1.EnvVar{{Name: name, Value: given.Value, ValueFrom: given.ValueFrom.DeepCopy()}}
}

// headEnvOf are the variables of the head's Ray container as the user wrote them.
func headEnvOf(cluster *rayv1.RayCluster) []corev1.EnvVar {
	containers := cluster.Spec.HeadGroupSpec.Template.Spec.Containers
	if len(containers) == 0 {
		return nil
	}
	return containers[0].Env
}

// envNamed returns the variable of a name, or nil.
func envNamed(variables []corev1.EnvVar, name string) *corev1.EnvVar {
	i := slices.IndexFunc(variables, func(v corev1.EnvVar) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &variables[i]
}

// setStorage tells the head where its GCS keeps its state, and clients of the head Pod whether it does.
func (b *build) setStorage() {
	if !FaultTolerant(b.cluster) {
		b.annotate(rayv1.AnnotationFTEnabled, "false")
		return
	}
	b.annotate(rayv1.AnnotationFTEnabled, "true")
	if embedded(b.cluster) {
		b.mountStorage()
		return
	}
	b.annotate(rayv1.AnnotationExternalStorageNamespace, StorageNamespace(b.cluster))
	ray.AddEnv(b.container(), redisStorage(b.cluster).Env...)
	if options := b.cluster.Spec.GcsFaultToleranceOptions; options != nil {
		b.passCredential(paramRedisUsername, envRedisUsername, options.RedisUsername)
		b.passCredential(paramRedisPassword, envRedisPassword, options.RedisPassword)
	}
}

// passCredential hands a credential to "ray start". It is quoted, so that blanks and asterisks in it stay what they are.
func (b *build) passCredential(param, variable string, given *rayv1.RedisCredential) {
	if given != nil {
		b.params[param] = `"$` + variable + `"`
	}
}

func (b *build) mountStorage() {
	storage := ptr.Deref(b.cluster.Spec.GcsFaultToleranceOptions.Storage, rayv1.GcsEmbeddedStorage{})
	b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, corev1.Volume{Name: storageVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(b.cluster)}}})
	container := b.container()
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: storageVolume, MountPath: storagePath, SubPath: storage.SubPath})
	ray.AddEnv(container, corev1.EnvVar{Name: envStorage, Value: string(rayv1.GcsBackendRocksDB)},
		corev1.EnvVar{Name: envStoragePath, Value: storagePath})
}

// awaitHead makes a worker wait for a head that is made again.
func (b *build) awaitHead() {
	if FaultTolerant(b.cluster) {
		ray.AddEnv(b.container(), corev1.EnvVar{Name: envReconnectTimeout, Value: reconnectTimeout})
	}
}
