package leadership

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell who leads, how long a take-over took, and what was refused. A replica that does not lead shows no term.
type Metrics struct {
	term     prometheus.Gauge
	takeOver prometheus.Gauge
	unfenced *prometheus.GaugeVec
	refused  *prometheus.CounterVec
}

// The two that refuse a write.
const (
	byTerm  = "term"
	byFence = "fence"
)

// NewMetrics returns the metrics of one replica.
func NewMetrics() *Metrics {
	m := &Metrics{
		term: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "heliostat_leader_term",
			Help: "Number of the term that this replica holds, 0 when it does not lead.",
		}),
		takeOver: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "heliostat_leader_takeover_seconds",
			Help: "Time from winning the lease to the first write that was let out, in the last term of this replica.",
		}),
		unfenced: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_leader_unfenced",
			Help: "1 while this replica leads without the fence in the API server, by reason: Off, NotInPod, KindMissing, NoRights, PolicyMissing.",
		}, []string{"reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_leader_refused_writes_total",
			Help: "Writes of this replica that were refused because it does not lead: by the API server (fence), or before they were sent (term).",
		}, []string{"by"}),
	}
	m.refused.WithLabelValues(byTerm)
	m.refused.WithLabelValues(byFence)
	return m
}

// Register makes the metrics known.
func (m *Metrics) Register(registerer prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{m.term, m.takeOver, m.unfenced, m.refused} {
		if err := registerer.Register(collector); err != nil {
			return fmt.Errorf("register the metrics of leadership: %w", err)
		}
	}
	return nil
}

func (m *Metrics) began(standing Standing, seconds float64) {
	m.term.Set(float64(standing.Term))
	m.takeOver.Set(seconds)
	m.unfenced.Reset()
	if !standing.Fenced {
		m.unfenced.WithLabelValues(standing.Reason).Set(1)
	}
}

func (m *Metrics) ended() {
	m.term.Set(0)
	m.unfenced.Reset()
}

func (m *Metrics) refusedBy(what string) { m.refused.WithLabelValues(what).Inc() }
