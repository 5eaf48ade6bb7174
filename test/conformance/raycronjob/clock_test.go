package raycronjob

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// handClock is a clock that the test moves. Timers made from it go by the machine's time.
type handClock struct {
	clock.RealClock

	mu sync.Mutex
	at time.Time
	// runs is since when it runs by the machine's time; zero while it stands still.
	runs time.Time
}

// Now is the time that the clock shows.
func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs.IsZero() {
		return c.at
	}
	return c.at.Add(time.Since(c.runs))
}

// Since is how long a moment is ago by this clock.
func (c *handClock) Since(moment time.Time) time.Duration { return c.Now().Sub(moment) }

// set moves the clock, which then stands still or runs on.
func (c *handClock) set(at time.Time, runs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.runs = at, time.Time{}
	if runs {
		c.runs = time.Now()
	}
}
