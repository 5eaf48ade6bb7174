package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayJob is one Ray job together with the RayCluster that it runs on.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=all
// +kubebuilder:deprecatedversion:warning="ray.io/v1alpha1 RayJob is deprecated and drops fields of ray.io/v1; use ray.io/v1 RayJob. v1alpha1 will be removed in release 1.9"
type RayJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to run, on which cluster, and what happens afterwards.
	// +optional
	Spec RayJobSpec `json:"spec,omitempty"`
	// status says what was last observed of the job.
	// +optional
	Status RayJobStatus `json:"status,omitempty"`
}

// RayJobList is a list of RayJobs.
//
// +kubebuilder:object:root=true
type RayJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the RayJobs of the list.
	Items []RayJob `json:"items"`
}

// RayJobSpec is the desired state of a RayJob.
type RayJobSpec struct {
	// entrypoint is the command line of the job's driver.
	Entrypoint string `json:"entrypoint"`
	// rayClusterSpec describes the cluster to create for the job.
	// +optional
	RayClusterSpec *RayClusterSpec `json:"rayClusterSpec,omitempty"`
	// clusterSelector names an existing RayCluster to run the job on.
	// +optional
	ClusterSelector map[string]string `json:"clusterSelector,omitempty"`
	// jobId is the submission id of the job.
	// +optional
	JobId string `json:"jobId,omitempty"`
	// metadata is passed to Ray as the job's metadata.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// runtimeEnvYAML is the job's runtime environment.
	// +optional
	RuntimeEnvYAML string `json:"runtimeEnvYAML,omitempty"`
	// entrypointNumCpus is the number of CPUs that Ray reserves for the driver.
	// +optional
	EntrypointNumCpus float32 `json:"entrypointNumCpus,omitempty"`
	// entrypointNumGpus is the number of GPUs that Ray reserves for the driver.
	// +optional
	EntrypointNumGpus float32 `json:"entrypointNumGpus,omitempty"`
	// entrypointResources are custom resources that Ray reserves for the driver.
	// +optional
	EntrypointResources string `json:"entrypointResources,omitempty"`
	// submitterPodTemplate is the Pod template of the submitting Job.
	// +optional
	SubmitterPodTemplate *corev1.PodTemplateSpec `json:"submitterPodTemplate,omitempty"`
	// suspend keeps the job from running, or takes it down, while it is true.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// shutdownAfterJobFinishes deletes the RayCluster after the job has ended.
	// +optional
	ShutdownAfterJobFinishes bool `json:"shutdownAfterJobFinishes,omitempty"`
	// ttlSecondsAfterFinished is how many seconds pass between the end of the job and the clean-up.
	// +optional
	// +kubebuilder:default:=0
	TTLSecondsAfterFinished int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// JobStatus is the status of a job as Ray's job API reports it.
type JobStatus string

// JobDeploymentStatus is the phase of a RayJob.
type JobDeploymentStatus string

// RayJobStatus is what was last observed of a RayJob.
type RayJobStatus struct {
	// jobId is the submission id in use.
	// +optional
	JobId string `json:"jobId,omitempty"`
	// rayClusterName is the name of the RayCluster in use.
	// +optional
	RayClusterName string `json:"rayClusterName,omitempty"`
	// dashboardURL is the address of that cluster's dashboard.
	// +optional
	DashboardURL string `json:"dashboardURL,omitempty"`
	// jobStatus is the status that Ray reports for the job.
	// +optional
	JobStatus JobStatus `json:"jobStatus,omitempty"`
	// jobDeploymentStatus is the phase of the RayJob.
	// +optional
	JobDeploymentStatus JobDeploymentStatus `json:"jobDeploymentStatus,omitempty"`
	// message explains the status.
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is when the job started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the job ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// rayClusterStatus is a copy of the status of the RayCluster in use.
	// +optional
	RayClusterStatus RayClusterStatus `json:"rayClusterStatus,omitempty"`
	// observedGeneration is the metadata.generation that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
