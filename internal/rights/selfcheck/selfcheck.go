// Package selfcheck has the operator find out for itself which of its rights are missing, before a user does.
package selfcheck

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/heliostat-io/heliostat/internal/rights"
)

const (
	// askedAtOnce is how many questions are under way at once.
	askedAtOnce = 4
	// firstPause is how long after an answer that was no, or no answer, the next look is; each pause is twice as long, up to the longest.
	firstPause, longestPause = 5 * time.Second, time.Minute
	// betweenRounds is how long after a round through all rights another one may begin, whatever was refused.
	betweenRounds = time.Minute
)

// Options are what a Checker needs.
type Options struct {
	// Needed are the rights that the operator needs.
	Needed []rights.Right
	// May asks the API server whether this process has a right.
	May rights.May
	// Tell is called when rights are found missing that were not known to be. It may be nil.
	Tell  func(missing []rights.Right)
	Clock clock.WithTicker
	Log   logr.Logger
}

// Checker asks for all rights at its start and after a write was refused, and for those that are missing until they are granted.
// It needs no term: a replica that stands by has the same rights as the one that leads.
type Checker struct {
	options   Options
	suspected chan struct{}
	series    *prometheus.GaugeVec
	missing   map[rights.Right]bool
}

// New returns a Checker that does nothing before Run.
func New(options Options) *Checker {
	return &Checker{options: options, suspected: make(chan struct{}, 1), missing: map[rights.Right]bool{}, series: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "heliostat_missing_rights",
		Help: "1 for each right that the operator needs and does not have, as the API server says when it is asked.",
	}, []string{"verb", "group", "resource", "namespace"})}
}

// Describe and Collect serve the series heliostat_missing_rights.
func (c *Checker) Describe(to chan<- *prometheus.Desc) { c.series.Describe(to) }

// Collect implements prometheus.Collector.
func (c *Checker) Collect(to chan<- prometheus.Metric) { c.series.Collect(to) }

// Suspect says that the API server has refused something for want of a right. It returns at once.
func (c *Checker) Suspect() {
	select {
	case c.suspected <- struct{}{}:
	default:
	}
}

// Run looks until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	open, pause, round := c.options.Needed, firstPause, c.options.Clock.Now()
	for ctx.Err() == nil {
		answers, err := rights.Ask(ctx, open, askedAtOnce, c.options.May)
		if ctx.Err() != nil {
			return
		}
		changed := c.take(open, answers)
		open = slices.DeleteFunc(slices.Clone(open), func(r rights.Right) bool { return answers[r] })
		if err != nil {
			c.options.Log.Info("The operator does not know whether it has all rights that it needs", "open", len(open), "error", err.Error())
		}
		if changed {
			pause = firstPause
		}
		var again <-chan time.Time
		if len(open) > 0 {
			again = c.options.Clock.After(pause)
			pause = min(2*pause, longestPause)
		}
		if c.rest(ctx, again, round.Add(betweenRounds)) {
			open, round = c.options.Needed, c.options.Clock.Now()
		}
	}
}

// rest waits until what is open is to be asked again, or tells that all is: something was refused, and the last round is long ago.
func (c *Checker) rest(ctx context.Context, again <-chan time.Time, earliest time.Time) bool {
	var suspected <-chan struct{}
	calm := c.options.Clock.After(earliest.Sub(c.options.Clock.Now()))
	for {
		select {
		case <-ctx.Done():
			return false
		case <-again:
			return false
		case <-calm:
			suspected = c.suspected
		case <-suspected:
			return true
		}
	}
}

// take takes answers in, and tells whether any is another one than before.
func (c *Checker) take(asked []rights.Right, answers map[rights.Right]bool) bool {
	lost, granted := 0, 0
	for _, right := range asked {
		allowed, answered := answers[right]
		if !answered || allowed == !c.missing[right] {
			continue
		}
		log := c.options.Log.WithValues("verb", right.Verb, "group", right.Group, "resource", right.Resource, "namespace", right.Namespace)
		if allowed {
			granted++
			delete(c.missing, right)
			c.series.DeleteLabelValues(labels(right)...)
			log.Info("The operator has a right that was missing")
			continue
		}
		lost++
		c.missing[right] = true
		c.series.WithLabelValues(labels(right)...).Set(1)
		log.Error(nil, "The operator lacks a right", "right", right.String(), "next", "allow it in "+right.Role())
	}
	if lost > 0 && c.options.Tell != nil {
		c.options.Tell(slices.DeleteFunc(slices.Clone(c.options.Needed), func(r rights.Right) bool { return !c.missing[r] }))
	}
	return lost+granted > 0
}

func labels(r rights.Right) []string { return []string{r.Verb, r.Group, r.Resource, r.Namespace} }
