package raycluster

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// mergeWindow is how long changes of numbers and texts are collected after a write of the status. A thousand Pods
	// that become ready one by one would otherwise cost a thousand writes.
	mergeWindow = 2 * time.Second
	// timeGrain is the precision with which the API keeps the time of the last write.
	timeGrain = time.Second
)

// mergeFor is how long a changed status may wait for further changes, or zero when it is to be written now.
func mergeFor(before, after *rayv1.RayClusterStatus, now time.Time) time.Duration {
	if before.LastUpdateTime == nil || urgent(before, after) {
		return 0
	}
	left := before.LastUpdateTime.Add(timeGrain + mergeWindow).Sub(now)
	if left > timeGrain+mergeWindow {
		return 0 // another operator's clock is ahead of ours
	}
	return max(left, 0)
}

// urgent tells whether a change is more than one of numbers, texts and places.
func urgent(before, after *rayv1.RayClusterStatus) bool {
	return before.State != after.State ||
		before.Reason != after.Reason ||
		before.ObservedGeneration != after.ObservedGeneration ||
		!maps.Equal(before.Incarnations, after.Incarnations) ||
		!slices.Equal(stages(before.Recoveries), stages(after.Recoveries)) ||
		leaves(before.LastCensus, after.LastCensus) ||
		!equality.Semantic.DeepEqual(before.RedisStorages, after.RedisStorages) ||
		!maps.Equal(verdicts(before.Conditions), verdicts(after.Conditions))
}

// verdicts are the conditions without texts and times. HeadPodReady is left out: it is copied from the Pod, which goes
// through several reasons while it simply starts, and is ready a moment before or after its workers. When the head falls,
// other conditions say so.
func verdicts(conditions []metav1.Condition) map[string]metav1.Condition {
	plain := make(map[string]metav1.Condition, len(conditions))
	for _, c := range conditions {
		if c.Type != rayv1.ConditionHeadPodReady {
			plain[c.Type] = metav1.Condition{Status: c.Status, Reason: c.Reason, ObservedGeneration: c.ObservedGeneration}
		}
	}
	return plain
}
