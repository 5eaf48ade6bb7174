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
	// Number grows with every take-over: it is that of the Holder (see Fence). Where there is no Holder it is one more
	// than the hand-overs that the Lease has seen, and restarts when the Lease object is deleted.
	Number int64
	// Deadline is the instant, on the monotonic clock, after which no write may start or still be under way unless
	// the lease is renewed first. The zero time means that the term has no end (election is switched off).
	Deadline time.Time
	// serial tells the terms of this process apart.
	serial int64
}

type termKey struct{}

// Begin returns a context for one plan: with it, a Gate lets writes out only in the term that is valid now, so that a
// plan never outlives the term in which its facts were read. It returns false, and ctx as it is, when no term is valid.
func Begin(ctx context.Context, gate Gate) (context.Context, bool) {
	term, ok := gate.Current()
	if !ok {
		return ctx, false
	}
	return context.WithValue(ctx, termKey{}, term), true
}

// begunIn tells whether what ctx belongs to may go on in a term.
func begunIn(ctx context.Context, term Term) bool {
	begun, ok := ctx.Value(termKey{}).(Term)
	return !ok || begun.serial == term.serial
}

// Begun returns the number of the term that ctx has from Begin, or false when it has none. It is for Gates other than the
// Keeper.
func Begun(ctx context.Context) (number int64, ok bool) {
	begun, ok := ctx.Value(termKey{}).(Term)
	return begun.Number, ok
}

// Gate lets writes out while a term is valid.
type Gate interface {
	// Current returns the valid term, or false when there is none.
	Current() (Term, bool)
	// Enter admits one write. What was planned in another term, see Planned, is not admitted. The returned context ends when the caller's does, when the term's deadline passes or
	// when the term ends, whichever is first. The caller must call done when the write has returned. The error is
	// ErrNoTerm when no term is valid, or another one than the one that ctx has from Begin.
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
