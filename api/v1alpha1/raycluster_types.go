package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayCluster is one Ray cluster: a head Pod and any number of groups of worker Pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=all
// +kubebuilder:deprecatedversion:warning="ray.io/v1alpha1 RayCluster is deprecated and drops fields of ray.io/v1; use ray.io/v1 RayCluster. v1alpha1 will be removed in release 1.9"
// +kubebuilder:printcolumn:name="desired workers",type=integer,JSONPath=".status.desiredWorkerReplicas"
// +kubebuilder:printcolumn:name="available workers",type=integer,JSONPath=".status.availableWorkerReplicas"
// +kubebuilder:printcolumn:name="cpus",type=string,JSONPath=".status.desiredCPU"
// +kubebuilder:printcolumn:name="memory",type=string,JSONPath=".status.desiredMemory"
// +kubebuilder:printcolumn:name="gpus",type=string,JSONPath=".status.desiredGPU"
// +kubebuilder:printcolumn:name="tpus",type=string,JSONPath=".status.desiredTPU",priority=1
// +kubebuilder:printcolumn:name="status",type=string,JSONPath=".status.state"
// +kubebuilder:printcolumn:name="age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="head pod IP",type=string,JSONPath=".status.head.podIP",priority=1
// +kubebuilder:printcolumn:name="head service IP",type=string,JSONPath=".status.head.serviceIP",priority=1
type RayCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which Pods the cluster shall consist of and how Ray is started in them.
	// +optional
	Spec RayClusterSpec `json:"spec,omitempty"`
	// status says what was last observed of the cluster.
	// +optional
	Status RayClusterStatus `json:"status,omitempty"`
}

// RayClusterList is a list of RayClusters.
//
// +kubebuilder:object:root=true
type RayClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the RayClusters of the list.
	Items []RayCluster `json:"items"`
}

