package raycluster

import (
	"math"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
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

// DesiredResources sums up what the scheduler sets aside for the head and for all wanted workers. It looks at the Pods as
// they are made, with all that the operator adds to the templates.
func DesiredResources(cluster *rayv1.RayCluster, settings Settings) Totals {
	var totals Totals
	totals.add(HeadPod(cluster, settings, 1), 1)
	for i := range cluster.Spec.WorkerGroupSpecs {
		group := &cluster.Spec.WorkerGroupSpecs[i]
		if count := podsOf(group, GroupReplicas(group)); count > 0 {
			totals.add(WorkerPod(cluster, group, settings, PodSlot{Group: group.GroupName, Incarnation: 1}), count)
		}
	}
	return totals
}

// add counts a Pod that was just built, which it changes.
func (t *Totals) add(pod *corev1.Pod, count int64) {
	defaultRequests(pod)
	for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if sum := t.of(name); sum != nil {
			quantity = quantity.DeepCopy()
			quantity.Mul(count)
			sum.Add(quantity)
		}
	}
}

// defaultRequests fills in requests as the API server does: where a container, or the Pod as a whole, has a limit and no
// request, the limit is what it requests.
func defaultRequests(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			fillIn(&containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	whole := pod.Spec.Resources
	if whole == nil || len(whole.Limits) == 0 {
		return
	}
	ofContainers := corev1.ResourceList{}
	for name, quantity := range resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
			ofContainers[name] = quantity
		}
	}
	fillIn(&whole.Requests, ofContainers)
	fillIn(&whole.Requests, whole.Limits)
}

func fillIn(list *corev1.ResourceList, defaults corev1.ResourceList) {
	for name, quantity := range defaults {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		if _, ok := (*list)[name]; !ok {
			(*list)[name] = quantity.DeepCopy()
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
	case countsAsGPU(string(name)):
		return &t.GPU
	default:
		return nil
	}
}

// otherGPUs are the names of GPUs, and of partitions of GPUs, that Ray is not told of as such: Intel's by driver, AMD's
// by kind of partition, and NVIDIA's when they are shared in time or made with media engines.
var otherGPUs = regexp.MustCompile(`^(gpu\.intel\.com/(i915|xe)|amd\.com/[a-z]+_nps\d+|nvidia\.com/(gpu|mig-\d+g\.\d+gb(\.me(\.all)?)?)(\.shared)?)$`)

// countsAsGPU tells whether a resource of Kubernetes is a number of GPUs. Accelerators of other kinds, such as
// habana.ai/gaudi and aws.amazon.com/neuroncore, and measures such as GPU memory are not.
func countsAsGPU(name string) bool { return ray.IsGPU(name) || otherGPUs.MatchString(name) }

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
