package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayService is a set of Ray Serve applications together with the RayCluster that serves them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=all
// +kubebuilder:printcolumn:name="service status",type=string,JSONPath=".status.serviceStatus"
// +kubebuilder:printcolumn:name="num serve endpoints",type=string,JSONPath=".status.numServeEndpoints"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 47",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayService must have at most 47 characters",messageExpression="'metadata.name %s has %d characters; a RayService may have at most 47, because names of its Services and Pods are made from it'.format([self.metadata.name, size(self.metadata.name)])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayService must consist of lower-case letters, digits and '-', start with a letter and not end with '-'",messageExpression="'metadata.name ' + self.metadata.name + ' must consist of lower-case letters, digits and -, start with a letter and not end with -, because it becomes the name of a Service'"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || has(self.spec)",optionalOldSelf=true,message="spec must be given"
type RayService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which applications to serve, on what cluster, and how to upgrade.
	// +optional
	Spec RayServiceSpec `json:"spec,omitempty"`
	// status says what was last observed of the service.
	// +optional
	Status RayServiceStatuses `json:"status,omitempty"`
}

// RayServiceList is a list of RayServices.
//
// +kubebuilder:object:root=true
type RayServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the RayServices of the list.
	Items []RayService `json:"items"`
}

// RayServiceSpec is the desired state of a RayService.
type RayServiceSpec struct {
	// rayClusterConfig describes the cluster that serves.
	RayClusterConfig RayClusterSpec `json:"rayClusterConfig"`
	// serveConfigV2 are the Serve applications, as the YAML mapping that Ray Serve's REST API takes.
	// +optional
	ServeConfigV2 string `json:"serveConfigV2,omitempty"`
	// serveService is a template of the Service that leads to Serve: its name, labels, annotations and ports are kept.
	// +optional
	ServeService *corev1.Service `json:"serveService,omitempty"`
	// excludeHeadPodFromServeSvc keeps the head Pod out of the Service that leads to Serve.
	// +optional
	ExcludeHeadPodFromServeSvc bool `json:"excludeHeadPodFromServeSvc,omitempty"`
	// upgradeStrategy says how a changed cluster takes over.
	// +optional
	UpgradeStrategy *RayServiceUpgradeStrategy `json:"upgradeStrategy,omitempty"`
	// rayClusterDeletionDelaySeconds is how many seconds a replaced cluster is kept. Unset means 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RayClusterDeletionDelaySeconds *int32 `json:"rayClusterDeletionDelaySeconds,omitempty"`
	// suspend deletes all that the RayService owns while it is true.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// managedBy names the controller in charge of this object: "ray.io/kuberay-operator" (also meant when unset) or
	// "kueue.x-k8s.io/multikueue". Once set, the value cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed once it is set",messageExpression="'managedBy is ' + oldSelf + ' and cannot be changed once it is set'"
	// +kubebuilder:validation:XValidation:rule="self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",message="managedBy must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue",messageExpression="'managedBy is ' + self + ' and must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue'"
	ManagedBy *string `json:"managedBy,omitempty"`
	// serviceUnhealthySecondThreshold is accepted for old manifests and ignored.
	// +optional
	ServiceUnhealthySecondThreshold *int32 `json:"serviceUnhealthySecondThreshold,omitempty"`
	// deploymentUnhealthySecondThreshold is accepted for old manifests and ignored.
	// +optional
	DeploymentUnhealthySecondThreshold *int32 `json:"deploymentUnhealthySecondThreshold,omitempty"`
}

// RayServiceUpgradeType says how a changed cluster takes over. The API server accepts any text.
type RayServiceUpgradeType string

const (
	// RayServiceNewCluster prepares a second cluster and switches all traffic to it at once.
	RayServiceNewCluster RayServiceUpgradeType = "NewCluster"
	// RayServiceNewClusterWithIncrementalUpgrade prepares a second cluster and moves traffic to it step by step.
	RayServiceNewClusterWithIncrementalUpgrade RayServiceUpgradeType = "NewClusterWithIncrementalUpgrade"
	// RayServiceUpgradeNone prepares no second cluster.
	RayServiceUpgradeNone RayServiceUpgradeType = "None"
)

