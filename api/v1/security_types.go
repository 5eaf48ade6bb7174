package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// AuthMode switches Ray's authentication on or off.
//
// +kubebuilder:validation:Enum=disabled;token
type AuthMode string

const (
	// AuthModeDisabled means that Ray asks for no token.
	AuthModeDisabled AuthMode = "disabled"
	// AuthModeToken means that Ray asks every client for a token. It needs Ray 2.52.0 or newer.
	AuthModeToken AuthMode = "token"
)

// AuthOptions controls Ray's token authentication.
type AuthOptions struct {
	// mode switches authentication on or off. Only "token" switches it on; unset leaves it off.
	// +optional
	Mode AuthMode `json:"mode,omitempty"`
	// secretName is the name of an existing Secret whose key "auth_token" holds the token. Unset makes one.
	// +optional
	SecretName *string `json:"secretName,omitempty"`
	// enableK8sTokenAuth lets Ray check tokens at the Kubernetes API server. It needs Ray 2.55.0 or newer.
	// +optional
	EnableK8sTokenAuth *bool `json:"enableK8sTokenAuth,omitempty"`
}

// TLSOptions controls mutual TLS between Ray's processes.
type TLSOptions struct {
	// enabled switches mutual TLS on. Unset means false. It needs cert-manager in the Kubernetes cluster.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// NetworkPolicyMode says which directions of traffic are denied unless a rule allows them.
//
// +kubebuilder:validation:Enum=DenyAll;DenyAllIngress;DenyAllEgress
type NetworkPolicyMode string

const (
	// NetworkPolicyDenyAll denies both directions.
	NetworkPolicyDenyAll NetworkPolicyMode = "DenyAll"
	// NetworkPolicyDenyAllIngress denies traffic to the Pods.
	NetworkPolicyDenyAllIngress NetworkPolicyMode = "DenyAllIngress"
	// NetworkPolicyDenyAllEgress denies traffic from the Pods.
	NetworkPolicyDenyAllEgress NetworkPolicyMode = "DenyAllEgress"
)

// NetworkPolicyConfig isolates the Pods of a RayCluster on the network. Traffic within the cluster stays allowed.
type NetworkPolicyConfig struct {
	// mode says which directions are denied.
	// +optional
	// +kubebuilder:default:=DenyAll
	Mode *NetworkPolicyMode `json:"mode,omitempty"`
	// head holds additional rules for the head Pod.
	// +optional
	Head *NetworkPolicyRules `json:"head,omitempty"`
	// worker holds additional rules for the worker Pods of all groups that workerGroups does not name.
	// +optional
	Worker *NetworkPolicyRules `json:"worker,omitempty"`
	// workerGroups holds additional rules for single groups; they take the place of those in worker.
	// +optional
	// +listType=map
	// +listMapKey=groupName
	WorkerGroups []WorkerGroupNetworkPolicyRules `json:"workerGroups,omitempty"`
}

// NetworkPolicyRules are rules that allow traffic in addition to that within the RayCluster.
type NetworkPolicyRules struct {
	// ingressRules allow traffic to the Pods.
	// +optional
	IngressRules []networkingv1.NetworkPolicyIngressRule `json:"ingressRules,omitempty"`
	// egressRules allow traffic from the Pods.
	// +optional
	EgressRules []networkingv1.NetworkPolicyEgressRule `json:"egressRules,omitempty"`
}

// WorkerGroupNetworkPolicyRules are the rules of one worker group.
type WorkerGroupNetworkPolicyRules struct {
	// groupName is the name of a group in workerGroupSpecs.
	GroupName string `json:"groupName"`

	NetworkPolicyRules `json:",inline"`
}

// HistoryServerOptions connects a RayCluster with Ray's history server.
type HistoryServerOptions struct {
	// collectorOptions describes the container that collects logs and events in every Pod.
	// +optional
	CollectorOptions *CollectorOptions `json:"collectorOptions,omitempty"`
}

// CollectorOptions describes the container that collects logs and events for Ray's history server.
type CollectorOptions struct {
	// image is the image of the container. It must be given.
	// +optional
	Image *string `json:"image,omitempty"`
	// imagePullPolicy is the pull policy of the image. Unset means IfNotPresent.
	// +optional
	ImagePullPolicy *corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// resources are the container's requests and limits. Unset means requests of 50m CPU and 64Mi memory, limits of
	// 200m CPU and 256Mi memory.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// env is the container's environment. It says where to store what was collected.
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
}
