package raycluster

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

const (
	// cleanupLimit is how many seconds the Job has.
	cleanupLimit = 300
	// cleanupKept is how many seconds the Job stays when it has ended and nothing else takes it away.
	cleanupKept = 300
	// cleanupCPU and cleanupMemory are what its Pod gets, unless an annotation says otherwise.
	cleanupCPU    = "200m"
	cleanupMemory = "256Mi"
	// maxJobName is the longest name of a Job that still fits into the labels of its Pods.
	maxJobName = 63
)

// emptyRedis is what the Job runs. It uses what Ray itself offers for that, because only Ray knows how its keys are called.
//
//go:embed redis_cleanup.py
var emptyRedis string

// cleanupJobName returns the name of the Job that empties Redis.
func cleanupJobName(cluster *rayv1.RayCluster) string {
	name := cluster.Name + "-redis-cleanup"
	if len(name) > maxJobName {
		return ShortName(name)
	}
	return name
}

// cleanupJob is the Job that removes the keys of a cluster from Redis. Its Pod has as little as possible of the head's, so that
// what kept the head from running does not keep the keys. withAccount tells whether the head's service account is still there.
func cleanupJob(cluster *rayv1.RayCluster, settings Settings, storages []rayv1.RedisStorage, withAccount bool) *batchv1.Job {
	labels := mergeLabels(ownLabels(cluster, rayv1.NodeTypeRedisCleanup, rayv1.HeadGroupName), cluster.Spec.HeadGroupSpec.Template.Labels)
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: kindJob},
		ObjectMeta: metav1.ObjectMeta{Name: cleanupJobName(cluster), Namespace: cluster.Namespace, Labels: labels},
		Spec: batchv1.JobSpec{
			BackoffLimit:            ptr.To[int32](0),
			ActiveDeadlineSeconds:   ptr.To[int64](cleanupLimit),
			TTLSecondsAfterFinished: ptr.To[int32](cleanupKept),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       cleanupPod(cluster, settings, storages, withAccount),
			},
		},
	}
	// A cluster that is deleted in the foreground takes its dependents with it first, and this is one that it needs.
	if !slices.Contains(cluster.Finalizers, metav1.FinalizerDeleteDependents) {
		job.OwnerReferences = ownerReferences(cluster)
		job.OwnerReferences[0].BlockOwnerDeletion = nil
	}
	return job
}

func cleanupPod(cluster *rayv1.RayCluster, settings Settings, storages []rayv1.RedisStorage, withAccount bool) corev1.PodSpec {
	head := cluster.Spec.HeadGroupSpec.Template.Spec.DeepCopy()
	pod := corev1.PodSpec{
		RestartPolicy:                corev1.RestartPolicyNever,
		AutomountServiceAccountToken: ptr.To(false),
		ImagePullSecrets:             head.ImagePullSecrets,
		SecurityContext:              head.SecurityContext,
		Tolerations:                  head.Tolerations,
		HostAliases:                  head.HostAliases,
		DNSPolicy:                    head.DNSPolicy,
		DNSConfig:                    head.DNSConfig,
		NodeSelector:                 map[string]string{},
		Volumes:                      slices.DeleteFunc(head.Volumes, func(v corev1.Volume) bool { return !holdsCertificates(v) }),
	}
	if withAccount {
		pod.ServiceAccountName = head.ServiceAccountName
	}
	for _, key := range []string{corev1.LabelArchStable, corev1.LabelOSStable} {
		if value, ok := head.NodeSelector[key]; ok {
			pod.NodeSelector[key] = value
		}
	}
	if len(head.Containers) == 0 {
		return pod
	}
	for i := range storages {
		pod.Containers = append(pod.Containers, cleanupContainer(cluster, settings, &head.Containers[0], storages[i], i, pod.Volumes))
	}
	return pod
}

func cleanupContainer(cluster *rayv1.RayCluster, settings Settings, head *corev1.Container, storage rayv1.RedisStorage, i int,
	volumes []corev1.Volume,
) corev1.Container {
	container := corev1.Container{
		Name: head.Name, Image: head.Image, ImagePullPolicy: head.ImagePullPolicy, SecurityContext: head.SecurityContext,
		Command: ray.Shell{Login: settings.LoginShell}.Command(),
		Args:    []string{"exec python -c " + ray.SingleQuote(emptyRedis)},
		EnvFrom: head.EnvFrom,
		VolumeMounts: slices.DeleteFunc(slices.Clone(head.VolumeMounts), func(m corev1.VolumeMount) bool {
			return !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		}),
	}
	if i > 0 {
		container.Name = "redis-cleanup-" + strconv.Itoa(i+1)
	}
	container.Env = slices.DeleteFunc(slices.Clone(head.Env), func(v corev1.EnvVar) bool { return envNamed(storage.Env, v.Name) != nil })
	container.Env = append(container.Env, storage.Env...)
	// A minute of trying to connect, as Ray's own processes do.
	ray.AddEnv(&container, corev1.EnvVar{Name: "RAY_redis_db_connect_retries", Value: "120"},
		corev1.EnvVar{Name: "RAY_redis_db_connect_wait_milliseconds", Value: "500"})
	quantities := cleanupResources(cluster)
	container.Resources = corev1.ResourceRequirements{Limits: quantities, Requests: quantities}
	return container
}

// holdsCertificates tells whether a volume may hold what a connection to Redis needs, and cannot be missing or taken.
func holdsCertificates(v corev1.Volume) bool {
	return v.Secret != nil || v.ConfigMap != nil || v.Projected != nil
}

// cleanupResources are what the Pod gets: the annotations' values where they make sense.
func cleanupResources(cluster *rayv1.RayCluster) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, from := range map[corev1.ResourceName]struct{ annotation, otherwise string }{
		corev1.ResourceCPU:    {rayv1.AnnotationRedisCleanupCPU, cleanupCPU},
		corev1.ResourceMemory: {rayv1.AnnotationRedisCleanupMemory, cleanupMemory},
	} {
		quantity, err := resource.ParseQuantity(cluster.Annotations[from.annotation])
		if err != nil || quantity.Sign() <= 0 {
			quantity = resource.MustParse(from.otherwise)
		}
		list[name] = quantity
	}
	return list
}

// describeStorage names a place in Redis for people, without credentials.
func describeStorage(storage rayv1.RedisStorage) string {
	namespace, address := envNamed(storage.Env, envStorageNamespace), envNamed(storage.Env, envRedisAddress)
	return fmt.Sprintf("storage namespace %s at Redis %s", textOf(namespace), textOf(address))
}

func textOf(variable *corev1.EnvVar) string {
	switch {
	case variable == nil:
		return "(unknown)"
	case variable.ValueFrom != nil:
		return "(as " + variable.Name + " says)"
	default:
		return withoutPassword(variable.Value)
	}
}
