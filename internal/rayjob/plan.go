package rayjob

import (
	"slices"
	"time"

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
	// TransitionGrace is how long a submitter may go on after Ray has said that the job has ended.
	TransitionGrace time.Duration
	// DeletionPolicy allows spec.deletionStrategy.
	DeletionPolicy bool
}

const (
	// pollAgain is how soon a job is looked at again while something is awaited that no watch reports.
	pollAgain = 3 * time.Second
	// submitterGrace is how long after the end of a submitter an answer of Ray must have been asked for that is to say
	// that the submitter has submitted nothing.
	submitterGrace = 5 * time.Second
	// stopLimit is how long Ray has to confirm that a job has stopped.
	stopLimit = 30 * time.Second
	// collisionPause is the time between two looks at what others have put in the place of ours.
	collisionPause = 10 * time.Second
	// takeDownLimit is how long the objects of an attempt may take to go before that counts as trouble.
	takeDownLimit = time.Minute
	// leastSilence is how long this process must have seen Ray not answer before it draws a conclusion, whatever a
	// predecessor recorded.
	leastSilence = 30 * time.Second
	// leastFailures is how many questions in a row must have gone unanswered before that counts as silence.
	leastFailures = 3
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
	p := newPlanner(s, settings, now)
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
	p.warnOfUncoveredEnd()
	p.conditions()
	p.decision.Status = p.statusWrite()
	return p.decision
}

func newPlanner(s Snapshot, settings Settings, now time.Time) *planner {
	p := &planner{s: s, settings: settings, now: now, job: s.Job.DeepCopy(), invalid: Validate(s.Job, settings)}
	p.st = &p.job.Status
	p.decision.Known = action.Told(s.Holds)
	p.chooseSpec()
	return p
}

type planner struct {
	s        Snapshot
	settings Settings
	now      time.Time
	// job is a copy of s.Job with the spec that the plan acts upon, and with the next status.
	job *rayv1.RayJob
	st  *rayv1.RayJobStatus // that status
	// invalid says what is wrong with the present spec, nil if nothing is.
	invalid  error
	obstacle obstacle
	// notes are sentences on what the spec asks for and does not get, and on what may surprise; see condition Valid.
	notes    []string
	decision Decision
}

// obstacle is what somebody must change before the job can go on.
type obstacle struct{ reason, message string }

func (p *planner) do(a action.Action) { p.decision.Actions = append(p.decision.Actions, a) }
func (p *planner) again(after time.Duration) {
	p.decision.LookAgain = action.Soonest(p.decision.LookAgain, after)
}
func (p *planner) tell(event *action.Event) { p.decision.Events = append(p.decision.Events, *event) }

// chooseSpec makes the plan of a job that has begun act upon the last valid spec when the present one is not. When none is
// known, the present one is acted upon, but nothing running is taken down because of it.
func (p *planner) chooseSpec() {
	switch {
	case p.invalid == nil:
	case p.s.LastValid != nil:
		p.job.Spec = *p.s.LastValid.DeepCopy()
	default:
		p.job.Spec.Suspend = false
	}
	p.job.Spec.SubmissionMode = p.s.mode()
	if p.st.SubmissionMode == "" && p.s.Cluster != nil && p.ownsCluster() && p.s.Cluster.Labels[rayv1.LabelJobSubmissionMode] != "" {
		p.job.Spec.SubmissionMode = rayv1.JobSubmissionMode(p.s.Cluster.Labels[rayv1.LabelJobSubmissionMode])
	}
}

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
	case rayv1.JobDeploymentStatusSuspending:
		p.suspending()
	case rayv1.JobDeploymentStatusRetrying:
		p.retrying()
	case rayv1.JobDeploymentStatusSuspended:
		if !p.job.Spec.Suspend {
			p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusNew
		}
	case rayv1.JobDeploymentStatusComplete, rayv1.JobDeploymentStatusFailed:
		p.ended()
	}
}

// ended cleans up after the end. The unfinished submitter of a failed job follows one that is lost, or would submit one that
// is given up; that of a complete one may still print its log.
func (p *planner) ended() {
	p.cleanUp()
	if p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusFailed {
		p.deleteUnfinishedSubmitter("the job has failed")
	}
}

// selected is the name of the existing cluster that the job is to run on, or empty.
func (p *planner) selected() string { return p.job.Spec.ClusterSelector[rayv1.LabelCluster] }
