package poll

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// metrics counts what the poller does. No label names an object, so the number of series does not grow with the cluster.
type metrics struct {
	total    *prometheus.CounterVec
	duration prometheus.Histogram
	targets  prometheus.Gauge
}

func newMetrics() metrics {
	return metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_dashboard_poll_total",
			Help: "Questions about one target put to a Ray dashboard, by result: answered, missing, timeout, unreachable, unauthorized, unexpected.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "heliostat_dashboard_poll_duration_seconds",
			Help:    "Time that a Ray dashboard took for one question, answered or not.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		}),
		targets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "heliostat_dashboard_targets",
			Help: "Targets about which Ray dashboards are asked.",
		}),
	}
}

// register makes the metrics known; a nil registerer leaves them private.
func (m metrics) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	for _, collector := range []prometheus.Collector{m.total, m.duration, m.targets} {
		if err := registerer.Register(collector); err != nil {
			return fmt.Errorf("registering the metrics of the dashboard poller: %w", err)
		}
	}
	return nil
}

func (m metrics) count(a answer, took time.Duration) {
	m.total.WithLabelValues(result(a)).Inc()
	m.duration.Observe(took.Seconds())
}

// result puts an answer into one of a few classes.
func result(a answer) string {
	var status *dashboard.StatusError
	switch {
	case a.err == nil && a.presence == Missing:
		return "missing"
	case a.err == nil:
		return "answered"
	case errors.Is(a.err, dashboard.ErrUnauthorized):
		return "unauthorized"
	case errors.Is(a.err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(a.err, dashboard.ErrNotRay):
		return "unreachable"
	case errors.As(a.err, &status), errors.Is(a.err, dashboard.ErrUnexpectedAnswer), errors.Is(a.err, errReplaced):
		return "unexpected"
	}
	return "unreachable"
}

// silent reports whether the error says that nothing at all can be had from the dashboard, for whichever target.
func silent(err error) bool {
	switch result(answer{err: err}) {
	case "unauthorized", "timeout", "unreachable":
		return true
	}
	return false
}
