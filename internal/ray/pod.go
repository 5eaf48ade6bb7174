package ray

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

const (
	// WaitForGCSContainer is the name of the init container that keeps a worker from starting before the head.
	WaitForGCSContainer = "wait-gcs-ready"

	sharedMemoryVolume = "shared-mem"
	sharedMemoryPath   = "/dev/shm"
)

// Seconds of the end of a Pod. A node that gets SIGTERM takes no new work, moves what it can to other nodes and ends its requests
// for up to RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S, since Ray 2.57, which is 30 by default; shutdownTime is for Ray's own shutdown
// after that. Kubernetes' usual 30 seconds would end the Pod in between, so that of a serving cluster has gracePeriod.
const (
	drainTimeout = 30
	gracePeriod  = 60
	shutdownTime = 10
)

// SetGracePeriod gives a Pod that serves requests the time to end them, unless the user gave it another.
func (n Node) SetGracePeriod(pod *corev1.PodSpec) {
	if n.Cluster.serving() && pod.TerminationGracePeriodSeconds == nil {
		pod.TerminationGracePeriodSeconds = ptr.To[int64](gracePeriod)
	}
}

// drainTime is for how many seconds a node that is to end lets its work go on, and false where Ray's own default is to hold: as long
// as the user gives its Pod, but for the shutdown.
func (n Node) drainTime() (seconds int64, is bool) {
	switch {
	case n.GracePeriod != nil:
		return max(*n.GracePeriod-shutdownTime, 0), true
	default:
		return drainTimeout, n.Cluster.serving()
	}
}

// AddMetricsPort declares the port of Ray's metrics unless the container declares a port of that name.
func AddMetricsPort(container *corev1.Container) {
	named := func(p corev1.ContainerPort) bool { return p.Name == PortNameMetrics }
	if slices.ContainsFunc(container.Ports, named) {
		return
	}
	container.Ports = append(container.Ports,
		corev1.ContainerPort{Name: PortNameMetrics, ContainerPort: DefaultMetricsPort})
}

// AddSharedMemory gives the Ray container, which is the first one of the Pod, room for the object store at /dev/shm;
// container runtimes give 64 MiB. The room counts as memory of the container, so its memory limit, else its
// request, is the room's limit. Nothing is added when the user mounts something there or keeps objects elsewhere.
func AddSharedMemory(pod *corev1.PodSpec, params map[string]string) {
	if _, elsewhere := params[paramPlasmaDir]; elsewhere {
		return
	}
	container := &pod.Containers[0]
	if mounts(container, sharedMemoryPath) {
		return
	}
	if !hasVolume(pod, sharedMemoryVolume) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{
			Name: sharedMemoryVolume,
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
				Medium:    corev1.StorageMediumMemory,
				SizeLimit: memoryOf(container.Resources),
			}},
		})
	}
	container.VolumeMounts = append(container.VolumeMounts,
		corev1.VolumeMount{Name: sharedMemoryVolume, MountPath: sharedMemoryPath})
}

func mounts(container *corev1.Container, path string) bool {
	return slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
		return strings.TrimRight(m.MountPath, "/") == path
	})
}

func hasVolume(pod *corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

func memoryOf(resources corev1.ResourceRequirements) *resource.Quantity {
	for _, list := range []corev1.ResourceList{resources.Limits, resources.Requests} {
		if memory, ok := list[corev1.ResourceMemory]; ok && !memory.IsZero() {
			return &memory
		}
	}
	return nil
}

// WaitForGCS returns the init container that waits, without a limit of time, until the GCS answers at the address
// that the worker will use. The Ray container must be as the user wrote it: image, environment, mounts and security
// context are taken from it, so that whatever Ray needs for connecting is there, too.
func (n Node) WaitForGCS(container *corev1.Container, shell Shell) corev1.Container {
	user := container.DeepCopy()
	return corev1.Container{
		Name:            WaitForGCSContainer,
		Image:           user.Image,
		ImagePullPolicy: user.ImagePullPolicy,
		Command:         shell.Command(),
		Args:            []string{waitScript(n.joinAddress())},
		EnvFrom:         user.EnvFrom,
		Env:             user.Env,
		Resources:       waitResources(user.Resources),
		VolumeMounts:    user.VolumeMounts,
		SecurityContext: user.SecurityContext,
	}
}

// waitResources follow those of the Ray container, upwards: its image may need more than the usual to start Python, and
// since init containers run before the others, what is no more than theirs costs nothing. Accelerators are left out.
func waitResources(ray corev1.ResourceRequirements) corev1.ResourceRequirements {
	least := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("200m"),
		corev1.ResourceMemory: resource.MustParse("256Mi"),
	}
	own := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	for name, quantity := range least {
		limit, request := ray.Limits[name], ray.Requests[name]
		if request.IsZero() {
			request = limit
		}
		own.Limits[name], own.Requests[name] = larger(quantity, limit), larger(quantity, request)
		if limit.IsZero() {
			// The limit is the least one then, and a request may not be larger.
			own.Requests[name] = quantity
		}
	}
	return own
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) >= 0 {
		return a.DeepCopy()
	}
	return b.DeepCopy()
}

// joinAddress returns, as shell text, the address at which the worker joins its cluster.
func (n Node) joinAddress() string {
	if address := n.Params[paramAddress]; address != "" {
		return quoteWord(address)
	}
	return quoteWord(n.Cluster.gcsAddress())
}

// waitScript returns a script that asks the GCS every five seconds. What Ray prints in the first two minutes, when a
// head is normally still starting, is hidden: a stack trace for each attempt.
func waitScript(address string) string {
	return `gcs=` + address + `
SECONDS=0
echo "Waiting for Ray's GCS at $gcs."
while true; do
  if [ "$SECONDS" -lt 120 ]; then
    ray health-check --address "$gcs" > /dev/null 2>&1 && break
    echo "The GCS at $gcs does not answer yet; waited for $SECONDS seconds."
  else
    echo "The GCS at $gcs has not answered for $SECONDS seconds. Ray says:"
    ray health-check --address "$gcs" && break
  fi
  sleep 5
done
echo "The GCS at $gcs answers after $SECONDS seconds."
`
}
