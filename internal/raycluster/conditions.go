package raycluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// maxMessage keeps messages of conditions readable and far below the schema's limit, in bytes.
const maxMessage = 2048

// conditions sets every condition of the cluster and returns the events of those that changed.
func (p *planner) conditions(st *rayv1.RayClusterStatus) []action.Event {
	st.Conditions = slices.Clone(st.Conditions)
	events := p.valid(st)
	p.set(st, p.headPodReady())
	p.set(st, p.provisioned())
	for _, c := range p.suspension() {
		p.set(st, c)
	}
	p.replicaFailure(st)
	return events
}

func (p *planner) set(st *rayv1.RayClusterStatus, c metav1.Condition) {
	c.ObservedGeneration = p.snapshot.Cluster.Generation
	c.LastTransitionTime = metav1.NewTime(p.now.Truncate(time.Second))
	if len(c.Message) > maxMessage {
		c.Message = strings.ToValidUTF8(c.Message[:maxMessage-3], "") + "..."
	}
	meta.SetStatusCondition(&st.Conditions, c)
}

// valid says whether the spec can be acted upon. The event is sent when the verdict changes, not on every pass.
func (p *planner) valid(st *rayv1.RayClusterStatus) []action.Event {
	c := metav1.Condition{Type: rayv1.ConditionValid, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSpecValid}
	var event *action.Event
	switch unserved := p.notServed(); {
	case len(p.invalid) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, rayv1.ReasonSpecInvalid
		c.Message = errors.Join(p.invalid...).Error()
		event = action.Warning(invalidReason(p.invalid), "Validate", c.Message)
	case len(unserved)+len(p.notes) > 0:
		c.Reason, c.Message = rayv1.ReasonPartlyServed, partlyServed(p.notes, unserved)
		event = action.Warning(rayv1.ReasonPartlyServed, "Validate", c.Message)
	}
	before := meta.FindStatusCondition(st.Conditions, rayv1.ConditionValid)
	changed := before == nil || before.Reason != c.Reason || before.Message != c.Message
	p.set(st, c)
	if event == nil || !changed {
		return nil
	}
	return []action.Event{*event}
}

func partlyServed(notes, unserved []string) string {
	if len(unserved) > 0 {
		notes = append(slices.Clone(notes), "this version does not act on: "+strings.Join(unserved, ", "))
	}
	return strings.Join(notes, "; ")
}

// notServed names what the cluster asks for and this version does not act on.
func (p *planner) notServed() []string {
	unserved := NotServed(&p.snapshot.Cluster.Spec)
	if strings.EqualFold(p.snapshot.Cluster.Annotations[rayv1.AnnotationFTEnabled], "true") {
		unserved = append(unserved, "metadata.annotations["+rayv1.AnnotationFTEnabled+"]")
	}
	return unserved
}

func invalidReason(invalid []error) string {
	if slices.ContainsFunc(invalid, func(err error) bool { return strings.HasPrefix(err.Error(), "metadata.") }) {
		return "InvalidRayClusterMetadata"
	}
	return "InvalidRayClusterSpec"
}

