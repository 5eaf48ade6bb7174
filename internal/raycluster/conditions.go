package raycluster

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
)

// conditions sets every condition of the cluster and returns the events of those that changed.
func (p *planner) conditions(st *rayv1.RayClusterStatus) []action.Event {
	st.Conditions = slices.Clone(st.Conditions)
	events := p.valid(st)
	events = append(events, p.nameCollision(st)...)
	events = append(events, p.storageReady(st)...)
	events = append(events, p.recoveries(st)...)
	troubles := p.troubles()
	for _, c := range slices.Concat(
		[]metav1.Condition{p.headPodReady(), p.provisioned()}, p.suspension(),
		[]metav1.Condition{podsHealthy(troubles), p.podsUpToDate()}, p.progress(troubles),
	) {
		p.set(st, c)
	}
	p.replicaFailure(st)
	return events
}

// set puts a condition into the status and tells whether it is new or says something else than before.
func (p *planner) set(st *rayv1.RayClusterStatus, c metav1.Condition) bool {
	return condition.Set(&st.Conditions, c, p.snapshot.Cluster.Generation, p.now)
}

// valid says whether the spec can be acted upon. The event is sent when the verdict changes, not on every pass.
func (p *planner) valid(st *rayv1.RayClusterStatus) []action.Event {
	c := metav1.Condition{Type: rayv1.ConditionValid, Status: metav1.ConditionTrue, Reason: rayv1.ReasonSpecValid}
	var event *action.Event
	switch unserved := NotServed(&p.snapshot.Cluster.Spec); {
	case len(p.invalid) > 0:
		c.Status, c.Reason = metav1.ConditionFalse, rayv1.ReasonSpecInvalid
		c.Message = errors.Join(p.invalid...).Error() + "\n" + p.consequence()
		event = action.Warning(invalidReason(p.invalid), "Validate", c.Message)
	case len(unserved)+len(p.notes) > 0:
		c.Reason, c.Message = rayv1.ReasonPartlyServed, partlyServed(p.notes, unserved)
		event = action.Warning(rayv1.ReasonPartlyServed, "Validate", c.Message)
	}
	if changed := p.set(st, c); event == nil || !changed {
		return nil
	}
	return []action.Event{*event}
}

// consequence says what becomes of a cluster whose spec cannot be acted upon.
func (p *planner) consequence() string {
	if p.frozen {
		return "nothing is made or removed until the spec is corrected"
	}
	return "the cluster is kept as the last valid spec asked until the spec is corrected"
}

func partlyServed(notes, unserved []string) string {
	if len(unserved) > 0 {
		notes = append(slices.Clone(notes), "this version does not act on: "+strings.Join(unserved, ", "))
	}
	return strings.Join(notes, "; ")
}

func invalidReason(invalid []error) string {
	if slices.ContainsFunc(invalid, func(err error) bool { return strings.HasPrefix(err.Error(), "metadata.") }) {
		return "InvalidRayClusterMetadata"
	}
	return "InvalidRayClusterSpec"
}

// provisioned turns True when all wanted Pods were ready at once for the first time, and stays so until the cluster
// has been suspended.
func (p *planner) provisioned() metav1.Condition {
	c := metav1.Condition{Type: rayv1.ConditionRayClusterProvisioned, Status: metav1.ConditionFalse,
		Reason: rayv1.ReasonRayClusterPodsProvisioning, Message: "not all wanted Pods have been ready yet"}
	already := conditionTrue(p.snapshot.Cluster, c.Type) && p.suspend != suspended
	if already || p.suspend == running && !p.frozen && p.allReady() {
		c.Status, c.Reason = metav1.ConditionTrue, rayv1.ReasonAllPodRunningAndReadyFirstTime
		c.Message = "all wanted Pods were running and ready"
	}
	return c
}

func (p *planner) suspension() []metav1.Condition {
	is := func(phase suspendPhase) metav1.ConditionStatus { return condition.Status(p.suspend == phase) }
	return []metav1.Condition{
		{Type: rayv1.ConditionRayClusterSuspending, Status: is(suspending), Reason: rayv1.ReasonRayClusterSuspending},
		{Type: rayv1.ConditionRayClusterSuspended, Status: is(suspended), Reason: rayv1.ReasonRayClusterSuspended},
	}
}

// replicaFailure is there while Pods are held back because the API server refused them.
func (p *planner) replicaFailure(st *rayv1.RayClusterStatus) {
	for _, key := range p.heldKeys() {
		hold := p.snapshot.Holds[key]
		if reason := failureReason(hold.Reason); reason != "" {
			p.set(st, metav1.Condition{Type: rayv1.ConditionReplicaFailure, Status: metav1.ConditionTrue, Reason: reason,
				Message: failureText(key, hold)})
			return
		}
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
