package rayjob

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// Settings are the operator's settings that matter to RayJobs.
type Settings struct {
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// LoginShell makes the submitter's shell a login shell.
	LoginShell bool
	// DeleteJobAfterFinish deletes the RayJob itself where otherwise only its cluster would be deleted.
	DeleteJobAfterFinish bool
	// StatusCheckTimeout is how long Ray may not answer before the attempt counts as failed.
	StatusCheckTimeout time.Duration
}

const (
	// pollAgain is how soon a job is looked at again while something is awaited that no watch reports.
	pollAgain = 3 * time.Second
	// submitterGrace is how long an ended submitter and Ray's view of the job may contradict each other.
	submitterGrace = 30 * time.Second
	// stopLimit is how long a deleted RayJob waits for Ray to confirm that the job has stopped.
	stopLimit = 30 * time.Second
	// leastSilence is how long this process must have seen Ray not answer before it draws a conclusion, whatever a
	// predecessor recorded.
	leastSilence = 30 * time.Second
	// resubmitAfter is the pause after a submission that Ray could not take.
	resubmitAfter = 5 * time.Second
)

// Decision is what a plan wants done, and what it wants Ray to be asked from now on.
type Decision struct {
	action.Plan
	// Ask names the dashboard and the submission to ask about; nil means that nothing is to be asked.
	Ask *Question
}

// Question is what the poller asks Ray for a job.
type Question struct {
	BaseURL, SubmissionID string
	// Secret is the name of the Secret with the token that Ray asks for, or empty.
	Secret string
}

// Plan decides what to do for a RayJob. It is a pure function of its arguments.
func Plan(s Snapshot, settings Settings, now time.Time) Decision {
	if s.Job == nil || s.Job.Spec.ManagedBy != nil && *s.Job.Spec.ManagedBy != rayv1.ManagedByOperator {
		return Decision{}
	}
	p := &planner{s: s, settings: settings, now: now, job: s.Job.DeepCopy()}
	p.st = &p.job.Status
	switch {
	case s.Job.DeletionTimestamp != nil:
		p.deleted()
		return p.decision
	case !slices.Contains(s.Job.Finalizers, rayv1.FinalizerRayJob):
		p.do(action.Finalizers{Object: s.Job, Want: append(slices.Clone(s.Job.Finalizers), rayv1.FinalizerRayJob),
			Why: "the Ray job must be stopped before the RayJob may go"})
		return p.decision
	}
	p.step()
	p.decision.Status = p.statusWrite()
	return p.decision
}

type planner struct {
	s        Snapshot
	settings Settings
	now      time.Time
	job      *rayv1.RayJob       // a copy of s.Job that carries the next status
	st       *rayv1.RayJobStatus // that status
	decision Decision
}

func (p *planner) do(a action.Action) { p.decision.Actions = append(p.decision.Actions, a) }
func (p *planner) again(after time.Duration) {
	p.decision.LookAgain = action.Soonest(p.decision.LookAgain, after)
}
func (p *planner) tell(event *action.Event) { p.decision.Events = append(p.decision.Events, *event) }

// step moves the job by one state at most.
func (p *planner) step() {
	switch p.st.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusNew, rayv1.JobDeploymentStatusValidationFailed:
		p.begin()
	case rayv1.JobDeploymentStatusInitializing:
		p.initializing()
	case rayv1.JobDeploymentStatusWaiting:
		p.waiting()
	case rayv1.JobDeploymentStatusRunning:
		p.running()
	case rayv1.JobDeploymentStatusSuspending, rayv1.JobDeploymentStatusRetrying:
		p.tearDown()
	case rayv1.JobDeploymentStatusSuspended:
		if !p.job.Spec.Suspend {
			p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusNew
		}
	case rayv1.JobDeploymentStatusComplete, rayv1.JobDeploymentStatusFailed:
		p.ended()
	}
}