// headPodReady mirrors the head Pod's Ready condition and names the container that keeps it from being ready.
func (p *planner) headPodReady() metav1.Condition {
	c := metav1.Condition{Type: rayv1.ConditionHeadPodReady, Status: metav1.ConditionFalse}
	head := p.liveHead()
	if head == nil {
		c.Reason, c.Message = rayv1.ReasonHeadPodNotFound, "the cluster has no head Pod"
		return c
	}
	i := slices.IndexFunc(head.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if i < 0 {
		c.Reason, c.Message = rayv1.ReasonUnknown, fmt.Sprintf("Pod %s does not report yet whether it is ready", head.Name)
		return c
	}
	ready := head.Status.Conditions[i]
	c.Status, c.Reason, c.Message = metav1.ConditionStatus(ready.Status), ready.Reason, ready.Message
	if c.Reason == "" {
		c.Reason = rayv1.ReasonUnknown
		if ready.Status == corev1.ConditionTrue {
			c.Reason = rayv1.ReasonHeadPodRunningAndReady
		}
	}
	if ready.Reason == rayv1.ReasonContainersNotReady {
		c.Reason, c.Message = firstTrouble(head, c.Reason, c.Message)
	}
	return c
}

// firstTrouble is the reason and message of the first container that waits or has ended.
func firstTrouble(pod *corev1.Pod, reason, message string) (string, string) {
	for _, s := range pod.Status.ContainerStatuses {
		var why, text string
		switch {
		case s.State.Waiting != nil:
			why, text = s.State.Waiting.Reason, s.State.Waiting.Message
		case s.State.Terminated != nil:
			why, text = s.State.Terminated.Reason, s.State.Terminated.Message
		default:
			continue
		}
		if why == "" {
			why = reason
		}
		return why, fmt.Sprintf("%s; %s: %s", message, s.Name, text)
	}
	return reason, message
}

// provisioned turns True when all wanted Pods were ready at once for the first time, and stays so until the cluster
// has been suspended.
func (p *planner) provisioned() metav1.Condition {
	c := metav1.Condition{Type: rayv1.ConditionRayClusterProvisioned, Status: metav1.ConditionFalse,
		Reason: rayv1.ReasonRayClusterPodsProvisioning, Message: "not all wanted Pods have been ready yet"}
	already := conditionTrue(p.snapshot.Cluster, c.Type) && p.suspend != suspended
	if already || p.suspend == running && len(p.invalid) == 0 && p.allReady() {
		c.Status, c.Reason = metav1.ConditionTrue, rayv1.ReasonAllPodRunningAndReadyFirstTime
		c.Message = "all wanted Pods were running and ready"
	}
	return c
}

func (p *planner) suspension() []metav1.Condition {
	is := func(phase suspendPhase) metav1.ConditionStatus {
		if p.suspend == phase {
			return metav1.ConditionTrue
		}
		return metav1.ConditionFalse
	}
	return []metav1.Condition{
		{Type: rayv1.ConditionRayClusterSuspending, Status: is(suspending), Reason: rayv1.ReasonRayClusterSuspending},
		{Type: rayv1.ConditionRayClusterSuspended, Status: is(suspended), Reason: rayv1.ReasonRayClusterSuspended},
	}
}

// replicaFailure is there while Pods are held back because the API server refused them.
func (p *planner) replicaFailure(st *rayv1.RayClusterStatus) {
	groups := make([]string, 0, len(p.snapshot.Holds))
	for group := range p.snapshot.Holds {
		groups = append(groups, group)
	}
	slices.Sort(groups)
	for _, group := range groups {
		hold := p.snapshot.Holds[group]
		reason := failureReason(hold.Reason)
		if reason == "" {
			continue
		}
		p.set(st, metav1.Condition{Type: rayv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: reason,
			Message: strings.TrimPrefix(fmt.Sprintf("group %s: %s", group, hold.Message), "group : ")})
		return
	}
	meta.RemoveStatusCondition(&st.Conditions, rayv1.ConditionReplicaFailure)
}

// failureReason is the condition's reason for the reason of a failure's event, or empty if the event is not about Pods.
func failureReason(event string) string {
	switch event {
	case "FailedToCreateHeadPod":
		return rayv1.ReasonFailedCreateHeadPod
	case "FailedToCreateWorkerPod":
		return rayv1.ReasonFailedCreateWorkerPod
	case "FailedToDeleteHeadPod":
		return rayv1.ReasonFailedDeleteHeadPod
	case "FailedToDeleteWorkerPod":
		return rayv1.ReasonFailedDeleteWorkerPod
	case "FailedToDeletePodCollection":
		return rayv1.ReasonFailedDeleteAllPods
	default:
		return ""
	}
}
