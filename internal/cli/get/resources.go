package get

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-io/heliostat/internal/ray"
)

// resources are what containers ask for.
type resources struct {
	// CPU is a number of CPUs.
	CPU resource.Quantity `json:"cpu"`
	// GPU is a number of GPUs of any make.
	GPU resource.Quantity `json:"gpu"`
	// TPU is a number of TPU chips.
	TPU resource.Quantity `json:"tpu"`
	// Memory is in bytes.
	Memory resource.Quantity `json:"memory"`
}

func (r *resources) add(list corev1.ResourceList, times int64) {
	for name, quantity := range list {
		sum := r.of(name)
		if sum == nil {
			continue
		}
		quantity = quantity.DeepCopy()
		quantity.Mul(times)
		sum.Add(quantity)
	}
}

func (r *resources) of(name corev1.ResourceName) *resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return &r.CPU
	case name == corev1.ResourceMemory:
		return &r.Memory
	case name == ray.ResourceTPU:
		return &r.TPU
	case ray.IsGPU(string(name)):
		return &r.GPU
	default:
		return nil
	}
}

// requests are what a container requests, or for what it does not, its limits: that is how the API server completes them.
func requests(container *corev1.Container) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, quantity := range container.Resources.Limits {
		list[name] = quantity
	}
	for name, quantity := range container.Resources.Requests {
		list[name] = quantity
	}
	return list
}

// resourceColumns are the same in the tables of groups and of nodes.
func resourceColumns[T any](of func(T) resources) []column[T] {
	return []column[T]{
		{name: "CPUS", cell: func(row T) string { r := of(row); return r.CPU.String() }},
		{name: "GPUS", cell: func(row T) string { r := of(row); return r.GPU.String() }},
		{name: "TPUS", cell: func(row T) string { r := of(row); return r.TPU.String() }},
		{name: "MEMORY", cell: func(row T) string { r := of(row); return r.Memory.String() }},
	}
}
