package rayjob

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// running follows a job that is being submitted or runs. Ray's own word about the job decides; the submitter is a
// hint only.
func (p *planner) running() {
	if rayv1.IsJobTerminal(p.st.JobStatus) {
		p.finish()
		return
	}
	if p.job.Spec.Suspend {
		p.stopRayJob("spec.suspend is set")
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusSuspending
		return
	}
	if p.late(p.job.Spec.ActiveDeadlineSeconds, rayv1.DeadlineExceeded, "activeDeadlineSeconds") {
		return
	}
	if p.s.Cluster == nil {
		p.fail(rayv1.AppFailed, fmt.Sprintf("RayCluster %s, on which the job ran, is gone", p.st.RayClusterName))
		return
	}
	p.copyClusterStatus()
	p.headService()
	p.decision.Ask = &Question{BaseURL: "http://" + p.st.DashboardURL, SubmissionID: p.st.JobId, Secret: p.secret()}
	answer := p.s.Answer
	if answer != nil && (answer.Target.OwnerUID != p.job.UID || answer.Target.SubmissionID != p.st.JobId) {
		answer = nil // about an earlier attempt, or about a deleted job of this name
	}
	switch {
	case answer != nil && answer.Err != nil:
		p.unanswered(answer)
		p.unknownYet()
	case answer == nil || answer.Answered.IsZero():
		p.unknownYet()
	case answer.JobFound == poll.Missing:
		p.st.JobStatusCheckFailureStartTime = nil
		p.unknownToRay(answer)
	case answer.JobFound == poll.Found:
		p.st.JobStatusCheckFailureStartTime = nil
		p.known(answer.Job)
	}
}

// secret is the name of the Secret with the token that the job's cluster asks for, or empty.
func (p *planner) secret() string {
	if p.s.Cluster == nil {
		return ""
	}
	return raycluster.AuthOf(p.s.Cluster).Secret
}

// unknownYet starts the submitter while nothing is known; the submission id makes starting it twice harmless.
func (p *planner) unknownYet() {
	if p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusRunning && p.st.JobStatus == rayv1.JobStatusNew {
		p.submitter()
	}
}

// unanswered keeps the time since when Ray does not answer, and gives up when that is too long.
func (p *planner) unanswered(answer *poll.Observation) {
	since := metav1.NewTime(answer.FailingSince)
	if p.st.JobStatusCheckFailureStartTime == nil {
		p.st.JobStatusCheckFailureStartTime = &since
	}
	failing := p.now.Sub(p.st.JobStatusCheckFailureStartTime.Time)
	seen := p.now.Sub(answer.FailingSince)
	if failing >= p.settings.StatusCheckTimeout && seen >= min(leastSilence, p.settings.StatusCheckTimeout) {
		p.fail(rayv1.JobStatusCheckTimeoutExceeded, fmt.Sprintf("Ray has not answered for %s: %v", failing.Round(time.Second), answer.Err))
		return
	}
	p.again(max(p.settings.StatusCheckTimeout-failing, pollAgain))
}

// unknownToRay handles the answer that there is no such job.
func (p *planner) unknownToRay(answer *poll.Observation) {
	if p.st.JobStatus != rayv1.JobStatusNew {
		p.lost()
		return
	}
	switch p.job.Spec.SubmissionMode {
	case rayv1.HTTPMode:
		p.submitOverHTTP(answer)
	case rayv1.InteractiveMode:
		// The user may submit later.
	default:
		p.submitter()
		p.judgeSubmitter()
	}
}

// lost ends the attempt of a job that Ray knew and does not know any more. It is never run a second time in silence.
func (p *planner) lost() {
	p.fail(rayv1.AppFailed, fmt.Sprintf(
		"Ray does not know job %s any more; its head was probably replaced, and with it the record of the job was lost", p.st.JobId))
}

