package ray

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// AutoscalerContainer is the name of the container beside the head that runs Ray's autoscaler.
	AutoscalerContainer = "autoscaler"
	// EnvAutoscalerCommand holds the generated start line of the autoscaler, for users who write the command themselves.
	EnvAutoscalerCommand = "KUBERAY_GEN_AUTOSCALER_START_CMD"
	// EnvAutoscalerV2 tells Ray in the head which generation of the autoscaler runs beside it.
	EnvAutoscalerV2 = "RAY_enable_autoscaler_v2"

	// paramNoMonitor keeps Ray's own monitor in the head from scaling as well.
	paramNoMonitor = "no-monitor"

	logVolume = "ray-logs"
	logPath   = "/tmp/ray"

	// autoscalerCommand has its variables filled in by the kubelet, not by the shell.
	autoscalerCommand = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
)

// LeaveScalingToSidecar changes a head's parameters so that Ray's own monitor stays out of the way of the autoscaler.
func LeaveScalingToSidecar(params map[string]string) { params[paramNoMonitor] = "true" }

// SetAutoscalerVersion tells Ray in the head's container which generation of the autoscaler runs beside it.
func SetAutoscalerVersion(container *corev1.Container, v2 bool) {
	value := "false"
	if v2 {
		value = "true"
	}
	container.Env = append(container.Env, literal(EnvAutoscalerV2, value))
}

// Autoscaler returns the container of Ray's autoscaler with the image of the head. It has neither variables for
// authentication nor the user's options yet.
func Autoscaler(image string, shell Shell) corev1.Container {
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("500m"),
		corev1.ResourceMemory: resource.MustParse("512Mi"),
	}
	return corev1.Container{
		Name:            AutoscalerContainer,
		Image:           image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         shell.Command(),
		Args:            []string{autoscalerCommand},
		Env: []corev1.EnvVar{
			field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
			field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
			field("RAY_HEAD_POD_NAME", "metadata.name"),
			// Ray would ask for an older version of the API.
			literal("KUBERAY_CRD_VER", "v1"),
			literal(EnvAutoscalerCommand, autoscalerCommand),
		},
		Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources.DeepCopy()},
	}
}

// KeepRunning makes the autoscaler's container start the autoscaler again when it ends. Kubelets do not do that in a
// Pod with the restart policy Never, and without the autoscaler the cluster would never be scaled again.
//
// The shell is the first process of the container, which the kernel spares all signals that it does not handle:
// without the trap the end of the Pod would take its whole grace period.
func KeepRunning(container *corev1.Container) {
	container.Args = []string{`trap 'kill "$autoscaler" 2>/dev/null; wait "$autoscaler"; exit 143' TERM
while true; do
  ` + autoscalerCommand + ` &
  autoscaler=$!
  wait "$autoscaler"
  echo "The autoscaler ended with code $?; it starts again in 5 seconds."
  sleep 5 &
  wait $!
done
`}
}

// ShareLogs gives the containers of those names, and the Ray container, one folder for Ray's logs. A container that
// mounts something there already is left alone.
func ShareLogs(pod *corev1.PodSpec, names ...string) {
	used := false
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if i > 0 && !slices.Contains(names, container.Name) || mounts(container, logPath) {
			continue
		}
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: logVolume, MountPath: logPath})
		used = true
	}
	if used && !hasVolume(pod, logVolume) {
		pod.Volumes = append(pod.Volumes,
			corev1.Volume{Name: logVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
}

// CPUsKnown tells whether the number of CPUs of the node follows from its parameters, its declared resources or its
// container. Ray's autoscaler fails on a group of which it does not.
func (n Node) CPUsKnown(container *corev1.Container) bool {
	_, known := n.StartParams(container)[paramNumCPUs]
	return known
}
