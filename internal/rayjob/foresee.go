package rayjob

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
)

// Foresee is the Plan for a Snapshot of Observe, without what an operator might decide in another way because it has heard of
// Ray, or remembers a valid spec or a refused write.
func Foresee(s Snapshot, settings Settings, now time.Time) action.Outlook {
	if s.Job == nil {
		return action.Outlook{}
	}
	if by := s.Job.Spec.ManagedBy; by != nil && *by != rayv1.ManagedByOperator {
		return action.Outlook{Waits: []string{fmt.Sprintf("spec.managedBy leaves the job to %s", *by)}}
	}
	p := newPlanner(s, settings, now)
	if why := p.actsUponMemory(); why != "" {
		return action.Outlook{Unknown: []string{why}}
	}
	decision := Plan(s, settings, now)
	outlook := action.Outlook{Plan: decision.Plan}
	if decision.Ask != nil {
		// The answer brings the next pass.
		outlook.Asks, outlook.LookAgain = []string{p.question(decision.Ask)}, 0
	}
	if lost := p.seemsLost(); lost != "" {
		return action.Outlook{Asks: outlook.Asks, Unknown: []string{fmt.Sprintf("%s: the attempt is over with %s, unless the session on record still "+
			"answers, or the job has got to another head, which only the operator has heard", lost, rayv1.JobLost)}}
	}
	if after := p.next(decision); after != nil {
		outlook.Waits = p.awaited(after)
	}
	return p.sure(outlook)
}

// actsUponMemory says that the plan follows the last valid spec, if that is not the present one; else nothing.
func (p *planner) actsUponMemory() string {
	if p.invalid == nil || p.st.Attempt == 0 || p.s.Job.DeletionTimestamp != nil {
		return ""
	}
	return fmt.Sprintf("the spec is invalid (%s), and the job goes on as its last valid spec asked, which only the operator knows", p.invalid)
}

// seemsLost says why the job in Ray seems to be lost, where an answer of Ray may outweigh that.
func (p *planner) seemsLost() string {
	awaited := p.s.Job.DeletionTimestamp != nil
	switch p.st.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusInitializing, rayv1.JobDeploymentStatusRunning, rayv1.JobDeploymentStatusSuspending:
		awaited = true
	}
	if !awaited || p.st.Submission == nil || p.s.Cluster == nil || p.sidecarLost() || rayv1.IsJobTerminal(p.st.JobStatus) {
		return ""
	}
	return p.headLost()
}

// question says what Ray is asked, and what for.
func (p *planner) question(ask *Question) string {
	job := "job " + ask.SubmissionID
	if ask.SubmissionID == "" {
		job = "its session"
	}
	return fmt.Sprintf("Ray at %s about %s, %s", ask.BaseURL, job, p.purpose())
}

// purpose is what becomes of Ray's answer.
func (p *planner) purpose() string {
	switch {
	case p.s.Job.DeletionTimestamp != nil:
		return "and to stop it; the RayJob goes when it has stopped, or after " + stopLimit.String()
	case p.st.Stopping != nil || p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspending:
		return "and to stop it: " + p.whyStop()
	case p.st.Submission != nil && p.st.Submission.ConfirmedTime != nil:
		return "and follows what it says"
	case p.st.Submission == nil:
		return "and records the session that is to take the job"
	case p.job.Spec.SubmissionMode == rayv1.HTTPMode:
		return "and sends the job if Ray does not know it"
	case p.job.Spec.SubmissionMode == rayv1.K8sJobMode && !p.s.hasSubmitter():
		return "and makes the submitter Job if Ray does not know it"
	default:
		return "until it is submitted"
	}
}

// next is the job as a plan leaves it, nil where the plan is about finalizers alone.
func (p *planner) next(decision Decision) *rayv1.RayJob {
	if decision.Status != nil {
		if job, ok := decision.Status.Object.(*rayv1.RayJob); ok {
			return job
		}
	}
	if p.s.Job.DeletionTimestamp != nil {
		return nil
	}
	return p.s.Job
}

// awaited says what the job waits for besides Ray.
func (p *planner) awaited(job *rayv1.RayJob) []string {
	switch job.Status.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusInitializing:
		return []string{fmt.Sprintf("RayCluster %s to be ready", job.Status.RayClusterName)}
	case rayv1.JobDeploymentStatusWaiting:
		return []string{"the user to submit the job and to write its submission id into spec.jobId"}
	case rayv1.JobDeploymentStatusSuspended:
		return []string{"spec.suspend to be false"}
	case rayv1.JobDeploymentStatusValidationFailed:
		return []string{"the spec to be corrected"}
	case rayv1.JobDeploymentStatusSuspending, rayv1.JobDeploymentStatusRetrying:
		if p.ownsCluster() || p.s.hasSubmitter() || len(p.s.Pods)+len(p.s.SubmitterPods) > 0 {
			return []string{"the objects of the attempt to be gone: " + p.leftovers()}
		}
	case rayv1.JobDeploymentStatusRunning:
		if rayv1.IsJobTerminal(job.Status.JobStatus) {
			return []string{fmt.Sprintf("the submitter, which prints the log, for at most %s", p.settings.TransitionGrace)}
		}
	}
	return nil
}

// sure leaves out of the status what a refused write, or what takes long, has brought into it: only the operator knows of those.
func (p *planner) sure(outlook action.Outlook) action.Outlook {
	if outlook.Status == nil {
		return outlook
	}
	job, ok := outlook.Status.Object.(*rayv1.RayJob)
	if !ok {
		return outlook
	}
	before := p.s.Job.Status
	why := condition.NoLongerStalled(job.Status.Conditions, before.Conditions)
	slow := before.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspending || before.JobDeploymentStatus == rayv1.JobDeploymentStatusRetrying
	if why == "" || job.Status.JobDeploymentStatus != before.JobDeploymentStatus || len(outlook.Actions) == 0 && !slow {
		return outlook
	}
	condition.Restore(&job.Status.Conditions, before.Conditions, rayv1.ConditionReady, rayv1.ConditionReconciling, rayv1.ConditionStalled, rayv1.ConditionTroubled)
	if equality.Semantic.DeepEqual(job.Status, before) {
		outlook.Status = nil
	}
	outlook.Unknown = append(outlook.Unknown, action.StillStalled(why))
	return outlook
}
