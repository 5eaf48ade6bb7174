package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayService is a set of Ray Serve applications together with the RayCluster that serves them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=all
// +kubebuilder:deprecatedversion:warning="ray.io/v1alpha1 RayService is deprecated and drops fields of ray.io/v1; use ray.io/v1 RayService. v1alpha1 will be removed in release 1.9"
type RayService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which applications to serve, and on what cluster.
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
	// +optional
	RayClusterConfig RayClusterSpec `json:"rayClusterConfig,omitempty"`
	// serveConfigV2 are the Serve applications.
	// +optional
	ServeConfigV2 string `json:"serveConfigV2,omitempty"`
	// serveService is a template of the Service that leads to Serve.
	// +optional
	ServeService *corev1.Service `json:"serveService,omitempty"`
	// serviceUnhealthySecondThreshold is accepted for old manifests and ignored.
	// +optional
	ServiceUnhealthySecondThreshold *int32 `json:"serviceUnhealthySecondThreshold,omitempty"`
	// deploymentUnhealthySecondThreshold is accepted for old manifests and ignored.
	// +optional
	DeploymentUnhealthySecondThreshold *int32 `json:"deploymentUnhealthySecondThreshold,omitempty"`
}

// ServiceStatus is the coarse state of a RayService.
type ServiceStatus string

// RayServiceStatuses is what was last observed of a RayService.
type RayServiceStatuses struct {
	// serviceStatus is Running while the service takes requests.
	// +optional
	ServiceStatus ServiceStatus `json:"serviceStatus,omitempty"`
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
}

// RayServiceStatus is about one of the clusters of a RayService.
type RayServiceStatus struct {
	// rayClusterName is the name of the RayCluster.
	// +optional
	RayClusterName string `json:"rayClusterName,omitempty"`
	// rayClusterStatus is a copy of the RayCluster's status.
	// +optional
	RayClusterStatus RayClusterStatus `json:"rayClusterStatus,omitempty"`
	// applicationStatuses are the Serve applications by name.
	// +optional
	ApplicationStatuses map[string]AppStatus `json:"applicationStatuses,omitempty"`
}

// AppStatus is what Ray Serve reports about one application.
type AppStatus struct {
	// status is the application's status in Serve's words.
	// +optional
	Status string `json:"status,omitempty"`
	// message is Serve's message.
	// +optional
	Message string `json:"message,omitempty"`
	// healthLastUpdateTime is when status last changed between healthy and not.
	// +optional
	HealthLastUpdateTime *metav1.Time `json:"healthLastUpdateTime,omitempty"`
	// serveDeploymentStatuses are the application's deployments by name.
	// +optional
	ServeDeploymentStatuses map[string]ServeDeploymentStatus `json:"serveDeploymentStatuses,omitempty"`
}

// ServeDeploymentStatus is what Ray Serve reports about one deployment of an application.
type ServeDeploymentStatus struct {
	// status is the deployment's status in Serve's words.
	// +optional
	Status string `json:"status,omitempty"`
	// message is Serve's message.
	// +optional
	Message string `json:"message,omitempty"`
	// healthLastUpdateTime is when status last changed between healthy and not.
	// +optional
	HealthLastUpdateTime *metav1.Time `json:"healthLastUpdateTime,omitempty"`
}
