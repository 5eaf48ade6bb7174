package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayJob is one Ray job together with the RayCluster that it runs on.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=all
// +kubebuilder:printcolumn:name="job status",type=string,JSONPath=".status.jobStatus"
// +kubebuilder:printcolumn:name="deployment status",type=string,JSONPath=".status.jobDeploymentStatus"
// +kubebuilder:printcolumn:name="ray cluster name",type=string,JSONPath=".status.rayClusterName"
// +kubebuilder:printcolumn:name="start time",type=string,JSONPath=".status.startTime"
// +kubebuilder:printcolumn:name="end time",type=string,JSONPath=".status.endTime"
// +kubebuilder:printcolumn:name="age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 47",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayJob must have at most 47 characters",messageExpression="'metadata.name %s has %d characters; a RayJob may have at most 47, because names of its Services and Pods are made from it'.format([self.metadata.name, size(self.metadata.name)])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayJob must consist of lower-case letters, digits and '-', start with a letter and not end with '-'",messageExpression="'metadata.name ' + self.metadata.name + ' must consist of lower-case letters, digits and -, start with a letter and not end with -, because it becomes the name of a Service'"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || has(self.spec)",optionalOldSelf=true,message="spec must be given"
// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || (self.?spec.?managedBy.orValue('none') == 'kueue.x-k8s.io/multikueue') == (oldSelf.?spec.?managedBy.orValue('none') == 'kueue.x-k8s.io/multikueue')",optionalOldSelf=true,fieldPath=".spec",message="spec.managedBy cannot hand an existing RayJob over to another controller: what was begun for it would be nobody's"
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

// JobSubmissionMode is the way in which a job gets to Ray.
//
// +kubebuilder:validation:Enum=K8sJobMode;HTTPMode;InteractiveMode;SidecarMode
type JobSubmissionMode string

const (
	// K8sJobMode submits through a Kubernetes Job that runs "ray job submit".
	K8sJobMode JobSubmissionMode = "K8sJobMode"
	// HTTPMode lets the operator submit through Ray's HTTP API.
	HTTPMode JobSubmissionMode = "HTTPMode"
	// InteractiveMode waits until the user has submitted a job and has written its id into the spec.
	InteractiveMode JobSubmissionMode = "InteractiveMode"
	// SidecarMode submits from a container in the head Pod.
	SidecarMode JobSubmissionMode = "SidecarMode"
)

