// Package blueprint builds the groups of a RayCluster from what flags say of them, in the same way for every command.
package blueprint

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// Defaults of flags, those of KubeRay's plugin (spec/ecosystem.md, section 2).
const (
	// RayVersion is the release of Ray.
	RayVersion = "2.52.0"
	// Group is the name of the only worker group.
	Group = "default-group"
	// CPU, Memory and GPU are what the head has, and each worker.
	CPU    = "2"
	Memory = "4Gi"
	GPU    = "0"
)

// Image is the image of a release of Ray.
func Image(version string) string { return "rayproject/ray:" + version }

const (
	headContainer   = "ray-head"
	workerContainer = "ray-worker"
	// resourceGPU is the resource of Kubernetes that flags for GPUs mean.
	resourceGPU = "nvidia.com/gpu"
)

// Node describes the head, or each worker of a group. Amounts of zero are not asked for.
type Node struct {
	// CPU is in CPUs.
	CPU resource.Quantity
	// Memory and EphemeralStorage are in bytes.
	Memory, EphemeralStorage resource.Quantity
	// GPU is a number of nvidia.com/gpu, and TPU one of google.com/tpu, which are chips.
	GPU, TPU resource.Quantity
	// RayStartParams are flags of ray start without their leading dashes.
	RayStartParams map[string]string
	// NodeSelector has the labels that nodes of Kubernetes must have.
	NodeSelector map[string]string
}

// Pods is what all Pods of a cluster have in common.
type Pods struct {
	Image string
	// ServiceAccount is that of the namespace when it is empty.
	ServiceAccount string
}

// Head returns the head's group. Its container has the ports that clients of Ray know.
func (p Pods) Head(n Node) rayv1.HeadGroupSpec {
	template := p.template(headContainer, n)
	template.Spec.Containers[0].Ports = []corev1.ContainerPort{
		{Name: ray.PortNameGCS, ContainerPort: ray.DefaultGCSPort},
		{Name: ray.PortNameDashboard, ContainerPort: ray.DefaultDashboardPort},
		{Name: ray.PortNameClient, ContainerPort: ray.DefaultClientPort},
	}
	return rayv1.HeadGroupSpec{RayStartParams: n.RayStartParams, Template: template}
}

// Workers returns a group of workers. The caller sets the numbers of replicas and hosts.
func (p Pods) Workers(name string, n Node) rayv1.WorkerGroupSpec {
	return rayv1.WorkerGroupSpec{GroupName: name, RayStartParams: n.RayStartParams, Template: p.template(workerContainer, n)}
}

func (p Pods) template(container string, n Node) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ServiceAccountName: p.ServiceAccount,
		NodeSelector:       n.NodeSelector,
		Containers:         []corev1.Container{{Name: container, Image: p.Image, Resources: n.resources()}},
	}}
}

// resources have no limit of CPU, so that Ray may use what is idle. All others are set aside in full: Kubernetes asks for
// that with GPUs and TPUs, and memory that was not set aside may be missing when Ray needs it.
func (n Node) resources() corev1.ResourceRequirements {
	limits := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceMemory:           n.Memory,
		corev1.ResourceEphemeralStorage: n.EphemeralStorage,
		resourceGPU:                     n.GPU,
		ray.ResourceTPU:                 n.TPU,
	} {
		if !amount.IsZero() {
			limits[name] = amount
		}
	}
	requests := limits.DeepCopy()
	if !n.CPU.IsZero() {
		requests[corev1.ResourceCPU] = n.CPU
	}
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}
