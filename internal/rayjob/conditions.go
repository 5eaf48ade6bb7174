package rayjob

import (
	"cmp"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/worst"
)

// conditions sets every condition of the job from its next status.
func (p *planner) conditions() {
	p.valid()
	p.set(p.submitted())
	p.set(p.rayRuns())
	for _, c := range p.ends() {
		p.set(c)
	}
	for _, c := range p.progress() {
		p.set(c)
	}
	p.troubled()
}

// troubled sets the condition Troubled by the rules of the plugin. While the cluster is not ready, that of the cluster counts.
func (p *planner) troubled() {
	facts := &diagnose.Snapshot{Now: p.now, Jobs: []*rayv1.RayJob{p.judged()}, Pods: p.s.SubmitterPods}
	var awaited *rayv1.RayCluster
	if p.s.Cluster != nil {
		facts.Clusters = []*rayv1.RayCluster{p.s.Cluster}
		if p.s.Cluster.Status.State != rayv1.ClusterStateReady && p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusInitializing {
			awaited = p.s.Cluster
		}
	}
	if p.s.hasSubmitter() {
		facts.SubmitterJobs = []*batchv1.Job{p.s.Submitter}
	}
	events, again := worst.Object{
		Facts: facts, Conditions: &p.st.Conditions, Generation: p.s.Job.Generation, Now: p.now, Awaited: awaited,
		Holds: p.s.Holds, Events: p.decision.Events,
	}.Lift()
	p.decision.Events = events
	p.again(again)
}

// judged is the job as it was read, with its next status.
func (p *planner) judged() *rayv1.RayJob {
	job := *p.s.Job
	job.Status = *p.st
	job.Status.ObservedGeneration = job.Generation
	return &job
}

// set puts a condition into the status and tells whether it is new or says something else than before.
func (p *planner) set(c metav1.Condition) bool {
	return condition.Set(&p.st.Conditions, c, p.s.Job.Generation, p.now)
}

// valid says whether the spec can be acted upon. The event is sent when the verdict changes, not on every pass.
func (p *planner) valid() {
	c := metav1.Condition{Type: rayv1.ConditionValid, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSpecValid}
	var event *action.Event
	notes := p.notes
	if !rayv1.IsJobDeploymentTerminal(p.st.JobDeploymentStatus) {
		notes = append(notes, uncovered(&p.job.Spec)...)
	}
	switch {
	case p.invalid != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, rayv1.ReasonSpecInvalid, p.invalid.Error()
		if p.st.JobDeploymentStatus != rayv1.JobDeploymentStatusValidationFailed && p.s.LastValid != nil {
			c.Message += "\nthe job goes on as the last valid spec asked"
		}
		event = action.Warning(invalidReason(p.invalid), "Validate", c.Message)
	case len(notes) > 0:
		c.Reason, c.Message = rayv1.ReasonPartlyServed, strings.Join(notes, "; ")
		event = action.Warning(c.Reason, "Validate", c.Message)
	}
	if changed := p.set(c); changed && event != nil {
		p.tell(event)
	}
}

func (p *planner) submitted() metav1.Condition {
	c := metav1.Condition{Type: rayv1.ConditionSubmitted, Status: metav1.ConditionFalse, Reason: rayv1.ReasonNotConfirmed}
	if s := p.st.Submission; s != nil && s.ConfirmedTime != nil {
		c.Status, c.Reason = metav1.ConditionTrue, rayv1.ReasonConfirmed
		c.Message = fmt.Sprintf("Ray has job %s on RayCluster %s", p.st.JobId, p.st.RayClusterName)
	}
	return c
}

// rayRuns is the condition Running.
func (p *planner) rayRuns() metav1.Condition {
	runs := p.st.JobStatus == rayv1.JobStatusRunning && !rayv1.IsJobDeploymentTerminal(p.st.JobDeploymentStatus) &&
		p.st.JobDeploymentStatus != rayv1.JobDeploymentStatusRetrying
	return metav1.Condition{Type: rayv1.ConditionRunning, Status: condition.Status(runs), Reason: rayv1.ReasonJobStatus,
		Message: fmt.Sprintf("Ray's last word: %s", cmp.Or(string(p.st.JobStatus), "none"))}
}

// ends are the conditions that tell whether and how the job has ended.
func (p *planner) ends() []metav1.Condition {
	phase, said := p.st.JobDeploymentStatus, p.st.JobStatus
	reason, message := rayv1.ReasonNotEnded, ""
	if rayv1.IsJobDeploymentTerminal(phase) {
		reason, message = rayv1.ReasonEnded, fmt.Sprintf("the RayJob is %s; Ray's last word: %s", phase, cmp.Or(string(said), "none"))
	}
	about := func(kind string, is bool) metav1.Condition {
		return metav1.Condition{Type: kind, Status: condition.Status(is), Reason: reason, Message: message}
	}
	failed := about(rayv1.ConditionFailed, phase == rayv1.JobDeploymentStatusFailed)
	if failed.Status == metav1.ConditionTrue {
		failed.Reason, failed.Message = p.failedReason(), p.st.Message
	}
	return []metav1.Condition{
		about(rayv1.ConditionSucceeded, phase == rayv1.JobDeploymentStatusComplete && said == rayv1.JobStatusSucceeded),
		failed,
		about(rayv1.ConditionStopped, rayv1.IsJobDeploymentTerminal(phase) && said == rayv1.JobStatusStopped),
	}
}

