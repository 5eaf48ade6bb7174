package rayjob

import (
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// running follows a job that is being submitted or runs. Ray's own word about the job decides; the submitter is a
// hint only.
func (p *planner) running() {
	switch {
	case rayv1.IsJobTerminal(p.st.JobStatus):
		p.finish()
		return
	case p.st.Stopping != nil:
		p.stopping()
		return
	case p.endHeard():
		p.known(p.answer())
		return
	case p.job.Spec.Suspend:
		p.suspend()
		return
	case p.late(p.job.Spec.ActiveDeadlineSeconds, rayv1.DeadlineExceeded, "activeDeadlineSeconds"):
		return
	case p.s.Cluster == nil && p.st.Submission == nil:
		p.startOver()
		return
	}
	if why := p.headLost(); why != "" {
		p.lostUnlessFound(why)
		return
	}
	p.copyClusterStatus()
	p.headService()
	p.ask()
	answer := p.answer()
	switch {
	case answer == nil:
	case answer.Err != nil:
		p.unanswered(answer)
	case p.unrecorded(answer):
		p.answers()
		p.record(answer)
	case answer.JobFound == poll.Missing:
		p.answers()
		p.unknownToRay(answer)
	case answer.JobFound == poll.Found:
		p.answers()
		p.known(answer)
	}
}

// endHeard tells whether Ray has said that the job has ended. That is true whatever becomes of the head, and whether or not
// Ray answers now.
func (p *planner) endHeard() bool {
	answer := p.answer()
	return answer != nil && p.st.Submission != nil && answer.JobFound == poll.Found && answer.Job.Status.Terminal() &&
		!p.otherSession(p.st.Submission) && p.ours(answer.Job)
}

// ask has Ray asked about the job from now on. The poller wakes the job when an answer is another than the one before. Where
// that was given in an earlier term it is not looked at, and the same answer in this term wakes nobody.
func (p *planner) ask() {
	if p.answer() == nil {
		p.again(pollAgain)
	}
	p.decision.Ask = &Question{BaseURL: p.address(), SubmissionID: p.st.JobId, Secret: p.secret()}
}

// answer is what Ray said last about the present attempt, nil when it was not asked yet. An answer about an earlier
// attempt, or about a deleted job of this name, is none.
func (p *planner) answer() *poll.Observation {
	answer := p.s.Answer
	if answer == nil || answer.Target.OwnerUID != p.job.UID || answer.Target.SubmissionID != p.st.JobId || answer.Target.BaseURL != p.address() {
		return nil
	}
	if answer.Err == nil && answer.Answered.IsZero() {
		return nil
	}
	return answer
}

// address is that of the dashboard of the attempt's cluster.
func (p *planner) address() string { return addressOf(p.st) }

// secret is the name of the Secret with the token that the job's cluster asks for, or empty.
func (p *planner) secret() string {
	if p.s.Cluster == nil {
		return ""
	}
	return raycluster.AuthOf(p.s.Cluster).Secret
}

// answers ends the time during which Ray cannot be asked.
func (p *planner) answers() {
	if sent := about(p.s.Sent, p.st); sent != nil && sent.Err != nil {
		return // Ray answers questions, but takes no submission: that has the same limit
	}
	p.st.JobStatusCheckFailureStartTime = nil
}

// unanswered keeps the time since when Ray does not answer, and gives up when that is too long. One question that is not
// answered is no silence, however long ago the one before it was asked.
func (p *planner) unanswered(answer *poll.Observation) {
	if answer.Failures < leastFailures {
		p.noteFailing(answer.FailingSince)
		p.again(pollAgain)
		return
	}
	p.failing(answer.FailingSince, answer.Asked, answer.Err)
}

func (p *planner) noteFailing(since time.Time) {
	if p.st.JobStatusCheckFailureStartTime == nil {
		p.st.JobStatusCheckFailureStartTime = &metav1.Time{Time: since}
	}
}

// failing notes since when Ray cannot be asked, or takes no submission, and ends the attempt when that is too long. Since and
// last are the first and the last time that this process tried.
func (p *planner) failing(since, last time.Time, err error) {
	p.noteFailing(since)
	failing := p.now.Sub(p.st.JobStatusCheckFailureStartTime.Time)
	if failing >= p.settings.StatusCheckTimeout && last.Sub(since) >= min(leastSilence, p.settings.StatusCheckTimeout/2) {
		p.fail(rayv1.JobStatusCheckTimeoutExceeded, fmt.Sprintf("Ray has not answered for %s: %v", failing.Round(time.Second), err))
		return
	}
	p.again(max(p.settings.StatusCheckTimeout-failing, pollAgain))
}

// unknownToRay handles the answer that there is no such job.
func (p *planner) unknownToRay(answer *poll.Observation) {
	if p.st.Submission.ConfirmedTime != nil {
		p.lost("Ray does not know it any more; its head was probably replaced, and with it the record of the job was lost")
		return
	}
	switch p.job.Spec.SubmissionMode {
	case rayv1.HTTPMode:
		p.submitOverHTTP(answer)
	case rayv1.InteractiveMode:
		p.record(answer) // The user may submit later, to whatever head there is then, and may have mistyped the id.
		if id := p.job.Spec.JobId; id != "" {
			p.st.JobId = id
		}
	case rayv1.SidecarMode:
		p.letIn()
		p.judgeSubmitter(answer)
	default:
		if p.submitter() {
			p.judgeSubmitter(answer)
		}
	}
}

// submitOverHTTP sends the job to Ray. Ray takes one job for an id, and the id was recorded before.
func (p *planner) submitOverHTTP(answer *poll.Observation) {
	request, err := submitRequest(p.job)
	if err != nil {
		p.fail(rayv1.SubmissionFailed, err.Error())
		return
	}
	if sent := about(p.s.Sent, p.st); sent != nil {
		wait := sent.At.Add(resubmitAfter).Sub(p.now)
		switch {
		case errors.Is(sent.Err, dashboard.ErrRefused):
			p.fail(rayv1.SubmissionFailed, "Ray refused the job: "+sent.Err.Error())
			return
		case sent.Err == nil && answer.Answered.After(sent.At):
			p.lost("Ray took it and does not know it")
			return
		case sent.Err == nil:
			p.again(max(wait, pollAgain))
			return
		}
		if p.failing(p.s.firstSeen(seenSubmitFails, p.now), sent.At, sent.Err); p.st.JobDeploymentStatus != rayv1.JobDeploymentStatusRunning {
			return
		}
		if wait > 0 {
			p.again(wait)
			return
		}
	}
	p.do(action.Submit{Job: p.s.Job, BaseURL: p.address(), Secret: p.secret(), Session: p.st.Submission.SessionName, Request: request,
		Why: "Ray does not know the job yet"})
	p.again(pollAgain)
}

// judgeSubmitter ends the attempt when the submitter has ended and Ray, asked after that, does not know the job.
func (p *planner) judgeSubmitter(answer *poll.Observation) {
	end := p.submitterEnd()
	if !end.ended {
		return
	}
	if wait := p.s.firstSeen(seenSubmitterEnd, p.now).Add(submitterGrace).Sub(answer.Answered); wait > 0 {
		p.again(max(wait, pollAgain))
		return
	}
	if end.failed {
		p.fail(rayv1.SubmissionFailed, "the submitter failed and Ray does not know the job: "+end.message)
		return
	}
	p.fail(rayv1.AppFailed, "the submitter has finished, but Ray does not know the job")
}

// known takes over what Ray says about the job, and ends the attempt when Ray says that the job has ended.
func (p *planner) known(answer *poll.Observation) {
	job := answer.Job
	if !p.ours(job) {
		p.fail(rayv1.SubmissionFailed, fmt.Sprintf(
			"RayCluster %s has a job %q already that is not this RayJob's; choose another spec.jobId", p.st.RayClusterName, p.st.JobId))
		return
	}
	if p.st.Submission.ConfirmedTime == nil {
		if p.job.Spec.SubmissionMode == rayv1.InteractiveMode {
			p.record(answer)
		}
		p.st.Submission.ConfirmedTime = &metav1.Time{Time: p.now.Truncate(time.Second)}
	}
	p.st.JobStatusCheckFailureStartTime = nil
	p.take(job)
	if p.st.JobStatus == rayv1.JobStatusFailed {
		p.postMortem(rayv1.AppFailed, p.st.Message) // while Ray can be asked for the details
	}
	if rayv1.IsJobTerminal(p.st.JobStatus) {
		p.finish()
	}
}

// take copies what Ray says about the job into the status. Ray goes on being asked until that is stored: the poller forgets
// what nobody asks for, and the write may fail. Ray's message on a failed driver ends with the last lines of its log.
func (p *planner) take(job *dashboard.JobDetails) {
	p.ask()
	p.st.JobStatus = rayv1.JobStatus(job.Status)
	p.st.Message = excerpt.End(job.Message, maxMessage)
	p.st.Reason = ""
	p.st.RayJobInfo = rayv1.RayJobStatusInfo{StartTime: timeOrNil(job.StartTime), EndTime: timeOrNil(job.EndTime)}
}

// finish ends the attempt by the last word of Ray, which never changes.
func (p *planner) finish() {
	p.copyClusterStatus()
	wait := p.submitterReads()
	if wait > 0 {
		p.again(wait)
		return
	}
	if p.st.JobStatus == rayv1.JobStatusFailed {
		p.fail(rayv1.AppFailed, p.st.Message)
		return
	}
	if p.submitterUnfinished() && p.headLost() == "" {
		p.st.Reason = rayv1.JobDeploymentStatusTransitionGracePeriodExceeded
	}
	p.complete()
}

// submitterReads is how much longer the submitter, which prints the job's log, may go on after the end of the job.
func (p *planner) submitterReads() time.Duration {
	if !p.submitterUnfinished() || p.headLost() != "" {
		return 0
	}
	return p.s.firstSeen(seenJobEnd, p.now).Add(p.settings.TransitionGrace).Sub(p.now)
}

// end tells whether and how a submitter ended.
type end struct {
	ended, failed bool
	message       string
}

// submitterEnd is the end of the attempt's submitter, whichever the mode has.
func (p *planner) submitterEnd() end { return submitterEnd(p.s) }

func submitterEnd(s Snapshot) end {
	if s.mode() == rayv1.SidecarMode {
		status := s.sidecar()
		if status == nil || status.State.Terminated == nil {
			return end{}
		}
		t := status.State.Terminated
		return end{ended: true, failed: t.ExitCode != 0, message: strings.TrimSpace(fmt.Sprintf("exit code %d %s", t.ExitCode, t.Message))}
	}
	if !s.hasSubmitter() {
		return end{}
	}
	for _, c := range s.Submitter.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) {
			return end{ended: true, failed: c.Type == batchv1.JobFailed, message: strings.TrimSpace(c.Reason + " " + c.Message)}
		}
	}
	return end{}
}

// submitterUnfinished tells whether there is a submitter of ours that has not ended.
func (p *planner) submitterUnfinished() bool {
	started := p.s.hasSubmitter() || p.sidecarStarted()
	return started && !p.submitterEnd().ended
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	mt := metav1.NewTime(t.Truncate(time.Second))
	return &mt
}
