package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayCluster is one Ray cluster: a head Pod and any number of groups of worker Pods.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=all
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
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 53",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayCluster must have at most 53 characters",messageExpression="'metadata.name %s has %d characters; a RayCluster may have at most 53, because names of its Services and Pods are made from it'.format([self.metadata.name, size(self.metadata.name)])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayCluster must consist of lower-case letters, digits and '-', start with a letter and not end with '-'",messageExpression="'metadata.name ' + self.metadata.name + ' must consist of lower-case letters, digits and -, start with a letter and not end with -, because it becomes the name of a Service'"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || has(self.spec)",optionalOldSelf=true,message="spec must be given"
// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || (self.?spec.?managedBy.orValue('none') == 'kueue.x-k8s.io/multikueue') == (oldSelf.?spec.?managedBy.orValue('none') == 'kueue.x-k8s.io/multikueue')",optionalOldSelf=true,fieldPath=".spec",message="spec.managedBy cannot hand an existing RayCluster over to another controller: its Pods would be nobody's"
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
// It is also the cluster template inside a RayJob and a RayService.
type RayClusterSpec struct {
	// headGroupSpec describes the head Pod, of which there is exactly one.
	HeadGroupSpec HeadGroupSpec `json:"headGroupSpec"`
	// workerGroupSpecs describes the groups of worker Pods.
	// +optional
	// +kubebuilder:validation:MaxItems=2048
	// +kubebuilder:validation:XValidation:rule="size(self) > 200 || [self.map(g, g.groupName)].all(names, names.all(n, names.indexOf(n) == names.lastIndexOf(n)))",message="every groupName must be different from those of the other groups",messageExpression="'every groupName must be different from those of the other groups, and is not: %s'.format([[self.map(g, g.groupName)].map(names, names.filter(n, names.indexOf(n) != names.lastIndexOf(n)))[0]])"
	WorkerGroupSpecs []WorkerGroupSpec `json:"workerGroupSpecs,omitempty"`
	// rayVersion is the version of Ray inside the images, for example "2.52.0". It is used only to decide which
	// features of Ray can be relied on.
	// +optional
	RayVersion string `json:"rayVersion,omitempty"`
	// enableInTreeAutoscaling adds the Ray autoscaler to the head Pod. Unset means false.
	// +optional
	EnableInTreeAutoscaling *bool `json:"enableInTreeAutoscaling,omitempty"`
	// autoscalerOptions tunes the autoscaler's container. It is read when enableInTreeAutoscaling is true.
	// +optional
	AutoscalerOptions *AutoscalerOptions `json:"autoscalerOptions,omitempty"`
	// headServiceAnnotations are put on the head Service.
	// +optional
	HeadServiceAnnotations map[string]string `json:"headServiceAnnotations,omitempty"`
	// gcsFaultToleranceOptions, when present, makes the state of the head (Ray's GCS) survive the loss of its Pod.
	// +optional
	GcsFaultToleranceOptions *GcsFaultToleranceOptions `json:"gcsFaultToleranceOptions,omitempty"`
	// authOptions controls token authentication between Ray's processes and their clients.
	// +optional
	AuthOptions *AuthOptions `json:"authOptions,omitempty"`
	// tlsOptions controls mutual TLS between Ray's processes.
	// +optional
	TLSOptions *TLSOptions `json:"tlsOptions,omitempty"`
	// networkPolicy isolates the cluster's Pods on the network.
	// +optional
	NetworkPolicy *NetworkPolicyConfig `json:"networkPolicy,omitempty"`
	// historyServerOptions adds a collector of logs and events for Ray's history server.
	// +optional
	HistoryServerOptions *HistoryServerOptions `json:"historyServerOptions,omitempty"`
	// upgradeStrategy says what happens to running Pods when this spec changes.
	// +optional
	UpgradeStrategy *RayClusterUpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// suspend deletes all Pods of the cluster while it is true. A suspended cluster resumes when it is set to false.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// managedBy names the controller in charge of this object: "ray.io/kuberay-operator" (also meant when unset) or
	// "kueue.x-k8s.io/multikueue". Once set, the value cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed once it is set",messageExpression="'managedBy is ' + oldSelf + ' and cannot be changed once it is set'"
	// +kubebuilder:validation:XValidation:rule="self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",message="managedBy must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue",messageExpression="'managedBy is ' + self + ' and must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue'"
	ManagedBy *string `json:"managedBy,omitempty"`
}