// RayClusterSpec is the desired state of a RayCluster.
type RayClusterSpec struct {
	// headGroupSpec describes the head Pod.
	HeadGroupSpec HeadGroupSpec `json:"headGroupSpec"`
	// workerGroupSpecs describes the groups of worker Pods.
	// +optional
	WorkerGroupSpecs []WorkerGroupSpec `json:"workerGroupSpecs,omitempty"`
	// rayVersion is the version of Ray inside the images.
	// +optional
	RayVersion string `json:"rayVersion,omitempty"`
	// enableInTreeAutoscaling adds the Ray autoscaler to the head Pod.
	// +optional
	EnableInTreeAutoscaling *bool `json:"enableInTreeAutoscaling,omitempty"`
	// autoscalerOptions tunes the autoscaler's container.
	// +optional
	AutoscalerOptions *AutoscalerOptions `json:"autoscalerOptions,omitempty"`
	// headServiceAnnotations are put on the head Service.
	// +optional
	HeadServiceAnnotations map[string]string `json:"headServiceAnnotations,omitempty"`
	// suspend deletes all Pods of the cluster while it is true.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// HeadGroupSpec describes the head Pod of a RayCluster.
type HeadGroupSpec struct {
	// template is the Pod template of the head.
	Template corev1.PodTemplateSpec `json:"template"`
	// rayStartParams are the flags of "ray start" on the head.
	RayStartParams map[string]string `json:"rayStartParams"`
	// headService is a template of the head Service.
	// +optional
	HeadService *corev1.Service `json:"headService,omitempty"`
	// serviceType is the type of the head Service.
	// +optional
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`
	// enableIngress creates an Ingress to the dashboard.
	// +optional
	EnableIngress *bool `json:"enableIngress,omitempty"`
}

// WorkerGroupSpec describes a group of equal workers.
type WorkerGroupSpec struct {
	// groupName identifies the group within its cluster.
	GroupName string `json:"groupName"`
	// replicas is the desired number of workers.
	// +optional
	// +kubebuilder:default:=0
	Replicas *int32 `json:"replicas,omitempty"`
	// minReplicas is the least number of workers.
	// +kubebuilder:default:=0
	MinReplicas *int32 `json:"minReplicas"`
	// maxReplicas is the greatest number of workers.
	// +kubebuilder:default:=2147483647
	MaxReplicas *int32 `json:"maxReplicas"`
	// template is the Pod template of the group.
	Template corev1.PodTemplateSpec `json:"template"`
	// rayStartParams are the flags of "ray start" on the group's workers.
	RayStartParams map[string]string `json:"rayStartParams"`
	// scaleStrategy names workers that have to go.
	// +optional
	ScaleStrategy ScaleStrategy `json:"scaleStrategy,omitempty"`
}

// ScaleStrategy says which workers have to go when a group shrinks.
type ScaleStrategy struct {
	// workersToDelete are names of worker Pods to delete.
	// +optional
	WorkersToDelete []string `json:"workersToDelete,omitempty"`
}

// UpscalingMode is the pace at which Ray's autoscaler adds workers.
//
// +kubebuilder:validation:Enum=Default;Aggressive;Conservative
type UpscalingMode string

// AutoscalerOptions tunes the container of Ray's autoscaler.
type AutoscalerOptions struct {
	// upscalingMode is the pace at which workers are added.
	// +optional
	UpscalingMode *UpscalingMode `json:"upscalingMode,omitempty"`
	// idleTimeoutSeconds is how many seconds a worker may be idle before it is removed.
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`
	// image is the image of the container.
	// +optional
	Image *string `json:"image,omitempty"`
	// imagePullPolicy is the pull policy of the image.
	// +optional
	ImagePullPolicy *corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// resources are the container's requests and limits.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// env is added to the container's environment.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// envFrom is added to the sources of the container's environment.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// volumeMounts is added to the container's mounts.
	// +optional
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	// securityContext is the container's security context.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// ClusterState is the coarse state of a RayCluster.
type ClusterState string

const (
	// ClusterStateReady means that all desired Pods were up.
	ClusterStateReady ClusterState = "ready"
	// ClusterStateUnhealthy was once written for a cluster with broken Pods.
	ClusterStateUnhealthy ClusterState = "unhealthy"
	// ClusterStateFailed was once written for a cluster that could not be made.
	ClusterStateFailed ClusterState = "failed"
	// ClusterStateSuspended means that the cluster has no Pods because it is suspended.
	ClusterStateSuspended ClusterState = "suspended"
)

// RayClusterStatus is what was last observed of a RayCluster.
type RayClusterStatus struct {
	// state is the coarse state of the cluster.
	// +optional
	State ClusterState `json:"state,omitempty"`
	// reason explains the state.
	// +optional
	Reason string `json:"reason,omitempty"`
	// observedGeneration is the metadata.generation that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastUpdateTime is the time of the last write of this status.
	// +optional
	// +nullable
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// head says where the head is.
	// +optional
	Head HeadInfo `json:"head,omitempty"`
	// endpoints are the ports of the head Service.
	// +optional
	Endpoints map[string]string `json:"endpoints,omitempty"`
	// desiredWorkerReplicas is the number of worker Pods that the spec asks for.
	// +optional
	DesiredWorkerReplicas int32 `json:"desiredWorkerReplicas,omitempty"`
	// minWorkerReplicas is the least number of worker Pods that the spec allows.
	// +optional
	MinWorkerReplicas int32 `json:"minWorkerReplicas,omitempty"`
	// maxWorkerReplicas is the greatest number of worker Pods that the spec allows.
	// +optional
	MaxWorkerReplicas int32 `json:"maxWorkerReplicas,omitempty"`
	// availableWorkerReplicas is the number of worker Pods in phase Running.
	// +optional
	AvailableWorkerReplicas int32 `json:"availableWorkerReplicas,omitempty"`
	// readyWorkerReplicas is the number of worker Pods that are running and ready.
	// +optional
	ReadyWorkerReplicas int32 `json:"readyWorkerReplicas,omitempty"`
	// desiredCPU is the number of CPUs that head and workers ask for together.
	// +optional
	DesiredCPU resource.Quantity `json:"desiredCPU,omitempty"`
	// desiredMemory is the memory in bytes that head and workers ask for together.
	// +optional
	DesiredMemory resource.Quantity `json:"desiredMemory,omitempty"`
	// desiredGPU is the number of GPUs that head and workers ask for together.
	// +optional
	DesiredGPU resource.Quantity `json:"desiredGPU,omitempty"`
	// desiredTPU is the number of TPU chips that head and workers ask for together.
	// +optional
	DesiredTPU resource.Quantity `json:"desiredTPU,omitempty"`
}

// HeadInfo says where the head of a RayCluster is.
type HeadInfo struct {
	// podIP is the address of the head Pod.
	// +optional
	PodIP string `json:"podIP,omitempty"`
	// serviceIP is the cluster address of the head Service.
	// +optional
	ServiceIP string `json:"serviceIP,omitempty"`
}
