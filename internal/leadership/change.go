package leadership

import "sync"

// Change tells when a process leads in another term than before, so that what it remembers of an earlier one can be
// dropped: another leader may have acted in between. The zero value is ready for use.
type Change struct {
	mu    sync.Mutex
	known bool
	term  int64
}

// Seen takes in the present term and tells whether it is another one than the last time. It is false the first time.
func (c *Change) Seen(term Term) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.known && c.term != term.Number
	c.known, c.term = true, term.Number
	return changed
}
