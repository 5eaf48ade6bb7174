package action

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// unseenLimit is how long an object may take to show up in the cache before the API server is asked whether it is
	// still there.
	unseenLimit = 30 * time.Second
	// abandonedLimit is far beyond any time for which a living owner does not ask after its objects.
	abandonedLimit = 10 * time.Minute
)

// Made remembers created objects until the caches show them. It stands in for read-your-writes where the client cannot
// do that: for every create when several single namespaces are watched, and everywhere for a create whose answer was lost.
type Made struct {
	clock clock.PassiveClock
	// doubtful limits the memory to creates whose answer was lost.
	doubtful bool

	mu     sync.Mutex
	unseen map[types.UID]map[types.UID]unseen // by owner and object
}

// unseen is an object that no cache has shown yet.
type unseen struct {
	object client.Object
	// since is when it was made, or when the API server last said that it is there.
	since time.Time
}

// NewMade returns an empty memory.
func NewMade(clock clock.PassiveClock) *Made {
	return &Made{clock: clock, unseen: map[types.UID]map[types.UID]unseen{}}
}

// NewDoubtful returns an empty memory for a client that reads its own writes, as far as it knows of them: a create that
// was carried out although it ended in an error is none that it waits for.
func NewDoubtful(clock clock.PassiveClock) *Made {
	made := NewMade(clock)
	made.doubtful = true
	return made
}

// add takes in an object whose create was answered.
func (m *Made) add(object client.Object) {
	if m != nil && !m.doubtful {
		m.found(object)
	}
}

// found takes in an object of ours that stood there after a create whose answer was lost.
func (m *Made) found(object client.Object) {
	owner := metav1.GetControllerOf(object)
	if m == nil || owner == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropAbandoned()
	if m.unseen[owner.UID] == nil {
		m.unseen[owner.UID] = map[types.UID]unseen{}
	}
	m.unseen[owner.UID][object.GetUID()] = unseen{object: object, since: m.clock.Now()}
}

// dropAbandoned drops what nobody asks after: not every owner does, and some are gone.
func (m *Made) dropAbandoned() {
	for owner, objects := range m.unseen {
		for uid, u := range objects {
			if m.clock.Since(u.since) > abandonedLimit {
				delete(objects, uid)
			}
		}
		if len(objects) == 0 {
			delete(m.unseen, owner)
		}
	}
}

// allSeen drops what is shown, tells whether anything is left, and what of that is overdue.
func (m *Made) allSeen(owner types.UID, shown []types.UID) (all bool, overdue []client.Object) {
	if m == nil {
		return true, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, u := range m.unseen[owner] {
		switch {
		case slices.Contains(shown, uid):
			delete(m.unseen[owner], uid)
		case m.clock.Since(u.since) > unseenLimit:
			overdue = append(overdue, u.object)
		}
	}
	if len(m.unseen[owner]) > 0 {
		return false, overdue
	}
	delete(m.unseen, owner)
	return true, nil
}

// gone drops an object that was deleted before any cache showed it.
func (m *Made) gone(owner, object types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unseen[owner], object)
}

// AllSeen tells whether everything that was created for the owner is among the objects that the caches showed, or is gone
// meanwhile. A plan made while it is not would make things twice. Of objects that do not show up for long, the API server
// is asked.
func (e *Executor) AllSeen(ctx context.Context, owner types.UID, shown []types.UID) (bool, error) {
	all, overdue := e.Made.allSeen(owner, shown)
	for _, object := range overdue {
		live := copyOf(object)
		err := e.Live.Get(ctx, client.ObjectKeyFromObject(object), live)
		switch {
		case apierrors.IsNotFound(err), err == nil && live.GetUID() != object.GetUID():
			e.Made.gone(owner, object.GetUID())
		case err != nil:
			return false, fmt.Errorf("look whether %s is still there: %w", describeObject(e.Client.Scheme(), object), err)
		default:
			e.Made.found(live)
		}
	}
	if len(overdue) > 0 {
		all, _ = e.Made.allSeen(owner, shown)
	}
	return all, nil
}
