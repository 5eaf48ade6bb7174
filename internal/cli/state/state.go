// Package state says in one word and one sentence how an object of ray.io/v1 is, from its conditions where the operator
// writes them, and from the fields that KubeRay writes as well where it does not.
package state

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// State is how an object is.
type State struct {
	// Word is Ready, Degraded, Starting, Stalled, Suspended or Deleting, or the phase of a RayJob.
	Word string `json:"state"`
	// Since is when it became so, or zero when that is not known.
	Since metav1.Time `json:"since,omitzero"`
	// Message says more, in one line, or nothing.
	Message string `json:"message,omitempty"`
}

// Words for states.
const (
	Ready     = "Ready"
	Degraded  = "Degraded"
	Starting  = "Starting"
	Stalled   = "Stalled"
	Suspended = "Suspended"
	Deleting  = "Deleting"
)

// Good tells whether nothing has to be done.
func (s State) Good() bool {
	switch s.Word {
	case Ready, Suspended, string(rayv1.JobDeploymentStatusComplete), string(rayv1.JobDeploymentStatusRunning):
		return true
	default:
		return false
	}
}

// Of returns the state of an object.
func Of(object client.Object) State {
	if at := object.GetDeletionTimestamp(); at != nil {
		return State{Word: Deleting, Since: *at, Message: held(object)}
	}
	switch o := object.(type) {
	case *rayv1.RayCluster:
		return cluster(o)
	case *rayv1.RayJob:
		return job(o)
	case *rayv1.RayService:
		return service(o)
	case *rayv1.RayCronJob:
		return cronJob(o)
	default:
		return State{}
	}
}

func held(object client.Object) string {
	if len(object.GetFinalizers()) == 0 {
		return ""
	}
	return "held by " + strings.Join(object.GetFinalizers(), ", ")
}

// Conditions are those of an object of ray.io/v1.
func Conditions(object client.Object) []metav1.Condition {
	switch o := object.(type) {
	case *rayv1.RayCluster:
		return o.Status.Conditions
	case *rayv1.RayJob:
		return o.Status.Conditions
	case *rayv1.RayService:
		return o.Status.Conditions
	case *rayv1.RayCronJob:
		return o.Status.Conditions
	default:
		return nil
	}
}

// ObservedGeneration is the generation that the status speaks of, zero when that is not known.
func ObservedGeneration(object client.Object) int64 {
	switch o := object.(type) {
	case *rayv1.RayCluster:
		return o.Status.ObservedGeneration
	case *rayv1.RayJob:
		return o.Status.ObservedGeneration
	case *rayv1.RayService:
		return o.Status.ObservedGeneration
	case *rayv1.RayCronJob:
		return o.Status.ObservedGeneration
	default:
		return 0
	}
}

// True returns a condition that is True, or nil.
func True(conditions []metav1.Condition, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// from makes a state of a condition.
func from(word string, c *metav1.Condition) State {
	return State{Word: word, Since: c.LastTransitionTime, Message: strings.Join(strings.Fields(c.Message), " ")}
}

func cluster(o *rayv1.RayCluster) State {
	conditions := o.Status.Conditions
	if c := True(conditions, rayv1.ConditionRayClusterSuspended); c != nil {
		return from(Suspended, c)
	}
	if c := True(conditions, rayv1.ConditionStalled); c != nil {
		return from(Stalled, c)
	}
	ready := meta.FindStatusCondition(conditions, rayv1.ConditionReady)
	switch {
	case ready == nil && o.Status.State == rayv1.ClusterStateReady:
		return State{Word: Ready}
	case ready == nil && o.Status.State == rayv1.ClusterStateSuspended:
		return State{Word: Suspended}
	case ready == nil:
		return State{Word: Starting}
	case ready.Status == metav1.ConditionTrue:
		return from(Ready, ready)
	case True(conditions, rayv1.ConditionRayClusterProvisioned) != nil:
		return from(Degraded, ready)
	default:
		return from(Starting, ready)
	}
}

func job(o *rayv1.RayJob) State {
	s := State{Word: string(o.Status.JobDeploymentStatus), Message: o.Status.Message}
	if s.Word == "" {
		s.Word = Starting
	}
	if c := True(o.Status.Conditions, rayv1.ConditionStalled); c != nil && !rayv1.IsJobDeploymentTerminal(o.Status.JobDeploymentStatus) {
		s = from(s.Word, c)
	}
	if o.Status.Reason != "" {
		s.Message = strings.TrimSuffix(string(o.Status.Reason)+": "+s.Message, ": ")
	}
	if o.Status.EndTime != nil {
		s.Since = *o.Status.EndTime
	}
	return s
}

func service(o *rayv1.RayService) State {
	conditions := o.Status.Conditions
	if c := True(conditions, rayv1.ConditionRayServiceSuspended); c != nil {
		return from(Suspended, c)
	}
	ready := True(conditions, rayv1.ConditionRayServiceReady)
	stalled := True(conditions, rayv1.ConditionStalled)
	switch {
	case ready != nil && stalled != nil:
		return from(Degraded, stalled)
	case ready != nil:
		return from(Ready, ready)
	case stalled != nil:
		return from(Stalled, stalled)
	}
	if c := meta.FindStatusCondition(conditions, rayv1.ConditionRayServiceReady); c != nil {
		return from(Starting, c)
	}
	if o.Status.ServiceStatus == rayv1.ServiceStatusRunning {
		return State{Word: Ready}
	}
	return State{Word: Starting}
}

func cronJob(o *rayv1.RayCronJob) State {
	conditions := o.Status.Conditions
	if c := True(conditions, rayv1.ConditionStalled); c != nil {
		return from(Stalled, c)
	}
	if o.Spec.Suspend != nil && *o.Spec.Suspend {
		return State{Word: Suspended}
	}
	return State{Word: Ready}
}
