package diagnose

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons for which Kubernetes has no word of its own.
const (
	// ReasonStuckTerminating means that a Pod is still there although its grace period is over.
	ReasonStuckTerminating = "StuckTerminating"
)

const (
	// schedulingPatience is how long a Pod may be unschedulable before that counts as blocking: where nodes are added
	// on demand, every Pod that needs a new one is unschedulable for some minutes.
	schedulingPatience = 5 * time.Minute
	// terminationPatience is what the kubelet gets beyond the grace period to report that a Pod is gone.
	terminationPatience = 15 * time.Second
	// settledAfter is how long a container must run for its last end not to count any more, as in the kubelet's back-off.
	settledAfter = 10 * time.Minute
)

// PodFacts are what is known about a Pod.
type PodFacts struct {
	Pod *corev1.Pod
	// MountFailure is the text of the last event FailedMount about the Pod, or empty.
	MountFailure string
	Now          time.Time
}

// stage is the part of its life that a Pod is in. Each rule is about one of them.
type stage int

const (
	living stage = iota
	ended
	terminating
)

func stageOf(pod *corev1.Pod) stage {
	switch {
	case pod.DeletionTimestamp != nil:
		return terminating
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return ended
	default:
		return living
	}
}

// rule recognizes one kind of trouble. Its test returns no reason where there is none.
type rule struct {
	stage    stage
	severity Severity
	test     func(PodFacts) (reason, message string)
}

// podRules are all rules about Pods, worst first. A Pod that is young, waits for its turn or pulls its image is in no
// trouble.
func podRules() []rule {
	return []rule{
		{living, Blocking, imageTrouble},
		{living, Blocking, containerTrouble},
		{living, Blocking, restartsInVain},
		{living, Blocking, sidecarEndedForGood},
		{living, Blocking, unschedulableForLong},
		{terminating, Passing, stuckTerminating},
		{living, Passing, nodeLost},
		{living, Passing, containerEnded},
		{living, Passing, unschedulable},
		{living, Passing, volumeNotMounted},
		{ended, Passing, podFailed},
		{ended, Passing, podSucceeded},
	}
}

// Pod returns the worst finding about a Pod, and the time after which the answer may be another one although nothing
// changes, or zero.
func Pod(facts PodFacts) (Finding, time.Duration) {
	now := stageOf(facts.Pod)
	for rank, rule := range podRules() {
		if rule.stage != now {
			continue
		}
		if reason, message := rule.test(facts); reason != "" {
			return Finding{
				Severity: rule.severity, Reason: reason, Object: "Pod " + facts.Pod.Name, Message: message, rank: rank,
			}, recheck(facts)
		}
	}
	return Finding{}, recheck(facts)
}

// recheck is the time until the first of the patiences above ends.
func recheck(facts PodFacts) time.Duration {
	var moments []time.Time
	pod := facts.Pod
	switch scheduled := condition(pod, corev1.PodScheduled); {
	case pod.DeletionTimestamp != nil:
		moments = append(moments, pod.DeletionTimestamp.Add(terminationPatience))
	case scheduled != nil && scheduled.Reason == corev1.PodReasonUnschedulable:
		moments = append(moments, scheduled.LastTransitionTime.Add(schedulingPatience))
	default:
		for _, c := range containersOf(pod) {
			if c.status.State.Running != nil && !c.status.Ready && c.status.LastTerminationState.Terminated != nil {
				moments = append(moments, c.status.State.Running.StartedAt.Add(settledAfter))
			}
		}
	}
	next := time.Duration(0)
	for _, moment := range moments {
		if left := moment.Sub(facts.Now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}
