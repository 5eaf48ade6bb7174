package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	// JobLost means that Ray had the job and lost it: the head that took it is gone, or does not know it any more. How
	// far the job came is unknown. Heliostat adds this reason.
	JobLost JobFailedReason = "JobLost"
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
	// attempt is the number of the present attempt, or of the last one; the first is 1. Resuming a suspended job begins a
	// new attempt. Heliostat adds this field.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// submissionMode is the way in which the present attempt gets to Ray. Edits of spec.submissionMode matter to the next one.
	// Heliostat adds this field.
	// +optional
	SubmissionMode JobSubmissionMode `json:"submissionMode,omitempty"`
	// submission is what is remembered of the way in which the present attempt got to Ray. It is recorded before anything
	// is sent. Heliostat adds this field.
	// +optional
	Submission *RayJobSubmission `json:"submission,omitempty"`
	// stopping is set while the Ray job is being stopped, which takes a bounded time. Heliostat adds this field.
	// +optional
	Stopping *RayJobStopping `json:"stopping,omitempty"`
	// postMortem tells how the last attempt failed that did not succeed. It stays through the next attempt. Heliostat adds
	// this field.
	// +optional
	PostMortem *RayJobPostMortem `json:"postMortem,omitempty"`
	// conditions of the RayJob: Submitted, Running, Succeeded, Failed, Stopped, Valid, Ready, Reconciling and Stalled.
	// Heliostat adds this field.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// RayJobSubmission is what is remembered of the way in which an attempt got to Ray. Times are by the operator's clock.
type RayJobSubmission struct {
	// headPod is the name of the head Pod that takes the job.
	// +optional
	HeadPod string `json:"headPod,omitempty"`
	// headPodUID is the UID of that Pod.
	// +optional
	HeadPodUID types.UID `json:"headPodUID,omitempty"`
	// headRestarts is how often Ray's container in that Pod had been restarted when it took the job.
	// +optional
	HeadRestarts int32 `json:"headRestarts,omitempty"`
	// sessionName is Ray's name for the life of the head that takes the job. Without a fault tolerant store, a head with
	// another session does not have the job.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// confirmedTime is when Ray first said that it has the job. From then on the attempt is never submitted again.
	// +optional
	ConfirmedTime *metav1.Time `json:"confirmedTime,omitempty"`
}

// RayJobStopping tells why a Ray job is being stopped, and since when.
type RayJobStopping struct {
	// reason is DeadlineExceeded, PreRunningDeadlineExceeded or Suspended.
	Reason string `json:"reason"`
	// since is when stopping began.
	Since metav1.Time `json:"since"`
	// message is that of the end that follows.
	// +optional
	Message string `json:"message,omitempty"`
}

// RayJobPostMortem tells how an attempt failed. Its texts are bounded.
type RayJobPostMortem struct {
	// attempt is the number of the attempt.
	Attempt int32 `json:"attempt"`
	// jobId is the submission id of the attempt.
	// +optional
	JobId string `json:"jobId,omitempty"`
	// rayClusterName is the cluster of the attempt.
	// +optional
	RayClusterName string `json:"rayClusterName,omitempty"`
	// reason is status.reason at the end of the attempt.
	Reason JobFailedReason `json:"reason"`
	// time is when the attempt ended.
	Time metav1.Time `json:"time"`
	// exitCode is that of the driver, if it ended by itself and Ray told it.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// errorType is Ray's word for the kind of failure, for example RUNTIME_ENV_SETUP_FAILURE.
	// +optional
	ErrorType string `json:"errorType,omitempty"`
	// message is what Ray or the operator said, at most 1 KiB.
	// +optional
	Message string `json:"message,omitempty"`
	// log are the last lines of the driver's log, at most 2 KiB, as far as Ray told them.
	// +optional
	Log string `json:"log,omitempty"`
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