// RayJobSpec is the desired state of a RayJob.
//
// +kubebuilder:validation:XValidation:rule="has(self.rayClusterSpec) || (has(self.clusterSelector) && size(self.clusterSelector) > 0)",message="give rayClusterSpec to have a cluster made for the job, or clusterSelector to name an existing one"
type RayJobSpec struct {
	// entrypoint is the command line of the job's driver.
	// +optional
	Entrypoint string `json:"entrypoint,omitempty"`
	// rayClusterSpec describes the cluster to create for the job. It is needed unless clusterSelector is set.
	// Changes are disregarded once the cluster exists.
	// +optional
	RayClusterSpec *RayClusterSpec `json:"rayClusterSpec,omitempty"`
	// clusterSelector names an existing RayCluster in the same namespace to run the job on, under the key "ray.io/cluster".
	// +optional
	ClusterSelector map[string]string `json:"clusterSelector,omitempty"`
	// submissionMode is the way in which the job gets to Ray: K8sJobMode, HTTPMode, InteractiveMode or SidecarMode.
	// +optional
	// +kubebuilder:default:=K8sJobMode
	SubmissionMode JobSubmissionMode `json:"submissionMode,omitempty"`
	// jobId is the submission id of the job. Unset makes one up; in InteractiveMode it is what the user submitted.
	// +optional
	JobId string `json:"jobId,omitempty"`
	// metadata is passed to Ray as the job's metadata.
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`
	// runtimeEnvYAML is the job's runtime environment, as a YAML mapping.
	// +optional
	RuntimeEnvYAML string `json:"runtimeEnvYAML,omitempty"`
	// entrypointNumCpus is the number of CPUs that Ray reserves for the driver.
	// +optional
	EntrypointNumCpus float32 `json:"entrypointNumCpus,omitempty"`
	// entrypointNumGpus is the number of GPUs that Ray reserves for the driver.
	// +optional
	EntrypointNumGpus float32 `json:"entrypointNumGpus,omitempty"`
	// entrypointResources are custom resources that Ray reserves for the driver: a JSON object from name to number.
	// +optional
	EntrypointResources string `json:"entrypointResources,omitempty"`
	// submitterPodTemplate is the Pod template of the submitting Job in K8sJobMode.
	// +optional
	SubmitterPodTemplate *corev1.PodTemplateSpec `json:"submitterPodTemplate,omitempty"`
	// submitterConfig tunes the submitting Job in K8sJobMode.
	// +optional
	SubmitterConfig *SubmitterConfig `json:"submitterConfig,omitempty"`
	// suspend keeps the job from running, or takes it down, while it is true. It needs shutdownAfterJobFinishes.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// backoffLimit is the number of further attempts after a failure; each gets a new RayCluster.
	// +optional
	// +kubebuilder:default:=0
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// activeDeadlineSeconds is how many seconds one attempt may take.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ActiveDeadlineSeconds *int32 `json:"activeDeadlineSeconds,omitempty"`
	// preRunningDeadlineSeconds is how many seconds one attempt may take until the job runs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	PreRunningDeadlineSeconds *int32 `json:"preRunningDeadlineSeconds,omitempty"`
	// shutdownAfterJobFinishes deletes the RayCluster after the job has ended.
	// +optional
	ShutdownAfterJobFinishes bool `json:"shutdownAfterJobFinishes,omitempty"`
	// ttlSecondsAfterFinished is how many seconds pass between the end of the job and the clean-up.
	// +optional
	// +kubebuilder:default:=0
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// deletionStrategy says in detail what is cleaned up, and when, after the job has ended.
	// +optional
	DeletionStrategy *DeletionStrategy `json:"deletionStrategy,omitempty"`
	// managedBy names the controller in charge of this object: "ray.io/kuberay-operator" (also meant when unset) or
	// "kueue.x-k8s.io/multikueue". Once set, the value cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed once it is set",messageExpression="'managedBy is ' + oldSelf + ' and cannot be changed once it is set'"
	// +kubebuilder:validation:XValidation:rule="self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",message="managedBy must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue",messageExpression="'managedBy is ' + self + ' and must be ray.io/kuberay-operator or kueue.x-k8s.io/multikueue'"
	ManagedBy *string `json:"managedBy,omitempty"`
}

// SubmitterConfig tunes the Job that submits in K8sJobMode.
type SubmitterConfig struct {
	// backoffLimit is the backoffLimit of the Job. Unset means 2.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// DeletionPolicyType says what is cleaned up after a job.
//
// +kubebuilder:validation:Enum=DeleteCluster;DeleteWorkers;DeleteSelf;DeleteNone
type DeletionPolicyType string

const (
	// DeleteCluster deletes the RayCluster.
	DeleteCluster DeletionPolicyType = "DeleteCluster"
	// DeleteWorkers suspends every worker group and keeps the head.
	DeleteWorkers DeletionPolicyType = "DeleteWorkers"
	// DeleteSelf deletes the RayJob with all that it owns.
	DeleteSelf DeletionPolicyType = "DeleteSelf"
	// DeleteNone deletes nothing.
	DeleteNone DeletionPolicyType = "DeleteNone"
)

// DeletionStrategy says what is cleaned up, and when, after a job has ended: either by deletionRules, or by both of
// the older onSuccess and onFailure.
//
// +kubebuilder:validation:XValidation:rule="!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",message="deletionRules cannot be combined with onSuccess or onFailure"
// +kubebuilder:validation:XValidation:rule="((has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules))",message="give deletionRules, or both onSuccess and onFailure"
type DeletionStrategy struct {
	// onSuccess is what happens after the job succeeded.
	// +optional
	OnSuccess *DeletionPolicy `json:"onSuccess,omitempty"`
	// onFailure is what happens after the job failed.
	// +optional
	OnFailure *DeletionPolicy `json:"onFailure,omitempty"`
	// deletionRules are the rules; each takes effect once, after its own delay.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	DeletionRules []DeletionRule `json:"deletionRules,omitempty"`
}

// DeletionPolicy is what happens after one outcome of a job.
type DeletionPolicy struct {
	// policy is what is cleaned up. It must be given.
	// +optional
	Policy *DeletionPolicyType `json:"policy,omitempty"`
}

// DeletionRule is one step of the clean-up.
type DeletionRule struct {
	// policy is what is cleaned up.
	Policy DeletionPolicyType `json:"policy"`
	// condition says after which outcome, and how long after it.
	Condition DeletionCondition `json:"condition"`
}

// DeletionCondition says when a DeletionRule takes effect. Exactly one of jobStatus and jobDeploymentStatus is given.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.jobStatus) && has(self.jobDeploymentStatus))",message="give jobStatus or jobDeploymentStatus, not both"
// +kubebuilder:validation:XValidation:rule="has(self.jobStatus) || has(self.jobDeploymentStatus)",message="give one of jobStatus and jobDeploymentStatus"
type DeletionCondition struct {
	// jobStatus is the outcome that Ray reports for the job: SUCCEEDED or FAILED.
	// +optional
	// +kubebuilder:validation:Enum=SUCCEEDED;FAILED
	JobStatus *JobStatus `json:"jobStatus,omitempty"`
	// jobDeploymentStatus is the outcome of the RayJob: Failed.
	// +optional
	// +kubebuilder:validation:Enum=Failed
	JobDeploymentStatus *JobDeploymentStatus `json:"jobDeploymentStatus,omitempty"`
	// ttlSeconds is how many seconds after the job's end the rule takes effect.
	// +optional
	// +kubebuilder:default:=0
	// +kubebuilder:validation:Minimum=0
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`
}