// HeadGroupSpec describes the head Pod of a RayCluster, and what leads to it.
type HeadGroupSpec struct {
	// template is the Pod template of the head. Its first container runs Ray.
	// +kubebuilder:validation:XValidation:rule="has(self.spec) && size(self.spec.containers) > 0",message="spec.containers of the template must hold at least one container: the first one runs Ray"
	Template corev1.PodTemplateSpec `json:"template"`
	// rayStartParams are the flags of "ray start" on the head, without their leading dashes.
	// +optional
	RayStartParams map[string]string `json:"rayStartParams"`
	// headService is a template of the head Service: its name, labels, annotations and further ports are kept.
	// +optional
	HeadService *corev1.Service `json:"headService,omitempty"`
	// serviceType is the type of the head Service. Unset makes a headless Service of type ClusterIP.
	// +optional
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`
	// enableIngress creates an Ingress (on OpenShift: a Route) to the dashboard. Unset means false.
	// +optional
	EnableIngress *bool `json:"enableIngress,omitempty"`
	// ingressOptions tunes the Ingress. It is read when enableIngress is true.
	// +optional
	IngressOptions *IngressOptions `json:"ingressOptions,omitempty"`
	// resources are the logical resources that Ray believes the head to have, by name. They do not change what the
	// containers request from Kubernetes.
	// +optional
	Resources map[string]string `json:"resources,omitempty"`
	// labels are the head's Ray node labels. They are set on its Pod, too.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// IngressPathType is the way in which the path of an Ingress is compared with a request's path.
//
// +kubebuilder:validation:Enum=Exact;Prefix;ImplementationSpecific
type IngressPathType string

// Ways of comparing paths, with the meaning that Kubernetes gives them.
const (
	// IngressPathTypeExact compares the whole path.
	IngressPathTypeExact IngressPathType = "Exact"
	// IngressPathTypePrefix compares path elements from the start.
	IngressPathTypePrefix IngressPathType = "Prefix"
	// IngressPathTypeImplementationSpecific leaves the comparison to the ingress controller.
	IngressPathTypeImplementationSpecific IngressPathType = "ImplementationSpecific"
)

// IngressOptions tunes the Ingress that leads to the dashboard.
type IngressOptions struct {
	// host is the host name of the rule. Unset makes a rule for all hosts.
	// +optional
	Host *string `json:"host,omitempty"`
	// path is the path of the rule. Unset means "/".
	// +optional
	Path *string `json:"path,omitempty"`
	// pathType says how path is compared. Unset means Prefix.
	// +optional
	PathType *IngressPathType `json:"pathType,omitempty"`
	// tls is copied to the Ingress.
	// +optional
	TLS []networkingv1.IngressTLS `json:"tls,omitempty"`
}

// WorkerGroupSpec describes a group of equal workers.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",message="minReplicas must not be greater than maxReplicas",messageExpression="'minReplicas is %d and must not be greater than maxReplicas, which is %d'.format([self.minReplicas, self.maxReplicas])"
type WorkerGroupSpec struct {
	// groupName identifies the group within its cluster. "headgroup" is the name of the head's group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self != 'headgroup'",message="groupName must not be headgroup, which is the name of the head's own group"
	GroupName string `json:"groupName"`
	// replicas is the desired number of replicas, kept within minReplicas and maxReplicas. Each replica consists of
	// numOfHosts Pods. Ray's autoscaler writes this field.
	// +optional
	// +kubebuilder:default:=0
	Replicas *int32 `json:"replicas,omitempty"`
	// minReplicas is the least number of replicas.
	// +kubebuilder:default:=0
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas"`
	// maxReplicas is the greatest number of replicas.
	// +kubebuilder:default:=2147483647
	// +kubebuilder:validation:Minimum=0
	MaxReplicas *int32 `json:"maxReplicas"`
	// numOfHosts is the number of Pods that make up one replica.
	// +optional
	// +kubebuilder:default:=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	NumOfHosts int32 `json:"numOfHosts,omitempty"`
	// template is the Pod template of the group. Its first container runs Ray.
	// +kubebuilder:validation:XValidation:rule="has(self.spec) && size(self.spec.containers) > 0",message="spec.containers of the template must hold at least one container: the first one runs Ray"
	Template corev1.PodTemplateSpec `json:"template"`
	// rayStartParams are the flags of "ray start" on the group's workers, without their leading dashes.
	// +optional
	RayStartParams map[string]string `json:"rayStartParams"`
	// resources are the logical resources that Ray believes each worker to have, by name. They do not change what
	// the containers request from Kubernetes.
	// +optional
	Resources map[string]string `json:"resources,omitempty"`
	// labels are the Ray node labels of the group's workers. They are set on the Pods, too.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// scaleStrategy names workers that have to go. Ray's autoscaler writes this field.
	// +optional
	ScaleStrategy ScaleStrategy `json:"scaleStrategy,omitempty"`
	// suspend empties the group while it is true. A RayJob whose clean-up policy is DeleteWorkers sets it.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// idleTimeoutSeconds is how many seconds a worker may be idle before Ray's autoscaler (version v2) removes it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`
	// priority makes Ray's autoscaler (version v2, Ray 2.56.0 or newer) prefer groups with a higher value when scaling up.
	// +optional
	// +kubebuilder:default:=0
	Priority *int32 `json:"priority,omitempty"`
}

// ScaleStrategy says which workers have to go when a group shrinks.
type ScaleStrategy struct {
	// workersToDelete are names of worker Pods to delete. Names of Pods that no longer exist are ignored.
	// +optional
	WorkersToDelete []string `json:"workersToDelete,omitempty"`
}

// RayClusterUpgradeType says what happens to running Pods when the spec of a RayCluster changes.
//
// +kubebuilder:validation:Enum=Recreate;None
type RayClusterUpgradeType string

const (
	// RayClusterRecreate deletes all Pods when the spec has changed, so that they are made anew.
	RayClusterRecreate RayClusterUpgradeType = "Recreate"
	// RayClusterUpgradeNone leaves running Pods as they are.
	RayClusterUpgradeNone RayClusterUpgradeType = "None"
)

// RayClusterUpgradeStrategy says what happens to running Pods when the spec of a RayCluster changes.
type RayClusterUpgradeStrategy struct {
	// type is the kind of upgrade. Unset means None.
	// +optional
	Type *RayClusterUpgradeType `json:"type,omitempty"`
}
