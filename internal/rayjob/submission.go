package rayjob

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// record keeps which life of the head takes the job. Nothing is sent before that is written.
func (p *planner) record(answer *poll.Observation) {
	submission := &rayv1.RayJobSubmission{SessionName: answer.SessionName}
	if p.st.Submission != nil {
		submission.ConfirmedTime = p.st.Submission.ConfirmedTime
	}
	if head := p.s.Head; head != nil {
		submission.HeadPod, submission.HeadPodUID, submission.HeadRestarts = head.Name, head.UID, restarts(head)
	}
	if p.st.JobStatus != rayv1.JobStatusNew && submission.ConfirmedTime == nil {
		// Ray had the job when another operator, KubeRay perhaps, looked after it.
		submission.ConfirmedTime = &metav1.Time{Time: p.now.Truncate(time.Second)}
	}
	p.st.Submission = submission
}

// unrecorded tells whether the life of the head that answers is not known to the status yet.
func (p *planner) unrecorded(answer *poll.Observation) bool {
	return p.st.Submission == nil || p.st.Submission.SessionName == "" && answer.SessionName != "" || p.misrecorded(answer)
}

// restarts is how often Ray's container of a head Pod was restarted.
func restarts(head *corev1.Pod) int32 {
	if len(head.Spec.Containers) == 0 {
		return 0
	}
	for _, s := range head.Status.ContainerStatuses {
		if s.Name == head.Spec.Containers[0].Name {
			return s.RestartCount
		}
	}
	return 0
}

// headLost says why the life of the head that was to take the job is over, and the job with it; empty while it is not.
// With a store that outlives the head, only Ray can tell whether the job is lost.
func (p *planner) headLost() string {
	submission := p.st.Submission
	switch {
	case p.sidecarLost():
		return "the head that submits it is gone"
	case submission == nil, p.job.Spec.SubmissionMode == rayv1.InteractiveMode && submission.ConfirmedTime == nil:
		return "" // nothing was sent
	case p.s.Cluster == nil:
		return fmt.Sprintf("RayCluster %s is gone", p.st.RayClusterName)
	case raycluster.FaultTolerant(p.s.Cluster), p.sameSession(submission):
		return ""
	case p.headPodLost(submission):
		return fmt.Sprintf("head Pod %s is gone", submission.HeadPod)
	case submission.HeadPodUID != "" && restarts(p.s.Head) > submission.HeadRestarts:
		return fmt.Sprintf("Ray was restarted in head Pod %s%s", submission.HeadPod, lastEnd(p.s.Head))
	case p.otherSession(submission):
		return fmt.Sprintf("the head was restarted (session %s, then %s)", submission.SessionName, p.s.Answer.SessionName)
	default:
		return ""
	}
}

// sidecarLost tells whether the head with the submitter beside it is gone, and no other is made in its place.
func (p *planner) sidecarLost() bool {
	return p.job.Spec.SubmissionMode == rayv1.SidecarMode && p.s.Cluster != nil && p.s.Head == nil && raycluster.HeadStaysAway(p.s.Cluster)
}

// sameSession tells whether Ray's last answer came from the session that is on record. That outweighs the Pod: the record of
// the Pod may come from a cache that lagged behind, and a Pod that is gone shows in the next answer.
func (p *planner) sameSession(submission *rayv1.RayJobSubmission) bool {
	answer := p.answer()
	return answer != nil && answer.Err == nil && submission.SessionName != "" && answer.SessionName == submission.SessionName
}

// misrecorded tells whether the record names another life of the head Pod than the one that has the session on record. That
// is sure when the session has answered since this process has seen that life.
func (p *planner) misrecorded(answer *poll.Observation) bool {
	submission, head := p.st.Submission, p.s.Head
	if submission == nil || head == nil || submission.HeadPodUID == "" || !p.sameSession(submission) {
		return false
	}
	if submission.HeadPodUID == head.UID && submission.HeadRestarts == restarts(head) {
		return false
	}
	p.again(pollAgain) // the same answer as before wakes nobody
	return answer.Answered.After(p.s.firstSeen(lifeOf(head), p.now))
}