// begin records the names of the attempt before anything is made under them.
func (p *planner) begin() {
	if err := Validate(p.s.Job); err != nil {
		p.invalid(err)
		return
	}
	if p.job.Spec.SubmissionMode == rayv1.SidecarMode {
		p.notServed("spec.submissionMode SidecarMode")
		return
	}
	if p.job.Spec.DeletionStrategy != nil {
		p.tell(action.Warning("NotServed", "Validate", notServedMessage("spec.deletionStrategy")))
	}
	start := metav1.NewTime(p.now)
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusInitializing
	p.st.Reason, p.st.Message = "", ""
	p.st.StartTime, p.st.EndTime = &start, nil
	p.st.Failed, p.st.Succeeded = ptr.To(ptr.Deref(p.st.Failed, 0)), ptr.To(ptr.Deref(p.st.Succeeded, 0))
	p.st.RayClusterName = p.selected()
	if p.st.RayClusterName == "" {
		p.st.RayClusterName = childName(p.job, "cluster", p.now)
	}
	if p.job.Spec.SubmissionMode == rayv1.InteractiveMode {
		return
	}
	p.st.JobId = p.job.Spec.JobId
	if p.st.JobId == "" {
		p.st.JobId = childName(p.job, "submission", p.now)
	}
}

func (p *planner) invalid(err error) {
	if p.st.JobDeploymentStatus != rayv1.JobDeploymentStatusValidationFailed || p.st.Message != err.Error() {
		p.tell(action.Warning(invalidReason(err), "Validate", err.Error()))
	}
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusValidationFailed
	p.st.Reason, p.st.Message = rayv1.ValidationFailed, err.Error()
}

func (p *planner) notServed(what string) {
	message := notServedMessage(what)
	if p.st.Message != message {
		p.tell(action.Warning("NotServed", "Validate", message))
	}
	p.st.Message = message
}

func notServedMessage(what string) string { return "this version does not act on " + what }

// selected is the name of the existing cluster that the job is to run on, or empty.
func (p *planner) selected() string { return p.job.Spec.ClusterSelector[rayv1.LabelCluster] }

// initializing waits for the cluster and then starts the job.
func (p *planner) initializing() {
	if p.job.Spec.Suspend {
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusSuspending
		return
	}
	if p.late(p.job.Spec.ActiveDeadlineSeconds, rayv1.DeadlineExceeded, "activeDeadlineSeconds") ||
		p.late(p.job.Spec.PreRunningDeadlineSeconds, rayv1.PreRunningDeadlineExceeded, "preRunningDeadlineSeconds") {
		return
	}
	if p.s.Cluster == nil {
		// The spec may have been edited since it was checked.
		if err := Validate(p.s.Job); err != nil {
			p.invalid(err)
			return
		}
	}
	if !p.cluster() {
		return
	}
	url, err := dashboardURL(p.s.Cluster, p.s.ClusterService, p.settings.ClusterDomain)
	if err != nil {
		p.st.Message = err.Error()
		p.again(pollAgain)
		return
	}
	p.st.DashboardURL, p.st.Message = url, ""
	if p.job.Spec.SubmissionMode == rayv1.InteractiveMode {
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusWaiting
		return
	}
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRunning
}

// late fails the attempt when a deadline that counts from its start has passed, else asks to look again in time.
func (p *planner) late(seconds *int32, reason rayv1.JobFailedReason, field string) bool {
	if seconds == nil || p.st.StartTime == nil {
		return false
	}
	left := p.st.StartTime.Add(time.Duration(*seconds) * time.Second).Sub(p.now)
	if left > 0 {
		p.again(left)
		return false
	}
	p.stopRayJob("the deadline has passed")
	p.fail(reason, fmt.Sprintf("the job did not get there within spec.%s = %d", field, *seconds))
	return true
}

