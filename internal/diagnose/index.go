package diagnose

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// index is what many rules ask of a Snapshot again and again, found once.
type index struct {
	events   map[involved][]corev1.Event
	troubles map[*corev1.Pod]Finding
	heads    map[*rayv1.RayCluster]*corev1.Pod
	// again is the time until the first patience ends that a rule has had, or zero.
	again time.Duration
}

// lookAgain notes that a rule may find something else after a time.
func (s *Snapshot) lookAgain(after time.Duration) {
	if s.index != nil && after > 0 && (s.index.again == 0 || after < s.index.again) {
		s.index.again = after
	}
}

// involved is the object of an event.
type involved struct{ kind, name string }

// indexed is a copy of the Snapshot with an index. The Snapshot itself stays as it is, so that its owner may change it between two calls
// of Findings.
func (s *Snapshot) indexed() *Snapshot {
	found := &index{events: map[involved][]corev1.Event{}, troubles: map[*corev1.Pod]Finding{},
		heads: map[*rayv1.RayCluster]*corev1.Pod{}}
	for i := range s.Events {
		about := involved{s.Events[i].InvolvedObject.Kind, s.Events[i].InvolvedObject.Name}
		found.events[about] = append(found.events[about], s.Events[i])
	}
	indexed := *s
	indexed.index = found
	for _, pod := range s.Pods {
		found.troubles[pod] = podTroubleOf(&indexed, pod)
	}
	return &indexed
}

// trouble is what the rules about single Pods, by which the operator goes, too, say about a Pod.
func (s *Snapshot) trouble(pod *corev1.Pod) Finding {
	if s.index != nil {
		if finding, known := s.index.troubles[pod]; known {
			return finding
		}
	}
	return podTroubleOf(s, pod)
}

func podTroubleOf(s *Snapshot, pod *corev1.Pod) Finding {
	finding, again := Pod(PodFacts{Pod: pod, MountFailure: volumeFailure(s.eventsAbout("Pod", pod.Name)), Now: s.Now})
	s.lookAgain(again)
	return finding
}