func (p *planner) headPodLost(submission *rayv1.RayJobSubmission) bool {
	head := p.s.Head
	return submission.HeadPodUID != "" &&
		(head == nil || head.UID != submission.HeadPodUID || head.Status.Phase == corev1.PodFailed || head.Status.Phase == corev1.PodSucceeded)
}

func (p *planner) otherSession(submission *rayv1.RayJobSubmission) bool {
	answer := p.answer()
	return answer != nil && submission.SessionName != "" && answer.SessionName != "" && answer.SessionName != submission.SessionName
}

// lastEnd tells how Ray's container of a head Pod ended the last time.
func lastEnd(head *corev1.Pod) string {
	for _, s := range head.Status.ContainerStatuses {
		if t := s.LastTerminationState.Terminated; t != nil && s.Name == head.Spec.Containers[0].Name {
			return strings.TrimRight(fmt.Sprintf(": %s, exit code %d", t.Reason, t.ExitCode), " ")
		}
	}
	return ""
}

// lost ends the attempt of a job that got to Ray, or may have, and that is not there any more. It is never run a second
// time in silence.
func (p *planner) lost(why string) {
	last := "it is not known whether it had begun"
	if p.st.Submission == nil {
		last = "it had not been submitted"
	}
	if p.st.JobStatus != rayv1.JobStatusNew {
		last = "Ray's last word on it was " + string(p.st.JobStatus)
	}
	p.fail(rayv1.JobLost, fmt.Sprintf("Ray job %s is lost: %s; %s", p.st.JobId, why, last))
}

// lostUnlessFound ends the attempt, unless a submission that was under way when the head was replaced has got to the next head.
// Nobody else would look after the job there.
func (p *planner) lostUnlessFound(why string) {
	if p.st.Submission == nil || p.st.Submission.ConfirmedTime != nil || p.s.Cluster == nil {
		p.lost(why)
		return
	}
	answer := p.answer()
	switch {
	case p.s.Sending, p.unheard(answer):
		p.ask()
		p.again(pollAgain)
	case answer != nil && answer.Err == nil && answer.JobFound == poll.Found && p.ours(answer.Job):
		p.record(answer)
		p.known(answer)
	default:
		p.lost(why)
	}
}

// unheard tells whether Ray took the submission and has not been heard since, although it may yet be.
func (p *planner) unheard(answer *poll.Observation) bool {
	sent := about(p.s.Sent, p.st)
	if sent == nil || sent.Err != nil {
		return false
	}
	silent := answer != nil && answer.Err != nil && answer.Failures >= leastFailures
	return !silent && (answer == nil || !answer.Answered.After(sent.At))
}

// ours tells whether a job that Ray has under our submission id is the one of this attempt. Only where the user chose the
// id and others use the cluster can it be another.
func (p *planner) ours(job *dashboard.JobDetails) bool {
	uid, marked := job.Metadata[rayv1.MetadataRayJobUID]
	switch {
	case p.job.Spec.SubmissionMode == rayv1.InteractiveMode:
		return true
	case marked:
		attempt := job.Metadata[rayv1.MetadataAttempt]
		return uid == string(p.job.UID) && (attempt == "" || attempt == strconv.Itoa(int(p.st.Attempt)))
	case p.st.Submission != nil && p.st.Submission.ConfirmedTime != nil:
		return true
	case p.ownsCluster(), p.st.JobId == childName(p.job, "submission", ""):
		return true
	case p.st.Attempt == 0 && p.job.Spec.JobId == "":
		return true // begun by KubeRay, which draws its ids
	default:
		return p.hasOwnCommand() && p.s.hasSubmitter()
	}
}

// hasOwnCommand tells whether the submitter runs a command of the user's, which may submit without our mark.
func (p *planner) hasOwnCommand() bool {
	template := p.job.Spec.SubmitterPodTemplate
	return template != nil && len(template.Spec.Containers) > 0 && len(template.Spec.Containers[0].Command) > 0
}

// ownsCluster tells whether the attempt's cluster was made for it.
func (p *planner) ownsCluster() bool {
	return p.s.Cluster != nil && metav1.IsControlledBy(p.s.Cluster, p.s.Job)
}
