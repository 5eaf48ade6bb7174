package kube

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Duration is a span of time as kubectl prints it, for example 6m or 2h14m.
func Duration(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	return duration.HumanDuration(d)
}

// Age is the time since a moment as kubectl prints it.
func Age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return Duration(now.Sub(since.Time))
}