// waiting is the state of an interactive job whose cluster is ready: the user submits and tells the id.
func (p *planner) waiting() {
	if p.late(p.job.Spec.PreRunningDeadlineSeconds, rayv1.PreRunningDeadlineExceeded, "preRunningDeadlineSeconds") {
		return
	}
	p.copyClusterStatus()
	if p.job.Spec.JobId != "" {
		p.st.JobId = p.job.Spec.JobId
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRunning
	}
}

// fail ends the attempt. A retry is begun when the spec allows one and the reason is not one that a retry repeats.
func (p *planner) fail(reason rayv1.JobFailedReason, message string) {
	failed := ptr.Deref(p.st.Failed, 0) + 1
	p.st.Failed = &failed
	p.st.Reason, p.st.Message = reason, truncate(message)
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
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusComplete
	p.st.EndTime = ptr.To(metav1.NewTime(p.now))
}

// tearDown removes the cluster and the submitter of an attempt and starts over when both are gone.
func (p *planner) tearDown() {
	clusterGone := p.deleteCluster("the attempt is over")
	submitterGone := p.deleteSubmitter()
	if !clusterGone || !submitterGone {
		p.again(pollAgain)
		return
	}
	next := rayv1.JobDeploymentStatusNew
	if p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspending {
		next = rayv1.JobDeploymentStatusSuspended
	}
	p.job.Status = rayv1.RayJobStatus{JobDeploymentStatus: next, Failed: p.st.Failed, Succeeded: p.st.Succeeded, StartTime: p.st.StartTime}
}

// ended cleans up after the end, as far as the spec asks for it.
func (p *planner) ended() {
	if p.selected() != "" || !p.job.Spec.ShutdownAfterJobFinishes || p.st.EndTime == nil {
		return
	}
	left := p.st.EndTime.Add(time.Duration(p.job.Spec.TTLSecondsAfterFinished) * time.Second).Sub(p.now)
	if left > 0 {
		p.again(left)
		return
	}
	if p.settings.DeleteJobAfterFinish {
		p.do(action.Delete{Object: p.s.Job, Why: "the job has finished and the operator is set to delete finished RayJobs"})
		return
	}
	p.deleteCluster("the job has finished and spec.shutdownAfterJobFinishes is set")
}

// deleted has the Ray job stopped and lets the RayJob go when Ray has confirmed that, or after a bounded time.
func (p *planner) deleted() {
	rest := slices.DeleteFunc(slices.Clone(p.s.Job.Finalizers), func(f string) bool { return f == rayv1.FinalizerRayJob })
	if len(rest) == len(p.s.Job.Finalizers) {
		return
	}
	why := "the Ray job does not run"
	if p.rayJobMayRun() {
		stopped := p.s.Stopped
		done := stopped != nil && stopped.SubmissionID == p.st.JobId && stopped.Err == nil
		overdue := p.now.Sub(p.s.Job.DeletionTimestamp.Time) > stopLimit
		switch {
		case done:
			why = "Ray has stopped the job"
		case overdue:
			why = "Ray did not confirm in time that the job has stopped"
			p.tell(action.Warning("FailedToStopRayJob", "Delete", fmt.Sprintf("%s; job %s on RayCluster %s may still run", why, p.st.JobId, p.st.RayClusterName)))
		default:
			p.stopRayJob("the RayJob is deleted")
			p.again(pollAgain)
			return
		}
	}
	p.do(action.Finalizers{Object: p.s.Job, Want: rest, Why: why})
}

func (p *planner) rayJobMayRun() bool {
	return p.st.DashboardURL != "" && p.st.JobId != "" && !rayv1.IsJobTerminal(p.st.JobStatus) && p.s.Cluster != nil
}

func (p *planner) stopRayJob(why string) {
	if p.rayJobMayRun() {
		p.do(action.Stop{Job: p.s.Job, BaseURL: "http://" + p.st.DashboardURL, Secret: p.secret(), SubmissionID: p.st.JobId, Why: why})
	}
}
