package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMountFailure(t *testing.T) {
	event := func(since time.Duration, message string) corev1.Event {
		return corev1.Event{Reason: "FailedMount", Message: message, LastTimestamp: ago(since)}
	}
	const cause, whole = `MountVolume.SetUp failed for volume "a"`, "Unable to attach or mount volumes: unmounted volumes=[a]"
	for name, tc := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"no event": {},
		"the cause counts more than the whole, whichever is newer": {events: []corev1.Event{event(0, whole), event(time.Minute, cause)}, want: cause},
		"what was solved since does not count":                     {events: []corev1.Event{event(time.Hour, cause), event(0, whole)}, want: whole},
		"events with a series count from its last one": {events: []corev1.Event{
			{Reason: "FailedMount", Message: cause, EventTime: metav1.NewMicroTime(now.Add(-time.Hour)),
				Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(now)}},
			event(time.Minute, whole)}, want: cause},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MountFailure(tc.events); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
