package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// progress returns the conditions Ready, Reconciling and Stalled. They are one verdict in three words, by which any
// client that knows the conventions of kstatus can tell done, under way and stuck apart.
func (p *planner) progress(troubles []trouble) []metav1.Condition {
	ready := metav1.Condition{Type: rayv1.ConditionReady, Status: metav1.ConditionFalse}
	ready.Reason, ready.Message = p.readiness()
	if ready.Reason == rayv1.ReasonAllPodsReady {
		ready.Status = metav1.ConditionTrue
	}
	reconciling := metav1.Condition{Type: rayv1.ConditionReconciling, Status: metav1.ConditionFalse, Reason: ready.Reason}
	stalled := metav1.Condition{Type: rayv1.ConditionStalled, Status: metav1.ConditionFalse, Reason: ready.Reason}
	switch reason, message := p.obstacle(troubles); {
	case reason != "":
		stalled.Status, stalled.Reason = metav1.ConditionTrue, reason
		stalled.Message = strings.TrimSuffix(message+"; "+p.waitsText(), "; ")
		reconciling.Reason = rayv1.ReasonStalled
	case ready.Reason == rayv1.ReasonPodsNotReady, ready.Reason == rayv1.ReasonSuspending:
		reconciling.Status, reconciling.Message = metav1.ConditionTrue, p.waitsText()
	}
	return []metav1.Condition{ready, reconciling, stalled}
}

// waitsText is what the plan puts off, each sentence once: many Pods may wait for the same.
func (p *planner) waitsText() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(p.waits))), "; ")
}

// readiness is the reason and message of the condition Ready. The reasons are few, so that a cluster that simply starts
// has one and the same until it is ready; details are in other conditions.
func (p *planner) readiness() (reason, message string) {
	switch p.suspend {
	case suspended:
		return rayv1.ReasonSuspended, ""
	case suspending:
		return rayv1.ReasonSuspending, fmt.Sprintf("%d Pods are left", len(p.snapshot.Pods))
	}
	wanted := int64(DesiredWorkers(&p.cluster.Spec)) + 1
	missing := p.missingObject()
	switch {
	case len(p.invalid) > 0:
		return rayv1.ReasonSpecInvalid, ""
	case p.allReady() && missing == "":
		return rayv1.ReasonAllPodsReady, fmt.Sprintf("%d Pods are wanted, and all are ready", wanted)
	case p.allReady():
		return rayv1.ReasonPodsNotReady, missing
	}
	ready, there := p.countReady()
	message = fmt.Sprintf("%d Pods are wanted, %d are ready", wanted, ready)
	if int64(there) > wanted {
		message += fmt.Sprintf(", %d are too many", int64(there)-wanted)
	}
	return rayv1.ReasonPodsNotReady, message
}

// countReady counts the Pods that are ready, and those that are there and not terminating.
func (p *planner) countReady() (ready, there int) {
	for _, pod := range p.snapshot.Pods {
		if pod.DeletionTimestamp != nil {
			continue
		}
		there++
		if podReady(pod) {
			ready++
		}
	}
	return ready, there
}

// missingObject tells of a wanted object, other than a Pod, that is not there.
func (p *planner) missingObject() string {
	if len(p.collisions) > 0 {
		return p.collisions[0]
	}
	for _, key := range p.heldKeys() {
		if hold := p.snapshot.Holds[key]; hold.Reason != "" {
			return failureText(key, hold)
		}
	}
	for _, a := range p.plan.Actions {
		if apply, ok := a.(action.Apply); ok && apply.Observed == nil {
			return apply.Key() + " is being made"
		}
	}
	return ""
}

// obstacle is the reason and message of what the cluster cannot get past by itself, or empty.
func (p *planner) obstacle(troubles []trouble) (reason, message string) {
	switch {
	case len(p.invalid) > 0:
		return rayv1.ReasonSpecInvalid, p.invalid[0].Error()
	case p.suspend == suspended:
		return "", ""
	case p.suspend == running && len(p.collisions) > 0:
		return rayv1.ReasonNameCollision, p.collisions[0]
	}
	if i := slices.IndexFunc(troubles, p.blocks); i >= 0 {
		return troubles[i].Reason, troubles[i].String()
	}
	for _, key := range p.heldKeys() {
		hold := p.snapshot.Holds[key]
		switch {
		case hold.Collision:
			return rayv1.ReasonNameCollision, failureText(key, hold)
		case hold.Reason != "":
			return hold.Reason, failureText(key, hold)
		}
	}
	return "", ""
}

// heldKeys are the keys of what was refused lately: the head first, then by name.
func (p *planner) heldKeys() []string {
	return slices.SortedFunc(maps.Keys(p.snapshot.Holds), headFirst)
}

func headFirst(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == rayv1.HeadGroupName:
		return -1
	case b == rayv1.HeadGroupName:
		return 1
	default:
		return strings.Compare(a, b)
	}
}

// failureText says what a write was about, which its key tells: a group, or the kind and name of an object.
func failureText(key string, hold action.Hold) string {
	switch {
	case key == "":
		return hold.Message
	case key == rayv1.HeadGroupName:
		return "head: " + hold.Message
	case strings.Contains(key, "/"):
		return strings.Replace(key, "/", " ", 1) + ": " + hold.Message
	default:
		return fmt.Sprintf("group %s: %s", key, hold.Message)
	}
}
