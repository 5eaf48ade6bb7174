package raycluster

import corev1 "k8s.io/api/core/v1"

// Settings are the settings of the operator on which the objects of a RayCluster depend.
type Settings struct {
	// ClusterDomain is the DNS domain of the Kubernetes cluster. Empty means "cluster.local".
	ClusterDomain string
	// InjectInitContainer makes workers wait for the GCS in an init container.
	InjectInitContainer bool
	// InjectProbes gives Ray containers probes where the user wrote none.
	InjectProbes bool
	// LoginShell runs Ray from a login shell.
	LoginShell bool
	// HeadClusterIPService gives head Services an address of their own instead of making them headless.
	HeadClusterIPService bool
	// DeterministicHeadPodName calls the head Pod "<cluster>-head".
	DeterministicHeadPodName bool
	// RandomPodDelete lets the operator choose the Pods to delete when a cluster with Ray's autoscaler has too many.
	RandomPodDelete bool
	// Routes makes Routes of OpenShift instead of Ingresses.
	Routes bool
	// RedisCleanup removes the keys of a cluster from Redis when it is deleted.
	RedisCleanup bool
	// EmbeddedStorage allows clusters whose GCS keeps its state on a volume of the head.
	EmbeddedStorage bool
	// OperatorVersion is written on head Pods and into Ray's usage statistics.
	OperatorVersion string
	// DefaultContainerEnvs are added to Ray containers that have no variable of the same name.
	DefaultContainerEnvs []corev1.EnvVar
	// DefaultPodLabels are added to Pods that have no label of the same key.
	DefaultPodLabels map[string]string
	// DefaultPodAnnotations are added to Pods that have no annotation of the same key.
	DefaultPodAnnotations map[string]string
	// HeadSidecarContainers are added to head Pods.
	HeadSidecarContainers []corev1.Container
	// WorkerSidecarContainers are added to worker Pods.
	WorkerSidecarContainers []corev1.Container
}

// DefaultSettings returns the settings of an operator that was told nothing, apart from its version.
func DefaultSettings() Settings {
	return Settings{InjectInitContainer: true, InjectProbes: true, RedisCleanup: true}
}
