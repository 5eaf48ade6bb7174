package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/internal/ray"
)

// maxText bounds what is kept of a text that a container wrote, in bytes. The end of it tells most.
const maxText = 300

// container is the status of one container, init containers included.
type container struct {
	status corev1.ContainerStatus
	init   bool
}

func containersOf(pod *corev1.Pod) []container {
	all := make([]container, 0, len(pod.Status.InitContainerStatuses)+len(pod.Status.ContainerStatuses))
	for _, s := range pod.Status.InitContainerStatuses {
		all = append(all, container{status: s, init: true})
	}
	for _, s := range pod.Status.ContainerStatuses {
		if !submitterDone(pod, s) {
			all = append(all, container{status: s})
		}
	}
	return all
}

// submitterDone tells whether the container is one that submitted a RayJob from beside Ray and has ended, as it is meant
// to. How its job ended is told by the RayJob.
func submitterDone(pod *corev1.Pod, s corev1.ContainerStatus) bool {
	return s.Name == ray.SubmitterContainer && s.State.Terminated != nil &&
		len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Name != s.Name
}

func (c container) says(text string) string {
	kind := "container "
	if c.init {
		kind = "init container "
	}
	return strings.TrimSuffix(kind+c.status.Name+": "+oneLine(text), ": ")
}

func (c container) waitsFor() string {
	if c.status.State.Waiting == nil {
		return ""
	}
	return c.status.State.Waiting.Reason
}

// lastEnd is how the container ended last, if it has not worked since. Init containers are meant to end well.
func (c container) lastEnd(now time.Time) *corev1.ContainerStateTerminated {
	end := c.status.State.Terminated
	if end == nil {
		end = c.status.LastTerminationState.Terminated
		if running := c.status.State.Running; running != nil && now.Sub(running.StartedAt.Time) >= settledAfter {
			return nil
		}
		if c.status.Ready {
			return nil
		}
	}
	if end == nil || c.init && end.ExitCode == 0 {
		return nil
	}
	return end
}

func imageTrouble(facts PodFacts) (reason, message string) {
	for _, c := range containersOf(facts.Pod) {
		switch why := c.waitsFor(); why {
		case reasonImagePull, reasonImagePullFirst:
			// The two alternate while the kubelet keeps trying, so they are one reason.
			return reasonImagePull, c.says(imageText(c.status))
		case "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return why, c.says(imageText(c.status))
		}
	}
	return "", ""
}

func imageText(s corev1.ContainerStatus) string {
	if s.State.Waiting.Message == "" {
		return fmt.Sprintf("image %q", s.Image)
	}
	return s.State.Waiting.Message
}

// containerTrouble takes every other reason for which the kubelet does not start a container.
func containerTrouble(facts PodFacts) (reason, message string) {
	harmless := []string{"", reasonCreating, reasonPodInitializing, reasonCrashLoop}
	for _, c := range containersOf(facts.Pod) {
		if why := c.waitsFor(); !slices.Contains(harmless, why) {
			return why, c.says(c.status.State.Waiting.Message)
		}
	}
	return "", ""
}

// restartsInVain recognizes a container that ends again and again, in every phase of that: waiting, running for a
// moment, just ended.
func restartsInVain(facts PodFacts) (reason, message string) {
	for _, c := range containersOf(facts.Pod) {
		end := c.lastEnd(facts.Now)
		waits := c.waitsFor() == reasonCrashLoop
		switch {
		case end == nil && waits:
			return reasonCrashLoop, c.says("")
		case end == nil, !waits && c.status.RestartCount < 2:
			continue
		case end.Reason == reasonOOMKilled:
			return reasonOOMKilled, c.says(endText(end))
		default:
			return reasonCrashLoop, c.says(endText(end))
		}
	}
	return "", ""
}

// sidecarEndedForGood recognizes a container beside Ray that nobody starts again. When Ray's own container ends in such a
// Pod, the Pod is replaced.
func sidecarEndedForGood(facts PodFacts) (reason, message string) {
	pod := facts.Pod
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || len(pod.Spec.Containers) == 0 {
		return "", ""
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == pod.Spec.Containers[0].Name || s.State.Terminated == nil || submitterDone(pod, s) {
			continue
		}
		text := endText(s.State.Terminated) + "; with restartPolicy Never nothing starts it again before the Pod is replaced"
		return endReason(s.State.Terminated), container{status: s}.says(text)
	}
	return "", ""
}

func containerEnded(facts PodFacts) (reason, message string) {
	for _, c := range containersOf(facts.Pod) {
		if end := c.lastEnd(facts.Now); end != nil {
			return endReason(end), c.says(endText(end))
		}
	}
	return "", ""
}

func endReason(end *corev1.ContainerStateTerminated) string {
	switch {
	case end.Reason != "":
		return end.Reason
	case end.ExitCode == 0:
		return "Completed"
	default:
		return "Error"
	}
}

func endText(end *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", end.ExitCode)
	if said := oneLine(end.Message); said != "" {
		if len(said) > maxText {
			said = "..." + strings.ToValidUTF8(said[len(said)-maxText:], "")
		}
		text += ": " + said
	}
	return text
}

// oneLine puts text on one line, because a message has one line for each finding.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
