package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionFenced is the type of the condition that tells whether the API server refuses writes of Pods that are not the
// holder.
const ConditionFenced = "Fenced"

// Holder names the one operator Pod of an installation that may write. Its name is the namespace of the operator's
// Lease. The operator writes it when it has won the Lease; an admission policy of the chart compares it with the Pod
// that the API server finds in the token of each request. docs/failover.md tells the whole of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=heliostat
// +kubebuilder:printcolumn:name="Term",type=integer,JSONPath=`.spec.term`
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.spec.podName`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.spec.acquireTime`
// +kubebuilder:printcolumn:name="Fenced",type=string,JSONPath=`.status.conditions[?(@.type=="Fenced")].status`
type Holder struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says who may write. It changes with every take-over and never goes back.
	//
	// +required
	Spec HolderSpec `json:"spec"`
	// Status is what the present holder has found out. Only the holder can write it, and only for its own term: that
	// such a write is accepted is how a new leader knows that the fence has moved.
	//
	// +optional
	Status HolderStatus `json:"status,omitempty"`
}

// HolderSpec says who may write.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf || self.term > oldSelf.term",message="a new holder needs a higher term"
type HolderSpec struct {
	// Term counts the take-overs of this installation. It only grows.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	Term int64 `json:"term"`
	// PodUID is the UID of the Pod that may write.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	PodUID string `json:"podUID"`
	// PodName is its name, for people.
	//
	// +required
	PodName string `json:"podName"`
	// LeaseUID is the UID of the Lease that the Pod has won. A Lease that was deleted and made anew has another.
	//
	// +required
	LeaseUID string `json:"leaseUID"`
	// AcquireTime is when the Pod took over.
	//
	// +required
	AcquireTime metav1.MicroTime `json:"acquireTime"`
}

// HolderStatus is what the present holder has found out.
type HolderStatus struct {
	// Term is that of the holder who wrote this status.
	//
	// +optional
	Term int64 `json:"term,omitempty"`
	// Conditions has one of type Fenced: whether writes of other Pods are refused, and if not, why not.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HolderList is a list of Holders.
//
// +kubebuilder:object:root=true
type HolderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Holder `json:"items"`
}