// failedReason is why the job failed. Status that another operator has left may not tell.
func (p *planner) failedReason() string { return cmp.Or(string(p.st.Reason), rayv1.ReasonEnded) }

// progress returns the conditions Ready, Reconciling and Stalled: one verdict in the words of kstatus.
func (p *planner) progress() []metav1.Condition {
	reason, message, ready := p.progressReason()
	block := p.blocked()
	reconciling := metav1.Condition{Type: rayv1.ConditionReconciling, Status: condition.Status(!ready && block.reason == ""),
		Reason: reason, Message: message}
	stalled := metav1.Condition{Type: rayv1.ConditionStalled, Status: metav1.ConditionFalse, Reason: reason}
	if block.reason != "" {
		stalled.Status, stalled.Reason, stalled.Message = metav1.ConditionTrue, block.reason, block.message
		reconciling.Reason, reconciling.Message = rayv1.ReasonStalled, ""
		ready = false
	}
	return []metav1.Condition{
		{Type: rayv1.ConditionReady, Status: condition.Status(ready), Reason: reason, Message: message}, reconciling, stalled,
	}
}

// progressReason is where the job is on its way, in a word and a sentence, and whether that is where it is meant to be.
func (p *planner) progressReason() (reason, message string, ready bool) {
	switch p.st.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusComplete:
		return rayv1.ReasonEnded, "", true
	case rayv1.JobDeploymentStatusFailed:
		return p.failedReason(), p.st.Message, false
	case rayv1.JobDeploymentStatusValidationFailed:
		return rayv1.ReasonSpecInvalid, "", false
	case rayv1.JobDeploymentStatusSuspended:
		return rayv1.ReasonSuspended, "", true
	case rayv1.JobDeploymentStatusSuspending:
		return rayv1.ReasonSuspending, "", false
	case rayv1.JobDeploymentStatusRetrying:
		return rayv1.ReasonRetrying, p.st.Message, false
	case rayv1.JobDeploymentStatusWaiting:
		return rayv1.ReasonWaitingForUser, "submit the job and write its submission id into spec.jobId", false
	case rayv1.JobDeploymentStatusRunning:
		return p.runningReason()
	default:
		return rayv1.ReasonWaitingForCluster, cmp.Or(p.st.Message, p.clusterTrouble().message), false
	}
}

func (p *planner) runningReason() (reason, message string, ready bool) {
	switch {
	case p.st.Stopping != nil:
		return rayv1.ReasonStopping, p.st.Stopping.Message, false
	case p.st.JobStatusCheckFailureStartTime != nil:
		return rayv1.ReasonRayDoesNotAnswer, p.silence(), false
	case p.st.Submission == nil:
		return rayv1.ReasonWaitingForRay, "", false
	case p.st.Submission.ConfirmedTime == nil:
		return rayv1.ReasonSubmitting, p.st.Message, false
	default:
		return rayv1.ReasonConfirmed, "", true
	}
}

// silence is why Ray cannot be asked. What was told last stands until this process has asked itself; otherwise each change of
// the leader would be two writes of the status.
func (p *planner) silence() string {
	answer, sent := p.answer(), about(p.s.Sent, p.st)
	last := meta.FindStatusCondition(p.s.Job.Status.Conditions, rayv1.ConditionReady)
	switch {
	case answer != nil && answer.Err != nil:
		return answer.Err.Error()
	case sent != nil && sent.Err != nil:
		return sent.Err.Error()
	case answer == nil && last != nil && last.Reason == rayv1.ReasonRayDoesNotAnswer:
		return last.Message
	default:
		return ""
	}
}

// blocked is what somebody must change before the job can become what is asked for.
func (p *planner) blocked() obstacle {
	switch {
	case p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusFailed:
		return obstacle{p.failedReason(), p.st.Message}
	case p.invalid != nil && p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusValidationFailed:
		return obstacle{rayv1.ReasonSpecInvalid, p.invalid.Error()}
	case p.obstacle.reason != "":
		return p.obstacle
	case p.st.JobDeploymentStatus == rayv1.JobDeploymentStatusRunning && p.st.Submission != nil && p.st.Submission.ConfirmedTime == nil:
		return p.submitterTrouble()
	default:
		return obstacle{}
	}
}

// submitterTrouble is the worst finding about the Pods of a submitter that has not submitted yet.
func (p *planner) submitterTrouble() obstacle {
	var worst diagnose.Finding
	for _, pod := range p.s.SubmitterPods {
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		finding, again := diagnose.Pod(diagnose.PodFacts{Pod: pod, Now: p.now})
		p.again(again)
		if finding.Found() && (!worst.Found() || diagnose.Compare(finding, worst) < 0) {
			worst = finding
		}
	}
	if !worst.Found() {
		return obstacle{}
	}
	return obstacle{worst.Reason, fmt.Sprintf("submitter %s: %s", worst.Object, worst.Message)}
}