// RayServiceUpgradeStrategy says how a changed cluster takes over.
//
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?type.orValue('none') != 'NewClusterWithIncrementalUpgrade' || !has(self.clusterUpgradeOptions) || (self.clusterUpgradeOptions.?maxSurgePercent.orValue(100) >= 1 && self.clusterUpgradeOptions.?maxSurgePercent.orValue(100) <= 100)",optionalOldSelf=true,fieldPath=".clusterUpgradeOptions.maxSurgePercent",message="maxSurgePercent must be from 1 to 100: without room for the new cluster no upgrade ends",messageExpression="'maxSurgePercent is %d and must be from 1 to 100: without room for the new cluster no upgrade ends'.format([self.clusterUpgradeOptions.?maxSurgePercent.orValue(100)])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?type.orValue('none') != 'NewClusterWithIncrementalUpgrade' || !has(self.clusterUpgradeOptions) || (self.clusterUpgradeOptions.stepSizePercent >= 1 && self.clusterUpgradeOptions.stepSizePercent <= self.clusterUpgradeOptions.?maxSurgePercent.orValue(100))",optionalOldSelf=true,fieldPath=".clusterUpgradeOptions.stepSizePercent",message="stepSizePercent must be from 1 to maxSurgePercent",messageExpression="'stepSizePercent is %d and must be from 1 to maxSurgePercent, which is %d'.format([self.clusterUpgradeOptions.stepSizePercent, self.clusterUpgradeOptions.?maxSurgePercent.orValue(100)])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?type.orValue('none') != 'NewClusterWithIncrementalUpgrade' || !has(self.clusterUpgradeOptions) || self.clusterUpgradeOptions.intervalSeconds >= 1",optionalOldSelf=true,fieldPath=".clusterUpgradeOptions.intervalSeconds",message="intervalSeconds must be 1 or more",messageExpression="'intervalSeconds is %d and must be 1 or more'.format([self.clusterUpgradeOptions.intervalSeconds])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?type.orValue('none') != 'NewClusterWithIncrementalUpgrade' || !has(self.clusterUpgradeOptions) || size(self.clusterUpgradeOptions.gatewayClassName) > 0",optionalOldSelf=true,fieldPath=".clusterUpgradeOptions.gatewayClassName",message="gatewayClassName must name a GatewayClass",messageExpression="'gatewayClassName is empty and must name a GatewayClass'"
type RayServiceUpgradeStrategy struct {
	// type is the kind of upgrade: NewCluster, NewClusterWithIncrementalUpgrade or None. Unset means NewCluster unless
	// the operator was told otherwise.
	// +optional
	Type *RayServiceUpgradeType `json:"type,omitempty"`
	// clusterUpgradeOptions tunes NewClusterWithIncrementalUpgrade, which needs them.
	// +optional
	ClusterUpgradeOptions *ClusterUpgradeOptions `json:"clusterUpgradeOptions,omitempty"`
}

// ClusterUpgradeOptions tunes the step by step take-over by a new cluster.
type ClusterUpgradeOptions struct {
	// maxSurgePercent is the percentage of Serve capacity that the new cluster may have beyond what is needed, 1 to 100.
	// +optional
	// +kubebuilder:default:=100
	MaxSurgePercent *int32 `json:"maxSurgePercent,omitempty"`
	// stepSizePercent is the percentage of traffic that moves with each step, 1 to maxSurgePercent.
	StepSizePercent *int32 `json:"stepSizePercent"`
	// intervalSeconds is the number of seconds between two steps, 1 or more.
	IntervalSeconds *int32 `json:"intervalSeconds"`
	// gatewayClassName is the name of the GatewayClass of the Gateway that is made.
	GatewayClassName string `json:"gatewayClassName"`
}

// ServiceStatus is the coarse state of a RayService.
type ServiceStatus string

const (
	// ServiceStatusNotRunning means that the condition Ready is not True.
	ServiceStatusNotRunning ServiceStatus = ""
	// ServiceStatusRunning means that the condition Ready is True.
	ServiceStatusRunning ServiceStatus = "Running"
)

// RayServiceStatuses is what was last observed of a RayService.
type RayServiceStatuses struct {
	// serviceStatus is Running when the condition Ready is True, else empty.
	// +optional
	ServiceStatus ServiceStatus `json:"serviceStatus,omitempty"`
	// conditions say what is true of the service, and why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// numServeEndpoints is the number of Pods that take requests behind the Service that leads to Serve.
	// +optional
	NumServeEndpoints int32 `json:"numServeEndpoints,omitempty"`
	// activeServiceStatus is about the cluster that serves.
	// +optional
	ActiveServiceStatus RayServiceStatus `json:"activeServiceStatus,omitempty"`
	// pendingServiceStatus is about the cluster that is being prepared to take over.
	// +optional
	PendingServiceStatus RayServiceStatus `json:"pendingServiceStatus,omitempty"`
	// lastUpdateTime is the time of the last write of this status.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
	// observedGeneration is the metadata.generation that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// clusterIncarnations counts the RayClusters that were ever chosen for this RayService. It is raised in the write that
	// chooses the name of a cluster, before the cluster exists, so that no name is used twice. Heliostat adds this field.
	// +optional
	ClusterIncarnations int32 `json:"clusterIncarnations,omitempty"`
	// cutOvers are the last times that traffic moved from one cluster to another, newest first, at most 10. Heliostat adds
	// this field.
	// +optional
	// +listType=atomic
	CutOvers []RayServiceCutOver `json:"cutOvers,omitempty"`
	// abandonedUpgrade tells of the last upgrade that was given up. It stays until another goal is asked for. Heliostat
	// adds this field.
	// +optional
	AbandonedUpgrade *RayServiceAbandonedUpgrade `json:"abandonedUpgrade,omitempty"`
}

