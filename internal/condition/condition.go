// Package condition puts conditions into a status in the one way that all kinds share.
package condition

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/excerpt"
)

// MaxMessage keeps messages of conditions readable and far below the schema's limit, in bytes.
const MaxMessage = 2048

// Set puts a condition into the list and tells whether it is new or says something else than before: another status,
// reason or message. The generation is that of the object whose spec the condition was judged by. The time, cut to the
// second as the API server stores it, becomes the transition time if the status is new or another than before. A message
// longer than MaxMessage loses its end.
func Set(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) bool {
	c.ObservedGeneration = generation
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	c.Message = excerpt.Beginning(c.Message, MaxMessage)
	before := meta.FindStatusCondition(*conditions, c.Type)
	changed := before == nil || before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message
	meta.SetStatusCondition(conditions, c)
	return changed
}

// Status is True or False.
func Status(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Restore makes the conditions of these types what they were before, which may be that they were not there.
func Restore(conditions *[]metav1.Condition, before []metav1.Condition, types ...string) {
	for _, kind := range types {
		was := meta.FindStatusCondition(before, kind)
		is := meta.FindStatusCondition(*conditions, kind)
		switch {
		case was == nil:
			meta.RemoveStatusCondition(conditions, kind)
		case is == nil:
			*conditions = append(*conditions, *was)
		default:
			*is = *was
		}
	}
}

// NoLongerStalled returns the message of the condition Stalled if it was true, of the same generation, and is no more.
func NoLongerStalled(conditions, before []metav1.Condition) string {
	was, is := meta.FindStatusCondition(before, rayv1.ConditionStalled), meta.FindStatusCondition(conditions, rayv1.ConditionStalled)
	if was == nil || is == nil || was.Status != metav1.ConditionTrue || is.Status == metav1.ConditionTrue || was.ObservedGeneration != is.ObservedGeneration {
		return ""
	}
	return cmp.Or(was.Message, was.Reason)
}
