package rayjob

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// begin records number and names of the attempt before anything is made under them.
func (p *planner) begin() {
	if p.invalid != nil && (p.st.Attempt == 0 || p.s.LastValid == nil) {
		p.refuse()
		return
	}
	start := metav1.NewTime(p.now)
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusInitializing
	p.st.Attempt++
	p.st.SubmissionMode = p.job.Spec.SubmissionMode
	p.st.JobStatus, p.st.Reason, p.st.Message, p.st.DashboardURL = "", "", "", ""
	p.st.Submission, p.st.Stopping, p.st.JobStatusCheckFailureStartTime = nil, nil, nil
	p.st.StartTime, p.st.EndTime = &start, nil
	p.st.Failed, p.st.Succeeded = ptr.To(ptr.Deref(p.st.Failed, 0)), ptr.To(ptr.Deref(p.st.Succeeded, 0))
	p.st.RayClusterName = p.selected()
	if p.st.RayClusterName == "" {
		p.st.RayClusterName = childName(p.job, "cluster", "")
	}
	p.st.JobId = p.submissionID()
}

// submissionID is the id under which the attempt is submitted, empty when the user chooses it later.
func (p *planner) submissionID() string {
	switch {
	case p.job.Spec.SubmissionMode == rayv1.InteractiveMode:
		return ""
	case p.job.Spec.JobId == "":
		return childName(p.job, "submission", "")
	case p.st.Attempt > 1 && p.keepsRecords():
		// Ray has the record of the first attempt, and takes an id once.
		return p.job.Spec.JobId + "-" + strconv.Itoa(int(p.st.Attempt))
	default:
		return p.job.Spec.JobId
	}
}

// keepsRecords tells whether the next attempt meets the job records of the one before.
func (p *planner) keepsRecords() bool {
	return p.selected() != "" || p.job.Spec.RayClusterSpec.GcsFaultToleranceOptions != nil
}

// refuse keeps a job that cannot be acted upon from beginning. A corrected spec leads out of this.
func (p *planner) refuse() {
	p.st.JobDeploymentStatus, p.st.SubmissionMode = rayv1.JobDeploymentStatusValidationFailed, ""
	p.st.Reason, p.st.Message = rayv1.ValidationFailed, excerpt.Beginning(p.invalid.Error(), maxMessage)
}

// initializing waits for the cluster and then lets the job run.
func (p *planner) initializing() {
	switch {
	case p.st.Stopping != nil:
		p.stopping()
		return
	case p.endHeard():
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRunning
		p.known(p.answer())
		return
	case p.job.Spec.Suspend:
		p.suspend()
		return
	case p.late(p.job.Spec.ActiveDeadlineSeconds, rayv1.DeadlineExceeded, "activeDeadlineSeconds"),
		p.late(p.job.Spec.PreRunningDeadlineSeconds, rayv1.PreRunningDeadlineExceeded, "preRunningDeadlineSeconds"):
		return
	case p.headLost() != "":
		p.lost(p.headLost())
		return
	case p.s.Cluster == nil && p.invalid != nil && p.s.LastValid == nil:
		// Edited before anything was made.
		p.refuse()
		return
	}
	ready := p.cluster()
	if p.s.Cluster == nil || !ready && !p.sidecarStarted() {
		return
	}
	address, err := raycluster.DashboardAddress(p.s.ClusterService, p.settings.ClusterDomain)
	if err != nil {
		p.st.Message = fmt.Sprintf("the job cannot be submitted to RayCluster %s: %s", p.s.Cluster.Name, err)
		if p.s.ClusterService != nil {
			p.obstacle = obstacle{rayv1.ReasonNoDashboardPort, p.st.Message}
		}
		p.again(pollAgain)
		return
	}
	p.st.DashboardURL = address
	if !ready && !p.sidecarTells() {
		return
	}
	p.copyClusterStatus()
	p.st.Message = ""
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRunning
	if p.job.Spec.SubmissionMode == rayv1.InteractiveMode {
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusWaiting
	}
}