// RayServiceCutOver tells of one time that traffic moved from one cluster to another.
type RayServiceCutOver struct {
	// time is when the traffic moved; with a step by step take-over, when the last of it did.
	Time metav1.Time `json:"time"`
	// from is the name of the RayCluster that served before; empty when there was none.
	// +optional
	From string `json:"from,omitempty"`
	// to is the name of the RayCluster that serves since then.
	To string `json:"to"`
	// goal is the goal of that cluster: the hash of what shapes it.
	// +optional
	Goal string `json:"goal,omitempty"`
	// durationSeconds is the number of seconds from the creation of the new RayCluster until the traffic moved.
	// +optional
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
	// reason says why the traffic moved: FirstStart, Upgrade or Recovery.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// RayServiceAbandonedUpgrade tells of an upgrade that was given up. It is not tried again for the same goal.
type RayServiceAbandonedUpgrade struct {
	// goal is the goal that was not reached: the hash of what shapes the cluster.
	Goal string `json:"goal"`
	// generation is the metadata.generation of the RayService whose upgrade it was.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// rayClusterName is the name of the RayCluster that was being prepared.
	// +optional
	RayClusterName string `json:"rayClusterName,omitempty"`
	// reason says why the upgrade was given up, for example UpgradeTimeout.
	Reason string `json:"reason"`
	// message says what was missing at that time.
	// +optional
	Message string `json:"message,omitempty"`
	// time is when the upgrade was given up.
	Time metav1.Time `json:"time"`
}

// RayServiceStatus is about one of the clusters of a RayService.
type RayServiceStatus struct {
	// rayClusterName is the name of the RayCluster.
	// +optional
	RayClusterName string `json:"rayClusterName,omitempty"`
	// rayClusterStatus is a copy of the RayCluster's status.
	// +optional
	RayClusterStatus RayClusterStatus `json:"rayClusterStatus,omitempty"`
	// applicationStatuses are the Serve applications by name; an application without a name is called "default".
	// +optional
	ApplicationStatuses map[string]AppStatus `json:"applicationStatuses,omitempty"`
	// targetCapacity is Serve's target_capacity in percent during a step by step take-over.
	// +optional
	TargetCapacity *int32 `json:"targetCapacity,omitempty"`
	// trafficRoutedPercent is the share of traffic that this cluster gets during a step by step take-over.
	// +optional
	TrafficRoutedPercent *int32 `json:"trafficRoutedPercent,omitempty"`
	// lastTrafficMigratedTime is when that share last changed.
	// +optional
	LastTrafficMigratedTime *metav1.Time `json:"lastTrafficMigratedTime,omitempty"`
	// goal is the hash of what shapes this cluster. Two clusters of one goal can stand in for each other. Heliostat adds
	// this field.
	// +optional
	Goal string `json:"goal,omitempty"`
	// readyServeEndpoints is the number of Pods of this cluster that are ready to take requests, whether or not traffic is
	// sent to them. Heliostat adds this field.
	// +optional
	ReadyServeEndpoints int32 `json:"readyServeEndpoints,omitempty"`
}

// AppStatus is what Ray Serve reports about one application.
type AppStatus struct {
	// status is the application's status in Serve's words, for example RUNNING.
	// +optional
	Status string `json:"status,omitempty"`
	// message is Serve's message.
	// +optional
	Message string `json:"message,omitempty"`
	// serveDeploymentStatuses are the application's deployments by name.
	// +optional
	ServeDeploymentStatuses map[string]ServeDeploymentStatus `json:"serveDeploymentStatuses,omitempty"`
}

// ServeDeploymentStatus is what Ray Serve reports about one deployment of an application.
type ServeDeploymentStatus struct {
	// status is the deployment's status in Serve's words, for example HEALTHY.
	// +optional
	Status string `json:"status,omitempty"`
	// message is Serve's message.
	// +optional
	Message string `json:"message,omitempty"`
}

// Statuses of a Serve application.
const (
	// AppStatusNotStarted means that Serve has not begun with the application.
	AppStatusNotStarted = "NOT_STARTED"
	// AppStatusDeploying means that Serve is bringing the application up.
	AppStatusDeploying = "DEPLOYING"
	// AppStatusRunning means that the application takes requests.
	AppStatusRunning = "RUNNING"
	// AppStatusDeployFailed means that Serve could not bring the application up.
	AppStatusDeployFailed = "DEPLOY_FAILED"
	// AppStatusDeleting means that Serve is taking the application down.
	AppStatusDeleting = "DELETING"
	// AppStatusUnhealthy means that a deployment of the application is not healthy.
	AppStatusUnhealthy = "UNHEALTHY"
)

// Statuses of a Serve deployment.
const (
	// DeploymentStatusUpdating means that Serve is changing the deployment's replicas.
	DeploymentStatusUpdating = "UPDATING"
	// DeploymentStatusHealthy means that all replicas are as wanted.
	DeploymentStatusHealthy = "HEALTHY"
	// DeploymentStatusUnhealthy means that replicas fail.
	DeploymentStatusUnhealthy = "UNHEALTHY"
)
