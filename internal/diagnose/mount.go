package diagnose

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ReasonFailedMount is the reason of the events in which the kubelet tells that a volume cannot be mounted.
const ReasonFailedMount = "FailedMount"

// mountRetries is longer than the kubelet's longest wait between two tries to mount a volume.
const mountRetries = 5 * time.Minute

// MountFailure returns the text of the events of that reason about one Pod. The kubelet sends several that take turns,
// one for each volume and one for the whole; of those that were sent lately it is always the same one that counts, so
// that the answer does not change with every try.
func MountFailure(events []corev1.Event) string { return lastingText(events, ReasonFailedMount) }

// reasonFailedAttach is the reason of the events in which the attach-detach controller tells that a volume cannot be attached to a node.
const reasonFailedAttach = "FailedAttachVolume"

// volumeFailure is why a volume of a Pod is not there. That it cannot be attached is the reason why it cannot be mounted.
func volumeFailure(events []corev1.Event) string {
	return cmp.Or(lastingText(events, reasonFailedAttach), MountFailure(events))
}

// lastingText is the text of the events of one reason that were sent lately, by the last event of any reason.
func lastingText(events []corev1.Event, reason string) string {
	var newest time.Time
	for i := range events {
		if at := lastSeen(&events[i]); at.After(newest) {
			newest = at
		}
	}
	text := ""
	for i := range events {
		event := &events[i]
		if event.Reason != reason || newest.Sub(lastSeen(event)) > mountRetries {
			continue
		}
		// "MountVolume..." names the cause and sorts before "Unable to attach or mount volumes".
		if text == "" || event.Message < text {
			text = event.Message
		}
	}
	return text
}

func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	default:
		return event.EventTime.Time
	}
}
