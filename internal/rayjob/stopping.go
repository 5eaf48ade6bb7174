package rayjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// reasonSuspended is the reason in status.stopping of a job that is being suspended.
const reasonSuspended = "Suspended"

// stopping is the time between a deadline and the end that follows from it.
func (p *planner) stopping() {
	if !p.rayJobStopped() {
		return
	}
	p.copyClusterStatus()
	if p.st.JobStatus == rayv1.JobStatusSucceeded {
		// It had succeeded before Ray heard of the deadline.
		p.st.Stopping = nil
		p.finish()
		return
	}
	p.fail(rayv1.JobFailedReason(p.st.Stopping.Reason), p.st.Stopping.Message)
}

// suspend begins to take the attempt down because of spec.suspend.
func (p *planner) suspend() {
	p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusSuspending
	p.st.Stopping = &rayv1.RayJobStopping{Reason: reasonSuspended, Since: metav1.NewTime(p.now), Message: "spec.suspend is set"}
}

// suspending stops the Ray job and then takes the attempt down. A job that ends by itself meanwhile has ended.
func (p *planner) suspending() {
	if !p.rayJobStopped() {
		return
	}
	if p.st.JobStatus == rayv1.JobStatusSucceeded || p.st.JobStatus == rayv1.JobStatusFailed {
		p.st.Stopping = nil
		p.st.JobDeploymentStatus = rayv1.JobDeploymentStatusRunning
		p.finish()
		return
	}
	// From here on Ray is not asked any more: what it says while its cluster goes says nothing about the job.
	p.st.Submission = nil
	if p.takenDown("the job is suspended") {
		p.reset(rayv1.JobDeploymentStatusSuspended)
	}
}

// retrying takes a failed attempt down and lets the next one begin.
func (p *planner) retrying() {
	if p.takenDown("the attempt is over") {
		p.reset(rayv1.JobDeploymentStatusNew)
	}
}

// takenDown removes the cluster and the submitter of an attempt, and tells whether they and all their Pods are gone.
func (p *planner) takenDown(why string) bool {
	clusterGone := p.deleteCluster(why)
	submitterGone := p.deleteSubmitter(why)
	if clusterGone && submitterGone && len(p.s.Pods)+len(p.s.SubmitterPods) == 0 {
		return true
	}
	p.again(pollAgain)
	if p.now.Sub(p.s.firstSeen(seenTakeDown, p.now)) > takeDownLimit {
		p.obstacle = obstacle{rayv1.ReasonTakenDownSlowly, p.leftovers()}
	}
	return false
}

// leftovers names what is left of an attempt, and the finalizers that hold it.
func (p *planner) leftovers() string {
	var left []string
	name := func(kind string, object metav1.Object) {
		text := kind + " " + object.GetName()
		if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
			text += " (held by finalizers " + strings.Join(finalizers, ", ") + ")"
		}
		left = append(left, text)
	}
	if p.ownsCluster() {
		name(rayv1.KindRayCluster, p.s.Cluster)
	}
	if p.s.hasSubmitter() {
		name("Job", p.s.Submitter)
	}
	for _, pod := range slices.Concat(p.s.Pods, p.s.SubmitterPods) {
		name("Pod", pod)
	}
	return fmt.Sprintf("%d objects of the attempt are still there: %s", len(left), strings.Join(left[:min(len(left), 5)], ", "))
}

// reset forgets the attempt. What speaks of the RayJob as a whole stays.
func (p *planner) reset(next rayv1.JobDeploymentStatus) {
	p.job.Status = rayv1.RayJobStatus{JobDeploymentStatus: next, Failed: p.st.Failed, Succeeded: p.st.Succeeded, StartTime: p.st.StartTime,
		Attempt: p.st.Attempt, PostMortem: p.st.PostMortem, Conditions: p.st.Conditions}
}

