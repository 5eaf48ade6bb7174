package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

// trouble is the worst finding about the Pods of one group.
type trouble struct {
	group string
	diagnose.Finding
	// others is how many more Pods of the group have a finding of the same reason.
	others int
}

func (t trouble) String() string {
	text := "group " + t.group
	if t.group == rayv1.HeadGroupName {
		text = "head"
	}
	for _, part := range []string{t.Object, t.Reason, t.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	switch t.others {
	case 0:
		return text
	case 1:
		return text + " (and 1 more Pod)"
	default:
		return fmt.Sprintf("%s (and %d more Pods)", text, t.others)
	}
}

// troubles are the worst findings of the groups that have any, worst first. It asks to look again when one of them
// changes with time alone.
func (p *planner) troubles() []trouble {
	findings := map[string][]diagnose.Finding{}
	for _, pod := range p.snapshot.Pods {
		finding, again := diagnose.Pod(diagnose.PodFacts{Pod: pod, MountFailure: p.snapshot.MountFailures[pod.UID], Now: p.now})
		p.again(again)
		if finding.Found() {
			findings[groupOf(pod)] = append(findings[groupOf(pod)], finding)
		}
	}
	for key, hold := range p.snapshot.Holds {
		// Writes without a group are deletes, and say nothing about Pods that are wanted.
		if reason := failureReason(hold.Reason); reason != "" && key != "" && !hold.Collision {
			findings[key] = append(findings[key], diagnose.Refused(reason, hold.Message))
		}
	}
	troubles := make([]trouble, 0, len(findings))
	for _, group := range slices.SortedFunc(maps.Keys(findings), headFirst) {
		worst := slices.MinFunc(findings[group], diagnose.Compare)
		others := -1
		for _, finding := range findings[group] {
			if finding.Reason == worst.Reason {
				others++
			}
		}
		troubles = append(troubles, trouble{group: group, Finding: worst, others: others})
	}
	slices.SortStableFunc(troubles, func(a, b trouble) int { return diagnose.CompareTrouble(a.Finding, b.Finding) })
	return troubles
}

// blocks tells whether the cluster cannot go on while the trouble lasts. A Pod that is stuck terminating blocks only
// where nothing can be made beside it: the head, and a cluster that must be empty before it is suspended.
func (p *planner) blocks(t trouble) bool {
	if t.Reason == diagnose.ReasonStuckTerminating {
		return t.group == rayv1.HeadGroupName || p.suspend == suspending
	}
	return t.Severity == diagnose.Blocking
}

// podsHealthy lifts the worst trouble of each group into one condition.
func podsHealthy(troubles []trouble) metav1.Condition {
	if len(troubles) == 0 {
		return metav1.Condition{Type: rayv1.ConditionPodsHealthy, Status: metav1.ConditionTrue, Reason: rayv1.ReasonNoTrouble}
	}
	lines := make([]string, 0, len(troubles))
	for _, t := range troubles {
		lines = append(lines, t.String())
	}
	return metav1.Condition{Type: rayv1.ConditionPodsHealthy, Status: metav1.ConditionFalse,
		Reason: troubles[0].Reason, Message: strings.Join(lines, "\n")}
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
