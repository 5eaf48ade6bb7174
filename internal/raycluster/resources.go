package raycluster

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// Totals are resources that a RayCluster asks of Kubernetes.
type Totals struct {
	// CPU is a number of CPUs.
	CPU resource.Quantity
	// Memory is in bytes.
	Memory resource.Quantity
	// GPU is the number of GPUs of all makes, partitions of GPUs included.
	GPU resource.Quantity
	// TPU is the number of TPU chips.
	TPU resource.Quantity
}

// DesiredResources sums up what the containers of the head and of all wanted workers request, or have as their limit
// where they request nothing. Init containers and what the operator adds to Pods do not count.
func DesiredResources(spec *rayv1.RayClusterSpec) Totals {
	var totals Totals
	totals.add(&spec.HeadGroupSpec.Template.Spec, 1)
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		totals.add(&group.Template.Spec, podsOf(group, GroupReplicas(group)))
	}
	return totals
}

func (t *Totals) add(pod *corev1.PodSpec, count int64) {
	for i := range pod.Containers {
		for name, quantity := range requested(pod.Containers[i].Resources) {
			quantity.Mul(count)
			if sum := t.of(name); sum != nil {
				sum.Add(quantity)
			}
		}
	}
}

// of returns the sum to which a resource belongs, or nil for one that is not summed up.
func (t *Totals) of(name corev1.ResourceName) *resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return &t.CPU
	case name == corev1.ResourceMemory:
		return &t.Memory
	case name == ray.ResourceTPU:
		return &t.TPU
	case ray.IsGPU(string(name)):
		return &t.GPU
	default:
		return nil
	}
}

func requested(resources corev1.ResourceRequirements) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range resources.Limits {
		list[name] = quantity.DeepCopy()
	}
	for name, quantity := range resources.Requests {
		list[name] = quantity.DeepCopy()
	}
	return list
}

// GroupReplicas returns the number of replicas that a group shall have: the wanted number, or the least one if none
// is given, kept within its bounds. A suspended group has none.
func GroupReplicas(group *rayv1.WorkerGroupSpec) int32 {
	if ptr.Deref(group.Suspend, false) {
		return 0
	}
	least, most := bounds(group)
	return min(max(ptr.Deref(group.Replicas, least), least), most)
}

// bounds returns the least and the greatest number of replicas of a group. None of them is negative.
func bounds(group *rayv1.WorkerGroupSpec) (least, most int32) {
	return max(ptr.Deref(group.MinReplicas, 0), 0), max(ptr.Deref(group.MaxReplicas, math.MaxInt32), 0)
}

// DesiredWorkers returns the number of worker Pods that a RayCluster shall have, at most 2147483647.
func DesiredWorkers(spec *rayv1.RayClusterSpec) int32 {
	return sumOfPods(spec, GroupReplicas)
}

// MinWorkers returns the least number of worker Pods that a RayCluster may have, at most 2147483647. Suspended groups
// do not count.
func MinWorkers(spec *rayv1.RayClusterSpec) int32 {
	return sumOfPods(spec, func(group *rayv1.WorkerGroupSpec) int32 {
		least, _ := bounds(group)
		return least
	})
}

// MaxWorkers returns the greatest number of worker Pods that a RayCluster may have, at most 2147483647. Suspended
// groups do not count.
func MaxWorkers(spec *rayv1.RayClusterSpec) int32 {
	return sumOfPods(spec, func(group *rayv1.WorkerGroupSpec) int32 {
		_, most := bounds(group)
		return most
	})
}

func sumOfPods(spec *rayv1.RayClusterSpec, replicas func(*rayv1.WorkerGroupSpec) int32) int32 {
	var sum int64
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		if !ptr.Deref(group.Suspend, false) {
			// Both summands are at most 2^62, and the sum is cut at once, so that nothing overflows.
			sum = min(sum+podsOf(group, replicas(group)), math.MaxInt32)
		}
	}
	return int32(sum)
}

func podsOf(group *rayv1.WorkerGroupSpec, replicas int32) int64 {
	return int64(replicas) * int64(hostsOf(group))
}

// hostsOf returns the number of Pods of one replica. Zero is how Go writes an absent number, for which the API server
// puts in one.
func hostsOf(group *rayv1.WorkerGroupSpec) int32 {
	return max(group.NumOfHosts, 1)
}