// deleted has the Ray job stopped and lets the RayJob go when Ray has confirmed that, or after a bounded time.
func (p *planner) deleted() {
	rest := slices.DeleteFunc(slices.Clone(p.s.Job.Finalizers), func(f string) bool { return f == rayv1.FinalizerRayJob })
	if len(rest) == len(p.s.Job.Finalizers) || !p.rayJobStopped() {
		return
	}
	p.decision.LookAgain, p.decision.Ask = 0, nil
	p.do(action.Finalizers{Object: p.s.Job, Want: rest, Why: "no Ray job of it is known to run"})
}

// rayJobMayRun tells whether something of the attempt may be at work in Ray.
func (p *planner) rayJobMayRun() bool {
	return p.st.Submission != nil && p.st.DashboardURL != "" && p.st.JobId != "" && !rayv1.IsJobTerminal(p.st.JobStatus) && p.headLost() == ""
}

// rayJobStopped has the Ray job stopped and tells whether nothing of it runs any more, as far as that can be found out in
// a bounded time. The job's status is taken over from Ray when it has ended.
func (p *planner) rayJobStopped() bool {
	if p.endHeard() {
		p.takeEnd(p.answer().Job)
		return true
	}
	if !p.rayJobMayRun() {
		return true
	}
	since := p.s.firstSeen(seenStopping, p.now)
	p.ask()
	if p.stopStep(since) {
		return true
	}
	if p.now.Sub(since) > stopLimit && !p.stopsFirst() {
		p.tell(action.Warning("FailedToStopRayJob", "Delete", fmt.Sprintf(
			"Ray did not confirm within %s that job %s on RayCluster %s has stopped; it may still run", stopLimit, p.st.JobId, p.st.RayClusterName)))
		return true
	}
	p.again(pollAgain)
	return false
}

// stopsFirst tells whether this pass sends the first request to stop. A process that was held up meanwhile has not tried yet.
func (p *planner) stopsFirst() bool {
	return about(p.s.Stopped, p.st) == nil && slices.ContainsFunc(p.decision.Actions, func(a action.Action) bool {
		_, stops := a.(action.Stop)
		return stops
	})
}

// stopStep does the next thing on the way to a stopped job and tells whether Ray has confirmed that it does not run.
func (p *planner) stopStep(since time.Time) bool {
	if p.st.Submission.ConfirmedTime == nil {
		// It might submit after Ray was found to know nothing.
		p.deleteUnfinishedSubmitter("the job is not to be submitted any more")
	}
	answer := p.answer()
	if answer == nil || answer.Err != nil || p.s.Sending {
		return false
	}
	switch {
	case answer.JobFound == poll.Missing:
		quiet, known := p.s.FirstSeen[seenQuiet]
		return known && answer.Answered.After(since) && answer.Answered.After(quiet)
	case answer.Job == nil:
		return false
	case !p.ours(answer.Job):
		return true
	case answer.Job.Status.Terminal():
		p.takeEnd(answer.Job)
		return true
	}
	p.take(answer.Job)
	sent := about(p.s.Stopped, p.st)
	if sent == nil || sent.Err != nil || sent.At.Before(since) {
		p.do(action.Stop{Job: p.s.Job, BaseURL: p.address(), Secret: p.secret(), SubmissionID: p.st.JobId, Why: p.whyStop()})
	}
	return false
}

// takeEnd takes over how a job that was to be stopped has ended.
func (p *planner) takeEnd(job *dashboard.JobDetails) {
	p.take(job)
	if p.st.JobStatus == rayv1.JobStatusStopped {
		p.tell(action.Normal("StoppedRayJob", "Delete", fmt.Sprintf("Ray has stopped job %s", p.st.JobId)))
	}
}

func (p *planner) whyStop() string {
	switch {
	case p.job.DeletionTimestamp != nil:
		return "the RayJob is deleted"
	case p.st.Stopping != nil:
		return p.st.Stopping.Message
	default:
		return "it is not to run any more"
	}
}

// unfinished are the Pods that have not ended.
func unfinished(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
}
