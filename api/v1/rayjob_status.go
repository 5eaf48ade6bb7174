package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// JobStatus is the status of a job as Ray's job API reports it.
type JobStatus string

const (
	// JobStatusNew means that Ray has not reported anything yet.
	JobStatusNew JobStatus = ""
	// JobStatusPending means that Ray has accepted the job.
	JobStatusPending JobStatus = "PENDING"
	// JobStatusRunning means that the driver runs.
	JobStatusRunning JobStatus = "RUNNING"
	// JobStatusStopped means that the job was stopped on request. It is final.
	JobStatusStopped JobStatus = "STOPPED"
	// JobStatusSucceeded means that the driver ended with exit code 0. It is final.
	JobStatusSucceeded JobStatus = "SUCCEEDED"
	// JobStatusFailed means that the driver failed. It is final.
	JobStatusFailed JobStatus = "FAILED"
)

// IsJobTerminal reports whether a job with this status has ended.
func IsJobTerminal(status JobStatus) bool {
	switch status {
	case JobStatusStopped, JobStatusSucceeded, JobStatusFailed:
		return true
	default:
		return false
	}
}

// JobDeploymentStatus is the phase of a RayJob.
type JobDeploymentStatus string

const (
	// JobDeploymentStatusNew means that nothing was done yet.
	JobDeploymentStatusNew JobDeploymentStatus = ""
	// JobDeploymentStatusInitializing means that the cluster is being created or awaited.
	JobDeploymentStatusInitializing JobDeploymentStatus = "Initializing"
	// JobDeploymentStatusWaiting means that the cluster is ready and that the user has to submit the job (InteractiveMode).
	JobDeploymentStatusWaiting JobDeploymentStatus = "Waiting"
	// JobDeploymentStatusRunning means that the job was or is being submitted.
	JobDeploymentStatusRunning JobDeploymentStatus = "Running"
	// JobDeploymentStatusComplete means that the job succeeded or was stopped. It is final.
	JobDeploymentStatusComplete JobDeploymentStatus = "Complete"
	// JobDeploymentStatusFailed means that the job failed for the reason in status.reason. It is final.
	JobDeploymentStatusFailed JobDeploymentStatus = "Failed"
	// JobDeploymentStatusValidationFailed means that the spec cannot be acted upon.
	JobDeploymentStatusValidationFailed JobDeploymentStatus = "ValidationFailed"
	// JobDeploymentStatusSuspending means that the attempt is being taken down because of spec.suspend.
	JobDeploymentStatusSuspending JobDeploymentStatus = "Suspending"
	// JobDeploymentStatusSuspended means that nothing is left of the attempt, and that none starts.
	JobDeploymentStatusSuspended JobDeploymentStatus = "Suspended"
	// JobDeploymentStatusRetrying means that a failed attempt is being taken down before the next one.
	JobDeploymentStatusRetrying JobDeploymentStatus = "Retrying"
)

// IsJobDeploymentTerminal reports whether a RayJob in this phase has ended. ValidationFailed does not count as an end:
// the job never ran.
func IsJobDeploymentTerminal(status JobDeploymentStatus) bool {
	return status == JobDeploymentStatusComplete || status == JobDeploymentStatusFailed
}

// JobFailedReason says why a RayJob failed.
type JobFailedReason string

const (
	// SubmissionFailed means that the submitter failed, and that Ray did not report the job as failed.
	SubmissionFailed JobFailedReason = "SubmissionFailed"
	// AppFailed means that the job itself failed.
	AppFailed JobFailedReason = "AppFailed"
	// DeadlineExceeded means that the attempt took longer than spec.activeDeadlineSeconds.
	DeadlineExceeded JobFailedReason = "DeadlineExceeded"
	// PreRunningDeadlineExceeded means that the job was not running after spec.preRunningDeadlineSeconds.
	PreRunningDeadlineExceeded JobFailedReason = "PreRunningDeadlineExceeded"
	// JobDeploymentStatusTransitionGracePeriodExceeded means that the phase did not follow the job's end in time.
	JobDeploymentStatusTransitionGracePeriodExceeded JobFailedReason = "JobDeploymentStatusTransitionGracePeriodExceeded"
	// JobStatusCheckTimeoutExceeded means that Ray could not be asked for the job's status for too long.
	JobStatusCheckTimeoutExceeded JobFailedReason = "JobStatusCheckTimeoutExceeded"
	// ValidationFailed means that the spec cannot be acted upon.
	ValidationFailed JobFailedReason = "ValidationFailed"
)

// RayJobStatus is what was last observed of a RayJob.
type RayJobStatus struct {
	// jobId is the submission id in use.
	// +optional
	JobId string `json:"jobId,omitempty"`
	// jobStatus is the status that Ray reports for the job.
	// +optional
	JobStatus JobStatus `json:"jobStatus,omitempty"`
	// jobDeploymentStatus is the phase of the RayJob.
	// +optional
	JobDeploymentStatus JobDeploymentStatus `json:"jobDeploymentStatus,omitempty"`
	// reason says why the RayJob failed.
	// +optional
	Reason JobFailedReason `json:"reason,omitempty"`
	// message explains the status in words of Ray or of the operator.
	// +optional
	Message string `json:"message,omitempty"`
	// rayClusterName is the name of the RayCluster in use.
	// +optional
	RayClusterName string `json:"rayClusterName,omitempty"`
	// dashboardURL is the address of that cluster's dashboard: host and port, without a scheme.
	// +optional
	DashboardURL string `json:"dashboardURL,omitempty"`
	// startTime is when the current attempt started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the RayJob became Complete or Failed.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// succeeded is the number of attempts that succeeded.
	// +optional
	// +kubebuilder:default:=0
	Succeeded *int32 `json:"succeeded,omitempty"`
	// failed is the number of attempts that failed.
	// +optional
	// +kubebuilder:default:=0
	Failed *int32 `json:"failed,omitempty"`
	// rayJobInfo holds the times that Ray reports for the job.
	// +optional
	RayJobInfo RayJobStatusInfo `json:"rayJobInfo,omitempty"`
	// rayClusterStatus is a copy of the status of the RayCluster in use.
	// +optional
	RayClusterStatus RayClusterStatus `json:"rayClusterStatus,omitempty"`
	// jobStatusCheckFailureStartTime is since when Ray cannot be asked for the job's status. It is unset while it can.
	// +optional
	JobStatusCheckFailureStartTime *metav1.Time `json:"jobStatusCheckFailureStartTime,omitempty"`
	// observedGeneration is the metadata.generation that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// RayJobStatusInfo holds the times that Ray reports for a job.
type RayJobStatusInfo struct {
	// startTime is when Ray started the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the job ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}
