package v1

import corev1 "k8s.io/api/core/v1"

// UpscalingMode is the pace at which Ray's autoscaler adds workers.
//
// +kubebuilder:validation:Enum=Default;Aggressive;Conservative
type UpscalingMode string

const (
	// UpscalingModeDefault is the pace that Ray uses when told nothing.
	UpscalingModeDefault UpscalingMode = "Default"
	// UpscalingModeAggressive adds workers without a limit on the pace.
	UpscalingModeAggressive UpscalingMode = "Aggressive"
	// UpscalingModeConservative lets the number of pending workers be at most the number of running ones.
	UpscalingModeConservative UpscalingMode = "Conservative"
)

// AutoscalerVersion is the generation of Ray's autoscaler.
//
// +kubebuilder:validation:Enum=v1;v2
type AutoscalerVersion string

const (
	// AutoscalerVersionV1 is the autoscaler that decides from load reports.
	AutoscalerVersionV1 AutoscalerVersion = "v1"
	// AutoscalerVersionV2 is the autoscaler inside the GCS; it needs Pods that are not restarted in place.
	AutoscalerVersionV2 AutoscalerVersion = "v2"
)

// AutoscalerOptions tunes the container of Ray's autoscaler, and the autoscaler in it.
type AutoscalerOptions struct {
	// version is the generation of the autoscaler. Unset leaves the choice to Ray.
	// +optional
	Version *AutoscalerVersion `json:"version,omitempty"`
	// upscalingMode is the pace at which workers are added. The Ray autoscaler reads it.
	// +optional
	UpscalingMode *UpscalingMode `json:"upscalingMode,omitempty"`
	// idleTimeoutSeconds is how many seconds a worker may be idle before it is removed. Unset means 60, Ray's default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`
	// image is the image of the container. Unset means the image of the head's Ray container.
	// +optional
	Image *string `json:"image,omitempty"`
	// imagePullPolicy is the pull policy of the image. Unset means IfNotPresent.
	// +optional
	ImagePullPolicy *corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// resources are the container's requests and limits. Unset means 500m CPU and 512Mi memory for both.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// command replaces the container's command, if it is not empty.
	// +optional
	Command []string `json:"command,omitempty"`
	// args replaces the container's arguments, if it is not empty.
	// +optional
	Args []string `json:"args,omitempty"`
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
