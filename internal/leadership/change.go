package leadership

import (
	"sync"
	"time"
)

// Change tells when a process leads in another term than before, so that what it remembers of an earlier one can be
// dropped: another leader may have acted in between. The zero value is ready for use.
type Change struct {
	mu    sync.Mutex
	known bool
	term  int64
	since time.Time
}

// Seen looks at the present term of a gate. It tells whether that is another one than the last time, which it is not the first
// time, and since when it is known, by the clock that now is from.
func (c *Change) Seen(gate Gate, now time.Time) (changed bool, since time.Time) {
	term, _ := gate.Current()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && c.term == term.Number {
		return false, c.since
	}
	changed = c.known
	c.known, c.term, c.since = true, term.Number, now
	return changed, now
}
