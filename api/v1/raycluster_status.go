package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterState is the coarse state of a RayCluster. It is sticky: a cluster that was ready once stays ready in this
// field until it is suspended. Conditions say what is true now.
type ClusterState string

const (
	// ClusterStateNew means that not all desired Pods have been up yet.
	ClusterStateNew ClusterState = ""
	// ClusterStateReady means that all desired Pods were running and ready at the same time.
	ClusterStateReady ClusterState = "ready"
	// ClusterStateSuspended means that the cluster has no Pods because it is suspended.
	ClusterStateSuspended ClusterState = "suspended"
	// ClusterStateFailed is known to clients, and never written.
	ClusterStateFailed ClusterState = "failed"
)

// RayClusterStatus is what was last observed of a RayCluster.
type RayClusterStatus struct {
	// state is the coarse state of the cluster.
	// +optional
	State ClusterState `json:"state,omitempty"`
	// reason is kept for clients; it is only ever cleared.
	// +optional
	Reason string `json:"reason,omitempty"`
	// conditions say what is true of the cluster, and why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the metadata.generation that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// lastUpdateTime is the time of the last write of this status.
	// +optional
	// +nullable
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// stateTransitionTimes holds the time at which each value of state was last entered.
	// +optional
	StateTransitionTimes map[ClusterState]*metav1.Time `json:"stateTransitionTimes,omitempty"`
	// head says where the head is.
	// +optional
	Head HeadInfo `json:"head,omitempty"`
	// endpoints are the ports of the head Service: port name to number.
	// +optional
	Endpoints map[string]string `json:"endpoints,omitempty"`
	// desiredWorkerReplicas is the number of worker Pods that the spec asks for.
	// +optional
	DesiredWorkerReplicas int32 `json:"desiredWorkerReplicas,omitempty"`
	// minWorkerReplicas is the least number of worker Pods that the spec allows.
	// +optional
	MinWorkerReplicas int32 `json:"minWorkerReplicas,omitempty"`
	// maxWorkerReplicas is the greatest number of worker Pods that the spec allows; 2147483647 stands for that or more.
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
	// desiredGPU is the number of GPUs, of whatever make, that head and workers ask for together.
	// +optional
	DesiredGPU resource.Quantity `json:"desiredGPU,omitempty"`
	// desiredTPU is the number of TPU chips that head and workers ask for together.
	// +optional
	DesiredTPU resource.Quantity `json:"desiredTPU,omitempty"`
	// incarnations holds, for each group by name ("headgroup" for the head), the highest incarnation number that was
	// ever given to one of its Pods. A number is recorded here before a Pod carries it, so that no name of a Pod is
	// used twice, even when the Pod is gone and the operator was replaced. Heliostat adds this field.
	// +optional
	Incarnations map[string]int64 `json:"incarnations,omitempty"`
	// recoveries tell of the last losses of heads and workers, and of what became of the actors, newest first, at most 10.
	// Heliostat adds this field.
	// +optional
	// +listType=atomic
	Recoveries []RayClusterRecovery `json:"recoveries,omitempty"`
	// lastCensus is what the operator has seen to run, for the next one to compare with. Heliostat adds this field.
	// +optional
	LastCensus *RayClusterCensus `json:"lastCensus,omitempty"`
	// redisStorages are the places in Redis in which heads of the cluster kept their state, the latest last, at most 5. They
	// are emptied when the cluster is deleted. Heliostat adds this field.
	// +optional
	// +listType=atomic
	RedisStorages []RedisStorage `json:"redisStorages,omitempty"`
}

// HeadInfo says where the head of a RayCluster is.
type HeadInfo struct {
	// podName is the name of the head Pod.
	// +optional
	PodName string `json:"podName,omitempty"`
	// podIP is the address of the head Pod.
	// +optional
	PodIP string `json:"podIP,omitempty"`
	// serviceName is the name of the head Service.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// serviceIP is the cluster address of the head Service; for a headless Service, the address of the head Pod.
	// +optional
	ServiceIP string `json:"serviceIP,omitempty"`
}