// sidecarStarted tells whether the container that submits in SidecarMode runs, or has run: it does not wait for workers.
func (p *planner) sidecarStarted() bool {
	status := p.s.sidecar()
	return status != nil && (status.State.Running != nil || status.State.Terminated != nil)
}

// sidecarTells tells whether the job of a sidecar has got to Ray, or will never get there. The cluster needs not be ready
// for either, and may never become so.
func (p *planner) sidecarTells() bool {
	p.ask()
	answer := p.answer()
	switch {
	case p.s.sidecar().State.Terminated != nil:
		return true
	case answer == nil || answer.Err != nil:
		return false
	case p.unrecorded(answer):
		p.record(answer)
		return false
	case answer.JobFound == poll.Found:
		return true
	default:
		p.letIn()
		return false
	}
}

// late begins the end of the attempt when a deadline that counts from its start has passed, else asks to look again in
// time.
func (p *planner) late(seconds *int32, reason rayv1.JobFailedReason, field string) bool {
	if seconds == nil || p.st.StartTime == nil {
		return false
	}
	left := p.st.StartTime.Add(time.Duration(*seconds) * time.Second).Sub(p.now)
	if left > 0 {
		p.again(left)
		return false
	}
	message := fmt.Sprintf("the job did not get there within spec.%s = %d", field, *seconds)
	if trouble := p.clusterTrouble(); trouble.message != "" {
		message += "; " + trouble.message
	}
	if !p.rayJobMayRun() {
		p.fail(reason, message)
		return true
	}
	p.st.Stopping = &rayv1.RayJobStopping{Reason: string(reason), Since: metav1.NewTime(p.now),
		Message: excerpt.Beginning(message, maxMessage)}
	return true
}

// waiting is the state of an interactive job whose cluster is ready: the user submits and tells the id.
func (p *planner) waiting() {
	switch {
	case p.job.Spec.Suspend:
		p.suspend()
		return
	case p.late(p.job.Spec.ActiveDeadlineSeconds, rayv1.DeadlineExceeded, "activeDeadlineSeconds"),
		p.late(p.job.Spec.PreRunningDeadlineSeconds, rayv1.PreRunningDeadlineExceeded, "preRunningDeadlineSeconds"):
		return
	case p.s.Cluster == nil:
		p.startOver()
		return
	}
	p.copyClusterStatus()
	if p.job.Spec.JobId != "" {
		p.st.JobId = p.job.Spec.JobId
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRunning
	}
}

// startOver has the cluster made again that was lost before anything was sent to it.
func (p *planner) startOver() {
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusInitializing
	p.st.DashboardURL, p.st.JobStatusCheckFailureStartTime = "", nil
	p.st.Message = fmt.Sprintf("RayCluster %s was lost before the job was submitted", p.st.RayClusterName)
}

// fail ends the attempt. A retry is begun when the spec allows one and the reason is not one that a retry repeats.
func (p *planner) fail(reason rayv1.JobFailedReason, message string) {
	failed := ptr.Deref(p.st.Failed, 0) + 1
	p.st.Failed = &failed
	p.st.Reason, p.st.Message = reason, excerpt.Beginning(message, maxMessage)
	p.st.Stopping = nil
	p.postMortem(reason, message)
	if reason == rayv1.JobLost {
		p.tell(action.Warning(string(reason), "Validate", p.st.Message))
	}
	final := reason == rayv1.DeadlineExceeded || reason == rayv1.JobStatusCheckTimeoutExceeded
	if !final && failed <= ptr.Deref(p.job.Spec.BackoffLimit, 0) {
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRetrying
		return
	}
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusFailed
	p.st.EndTime = ptr.To(metav1.NewTime(p.now))
}

func (p *planner) complete() {
	if p.st.JobStatus == rayv1.JobStatusSucceeded {
		p.st.Succeeded = ptr.To(ptr.Deref(p.st.Succeeded, 0) + 1)
	}
	p.st.Stopping = nil
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusComplete
	p.st.EndTime = ptr.To(metav1.NewTime(p.now))
}