// submitOverHTTP sends the job to Ray. Ray takes one job for an id, and the id was recorded before.
func (p *planner) submitOverHTTP(answer *poll.Observation) {
	request, err := submitRequest(p.job)
	if err != nil {
		p.fail(rayv1.SubmissionFailed, err.Error())
		return
	}
	if sent := p.s.Sent; sent != nil && sent.SubmissionID == p.st.JobId {
		wait := sent.At.Add(resubmitAfter).Sub(p.now)
		switch {
		case refused(sent.Err):
			p.fail(rayv1.SubmissionFailed, "Ray refused the job: "+sent.Err.Error())
			return
		case sent.Err == nil && answer.Answered.After(sent.At):
			p.lost()
			return
		case sent.Err == nil || wait > 0:
			p.again(max(wait, pollAgain))
			return
		}
	}
	p.do(action.Submit{Job: p.s.Job, BaseURL: "http://" + p.st.DashboardURL, Secret: p.secret(), Request: request, Why: "Ray does not know the job yet"})
	p.again(pollAgain)
}

// judgeSubmitter fails the attempt when the submitter has ended and Ray still does not know the job.
func (p *planner) judgeSubmitter() {
	ended, failed, message := submitterEnd(p.s.Submitter, p.job)
	if ended.IsZero() {
		return
	}
	if failed {
		p.fail(rayv1.SubmissionFailed, "the submitter Job failed and Ray does not know the job: "+message)
		return
	}
	if wait := ended.Add(submitterGrace).Sub(p.now); wait > 0 {
		p.again(wait)
		return
	}
	p.fail(rayv1.AppFailed, "the submitter Job has finished, but Ray does not know the job")
}

// known takes over what Ray says about the job, and ends the attempt when Ray says that the job has ended.
func (p *planner) known(job *dashboard.JobDetails) {
	p.st.JobStatus = rayv1.JobStatus(job.Status)
	p.st.Message = truncate(job.Message)
	p.st.Reason = ""
	p.st.RayJobInfo = rayv1.RayJobStatusInfo{StartTime: timeOrNil(job.StartTime), EndTime: timeOrNil(job.EndTime)}
	if rayv1.IsJobTerminal(p.st.JobStatus) {
		p.finish()
	}
}

// finish ends the attempt by the last word of Ray, which never changes.
func (p *planner) finish() {
	p.copyClusterStatus()
	if p.submitterStillReads() {
		return
	}
	if p.st.JobStatus == rayv1.JobStatusFailed {
		p.fail(rayv1.AppFailed, p.st.Message)
		return
	}
	p.complete()
}

// submitterStillReads tells whether the submitter, which prints the job's log, may need a moment more.
func (p *planner) submitterStillReads() bool {
	if p.job.Spec.SubmissionMode != rayv1.K8sJobMode || p.s.Submitter == nil {
		return false
	}
	ended, _, _ := submitterEnd(p.s.Submitter, p.job)
	if !ended.IsZero() || p.st.RayJobInfo.EndTime == nil {
		return false
	}
	wait := p.st.RayJobInfo.EndTime.Add(submitterGrace).Sub(p.now)
	p.again(wait)
	return wait > 0
}

// submitterEnd tells when the job's own submitter ended, whether it failed, and the Job controller's words for it.
func submitterEnd(submitter *batchv1.Job, job *rayv1.RayJob) (ended metav1.Time, failed bool, message string) {
	if submitter == nil || !metav1.IsControlledBy(submitter, job) {
		return metav1.Time{}, false, ""
	}
	for _, c := range submitter.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete {
			return c.LastTransitionTime, c.Type == batchv1.JobFailed, strings.TrimSpace(c.Reason + " " + c.Message)
		}
	}
	return metav1.Time{}, false, ""
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	mt := metav1.NewTime(t.Truncate(time.Second))
	return &mt
}

// maxMessage bounds what is copied from Ray into the status, in bytes; Ray may send 20,000 characters of log.
const maxMessage = 2048

// truncate keeps the end of a text, because Ray puts the last lines of the log there.
func truncate(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return "..." + strings.ToValidUTF8(text[len(text)-maxMessage+3:], "")
}
