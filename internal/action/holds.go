package action

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

const (
	firstHold = time.Second
	longHold  = time.Minute
	soon      = 100 * time.Millisecond

	// staleAfter is far beyond any time that a living owner leaves a due retry alone.
	staleAfter = 10 * time.Minute
)

// Hold says that writes of one key are not tried again before a moment, and why.
type Hold struct {
	// Reason is the reason of the failure's event, for example FailedToCreateWorkerPod.
	Reason string
	// Message is the API server's own text, and what has to be done where that is a right to be granted.
	Message string
	// Collision tells that something of someone else stands under the wanted name.
	Collision bool
	// NamespaceEnds tells that the namespace is being deleted, so nothing can be made in it any more.
	NamespaceEnds bool
	// Count is how many passes in a row failed.
	Count int
	// Until is when the next try is due.
	Until time.Time
}

// Holds remembers which writes failed lately, so that a refused create backs off for its own group only. What it
// knows is lost with the process, which costs one more refused try and nothing else.
type Holds struct {
	mu      sync.Mutex
	byOwner map[types.UID]map[string]Hold
}

// NewHolds returns an empty memory.
func NewHolds() *Holds {
	return &Holds{byOwner: map[types.UID]map[string]Hold{}}
}

// Of returns a copy of what is held back for owner, by key.
func (h *Holds) Of(owner types.UID) map[string]Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := make(map[string]Hold, len(h.byOwner[owner]))
	for key, hold := range h.byOwner[owner] {
		held[key] = hold
	}
	return held
}

// Record takes in what became of a plan: keys that failed wait longer each time, from one second up to a minute;
// keys whose actions were all done are free again. It returns the time until the first retry is due, or zero.
func (h *Holds) Record(owner types.UID, plan Plan, result Result, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropStale(now)
	held := h.byOwner[owner]
	failed := map[string]Failure{}
	next := time.Duration(0)
	for _, f := range result.Failures {
		switch {
		case errors.Is(f.Err, errChanged):
			next = soon
		case !passing(f.Err):
			failed[f.Action.Key()] = f
		}
	}
	for key, hold := range held {
		tried := slices.ContainsFunc(plan.Actions, func(a Action) bool { return a.Key() == key })
		over := !now.Before(hold.Until)
		if _, bad := failed[key]; !bad && (tried || over) {
			delete(held, key)
			next = soon // so that the status stops speaking of it
		}
	}
	for key, f := range failed {
		if held == nil {
			held = map[string]Hold{}
		}
		count := held[key].Count + 1
		wait := min(firstHold<<min(count-1, 10), longHold)
		reason := ""
		if failure := f.Action.failure(); failure != nil {
			reason = failure.Reason
		}
		held[key] = Hold{Reason: reason, Message: messageOf(f), Collision: errors.Is(f.Err, ErrCollision),
			NamespaceEnds: apierrors.HasStatusCause(f.Err, corev1.NamespaceTerminatingCause), Count: count, Until: now.Add(wait)}
		next = Soonest(next, wait)
	}
	if len(held) == 0 {
		delete(h.byOwner, owner)
	} else {
		h.byOwner[owner] = held
	}
	return next
}

// Told returns the keys of writes whose failure was told when it was new, as Plan.Known wants them. Writes without a key, such
// as deletes, are never among them: the one that fails now may be another one than the one that failed before.
func Told(holds map[string]Hold) map[string]bool {
	keys := make(map[string]bool, len(holds))
	for key := range holds {
		if key != "" {
			keys[key] = true
		}
	}
	return keys
}

// dropStale drops what nobody has tried for long: its owner is gone.
func (h *Holds) dropStale(now time.Time) {
	for owner, held := range h.byOwner {
		for key, hold := range held {
			if now.Sub(hold.Until) > staleAfter {
				delete(held, key)
			}
		}
		if len(held) == 0 {
			delete(h.byOwner, owner)
		}
	}
}

// Forget drops what is known about an owner that is gone.
func (h *Holds) Forget(owner types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byOwner, owner)
}

// messageOf is the text of a failure, and of a missing right also who must grant it. The names of Pods are shortened to what all
// lives of their slots have in common, so that the text of the next try is the same. It may name another Pod of the group than
// its own: when one is refused, the rest of them is not tried.
func messageOf(f Failure) string {
	text := f.Err.Error()
	if right, lacks := lacking(f.Err); lacks {
		text += mustAllow(right)
	}
	create, isCreate := f.Action.(Create)
	if !isCreate {
		return text
	}
	name := create.Object.GetName()
	cut := strings.LastIndexByte(name, '-')
	if cut <= 0 {
		return text
	}
	lives := regexp.MustCompile(`\b` + regexp.QuoteMeta(name[:cut]) + `-[a-z0-9]+\b`)
	return lives.ReplaceAllString(text, name[:cut]+"-...")
}

// ForgetAll drops everything: what was refused in an earlier term says nothing about this one.
func (h *Holds) ForgetAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.byOwner)
}
