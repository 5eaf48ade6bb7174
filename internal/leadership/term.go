// Package leadership decides whether a write may leave this process.
//
// Replicas run hot: every replica watches, caches and plans, but only the one that holds a valid term lets an
// action out. Losing the lease ends the term and cancels the requests that are under way; the process stays, keeps
// its caches warm and stands for election again.
package leadership

import (
	"context"
	"errors"
	"time"
)

// ErrNoTerm is returned when a write is asked for while this process holds no valid term.
var ErrNoTerm = errors.New("this replica holds no valid term, so it may not write")

// Term is one unbroken time of holding the lease.
type Term struct {
	// Number is the count of hand-overs that the Lease has seen (leaseTransitions). It grows with every change of
	// the holder and restarts when the Lease object is deleted.
	Number int64
	// Deadline is the instant, on the monotonic clock, after which no write may start or still be under way unless
	// the lease is renewed first. The zero time means that the term has no end (election is switched off).
	Deadline time.Time
}

// Gate lets writes out while a term is valid.
type Gate interface {
	// Current returns the valid term, or false when there is none.
	Current() (Term, bool)
	// Enter admits one write. What was planned in another term, see Planned, is not admitted. The returned context ends when the caller's does, when the term's deadline passes or
	// when the term ends, whichever is first. The caller must call done when the write has returned. The error is
	// ErrNoTerm when no term is valid.
	Enter(ctx context.Context) (write context.Context, done func(), err error)
}

// Alone is the Gate of an operator that runs without an election: its term is always valid.
type Alone struct{}

// Current returns a term without an end.
func (Alone) Current() (Term, bool) { return Term{}, true }

// Enter admits every write.
func (Alone) Enter(ctx context.Context) (context.Context, func(), error) {
	return ctx, func() {}, nil
}
