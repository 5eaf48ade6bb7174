package diagnose

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons that kubelet and scheduler write into the status of Pods and that no package of the API names.
const (
	reasonCrashLoop       = "CrashLoopBackOff"
	reasonImagePull       = "ImagePullBackOff"
	reasonImagePullFirst  = "ErrImagePull"
	reasonOOMKilled       = "OOMKilled"
	reasonNodeLost        = "NodeLost"
	reasonNodeNotReady    = "NodeNotReady"
	reasonCreating        = "ContainerCreating"
	reasonPodInitializing = "PodInitializing"
)

func unschedulable(facts PodFacts) (reason, message string) {
	c := condition(facts.Pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable {
		return "", ""
	}
	return c.Reason, oneLine(c.Message)
}

func unschedulableForLong(facts PodFacts) (reason, message string) {
	reason, message = unschedulable(facts)
	if reason == "" || facts.Now.Sub(condition(facts.Pod, corev1.PodScheduled).LastTransitionTime.Time) < schedulingPatience {
		return "", ""
	}
	return reason, message
}

// volumeNotMounted looks at the event only while no container has started: events stay for an hour.
func volumeNotMounted(facts PodFacts) (reason, message string) {
	pod := facts.Pod
	if facts.MountFailure == "" || pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodPending {
		return "", ""
	}
	for _, c := range containersOf(pod) {
		if c.status.State.Waiting == nil || c.status.LastTerminationState.Terminated != nil {
			return "", ""
		}
	}
	return ReasonFailedMount, oneLine(facts.MountFailure)
}

// nodeLost recognizes a Pod that the node controller, and not the kubelet, marked as not ready: the kubelet never says
// that a Pod is not ready while its containers and gates are.
func nodeLost(facts PodFacts) (reason, message string) {
	pod := facts.Pod
	ready, containers := condition(pod, corev1.PodReady), condition(pod, corev1.ContainersReady)
	text := fmt.Sprintf("node %s does not answer", pod.Spec.NodeName)
	switch {
	case pod.Status.Reason == reasonNodeLost, pod.Status.Phase == corev1.PodUnknown,
		ready != nil && ready.Status != corev1.ConditionTrue && ready.Reason == reasonNodeLost:
		return reasonNodeLost, text
	case ready != nil && containers != nil && len(pod.Spec.ReadinessGates) == 0 &&
		ready.Status != corev1.ConditionTrue && containers.Status == corev1.ConditionTrue:
		return reasonNodeNotReady, text
	default:
		return "", ""
	}
}

// stuckTerminating relies on metadata.deletionTimestamp being the end of the grace period.
func stuckTerminating(facts PodFacts) (reason, message string) {
	pod := facts.Pod
	if facts.Now.Before(pod.DeletionTimestamp.Add(terminationPatience)) {
		return "", ""
	}
	message = "should have been gone at " + pod.DeletionTimestamp.UTC().Format(time.RFC3339)
	switch {
	case len(pod.Finalizers) > 0:
		message += "; finalizers hold it: " + strings.Join(pod.Finalizers, ", ")
	case pod.Spec.NodeName != "":
		message += fmt.Sprintf("; node %s does not say that its containers have ended", pod.Spec.NodeName)
	}
	return ReasonStuckTerminating, message
}

func podFailed(facts PodFacts) (reason, message string) {
	pod := facts.Pod
	if pod.Status.Phase != corev1.PodFailed {
		return "", ""
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason, oneLine(pod.Status.Message)
	}
	if c := condition(pod, corev1.DisruptionTarget); c != nil && c.Status == corev1.ConditionTrue {
		return c.Reason, oneLine(c.Message)
	}
	for _, c := range containersOf(pod) {
		if end := c.status.State.Terminated; end != nil && end.ExitCode != 0 {
			return endReason(end), c.says(endText(end))
		}
	}
	return "Failed", oneLine(pod.Status.Message)
}

func podSucceeded(facts PodFacts) (reason, message string) {
	if facts.Pod.Status.Phase != corev1.PodSucceeded {
		return "", ""
	}
	return "Completed", "all its containers have ended with exit code 0"
}
