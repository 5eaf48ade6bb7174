package metrics

import "github.com/prometheus/client_golang/prometheus"

// Events counts what users were told by events, which Kubernetes keeps for an hour only and which nobody can alert on.
type Events struct {
	*prometheus.CounterVec
}

// NewEvents returns a counter of events. Those that somebody should be woken for are there from the start, because the first
// one would not be seen as an increase otherwise.
func NewEvents() Events {
	e := Events{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "heliostat_events_total",
		Help: "Events told to users, by the kind of object that they are about, their reason and their type.",
	}, []string{"kind", "reason", "type"})}
	for _, reason := range []string{"FailedToStopRayJob", "JobLost", "NoDeletionRuleMatches"} {
		e.WithLabelValues("RayJob", reason, "Warning")
	}
	for _, reason := range []string{"ActorsLost", "JobsLost", "ForceDeletedStuckCluster", "LossUnknown", "RedisCleanupFailed"} {
		e.WithLabelValues("RayCluster", reason, "Warning")
	}
	return e
}

// Count counts one event.
func (e Events) Count(kind, reason, eventType string) {
	e.WithLabelValues(kind, reason, eventType).Inc()
}
