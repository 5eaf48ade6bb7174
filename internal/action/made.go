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
	"k8s.io/apimachinery/pkg/util/resourceversion"
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

// Made remembers what was written until the caches show it. It stands in for read-your-writes where the client cannot do
// that: for every create, status and list of finalizers when several single namespaces are watched, and everywhere for those whose answer was
// lost, of which no client knows.
type Made struct {
	clock clock.PassiveClock
	// doubtful limits the memory to writes whose answer was lost.
	doubtful bool

	mu      sync.Mutex
	unseen  map[types.UID]map[string]unseen // by owner and name of the object
	changes map[types.UID]unseen            // of the object itself, by its UID
}

// unseen is a write that no cache has shown yet.
type unseen struct {
	// object is what was written; it has no UID, or no resourceVersion for a change, while nobody knows whether it was.
	object client.Object
	// since is when it was written, or when the API server last said that it is there.
	since time.Time
}

// NewMade returns an empty memory.
func NewMade(clock clock.PassiveClock) *Made {
	return &Made{clock: clock, unseen: map[types.UID]map[string]unseen{}, changes: map[types.UID]unseen{}}
}

// NewDoubtful returns an empty memory for a client that reads its own writes, as far as it knows of them.
func NewDoubtful(clock clock.PassiveClock) *Made {
	made := NewMade(clock)
	made.doubtful = true
	return made
}

// created takes in an object whose create was answered.
func (m *Made) created(object client.Object) {
	if m != nil && !m.doubtful {
		m.await(object)
	}
}

// await takes in an object of ours that is there, or of which nobody knows whether it is.
func (m *Made) await(object client.Object) {
	owner := metav1.GetControllerOf(object)
	if m == nil || owner == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropAbandoned()
	if m.unseen[owner.UID] == nil {
		m.unseen[owner.UID] = map[string]unseen{}
	}
	m.unseen[owner.UID][nameIn(object)] = unseen{object: object, since: m.clock.Now()}
}

// nameIn tells objects of one owner apart.
func nameIn(object client.Object) string { return fmt.Sprintf("%T/%s", object, object.GetName()) }

// wrote takes in an object of which a change was answered.
func (m *Made) wrote(object client.Object) {
	if m != nil && !m.doubtful {
		m.awaitChange(object)
	}
}

// awaitChange takes in an object whose status or finalizers were written. Without a resourceVersion nobody knows whether they
// were.
func (m *Made) awaitChange(object client.Object) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropAbandoned()
	m.changes[object.GetUID()] = unseen{object: object, since: m.clock.Now()}
}

// dropAbandoned drops what nobody asks after: not every owner does, and some are gone.
func (m *Made) dropAbandoned() {
	abandoned := func(u unseen) bool { return m.clock.Since(u.since) > abandonedLimit }
	for owner, objects := range m.unseen {
		for name, u := range objects {
			if abandoned(u) {
				delete(objects, name)
			}
		}
		if len(objects) == 0 {
			delete(m.unseen, owner)
		}
	}
	for object, u := range m.changes {
		if abandoned(u) {
			delete(m.changes, object)
		}
	}
}

// allSeen drops what is shown, tells whether anything is left, and of what in that the API server must be asked.
func (m *Made) allSeen(owner types.UID, shown []types.UID) (all bool, ask []client.Object) {
	if m == nil {
		return true, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, u := range m.unseen[owner] {
		switch {
		case u.object.GetUID() == "", m.clock.Since(u.since) > unseenLimit:
			ask = append(ask, u.object)
		case slices.Contains(shown, u.object.GetUID()):
			delete(m.unseen[owner], name)
		}
	}
	if len(m.unseen[owner]) > 0 {
		slices.SortFunc(ask, func(a, b client.Object) int { return compareNames(a, b) })
		return false, ask
	}
	delete(m.unseen, owner)
	return true, nil
}

// changeOf returns the change of an object that is not known to be in the caches, or nil.
func (m *Made) changeOf(object types.UID) client.Object {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes[object].object
}

// gone drops an object that is not there: it was never made, or was deleted before any cache showed it.
func (m *Made) gone(owner types.UID, object client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unseen[owner], nameIn(object))
}

func (m *Made) seenChange(object types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.changes, object)
}

// ForgetAll drops everything: at the start of a term the caches show all that was written before.
func (m *Made) ForgetAll() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.unseen)
	clear(m.changes)
}

// AllSeen tells whether the caches show what was written last: the status and finalizers of owner, as it is shown, and everything
// that was created for it, by the UIDs that are shown. A plan made while they do not would make things twice, or would take its own
// status for written. Of what is in doubt, and of what does not show up for long, the API server is asked.
func (e *Executor) AllSeen(ctx context.Context, owner client.Object, shown []types.UID) (bool, error) {
	if seen, err := e.changeSeen(ctx, owner); err != nil || !seen {
		return false, err
	}
	all, ask := e.Made.allSeen(owner.GetUID(), shown)
	for _, object := range ask {
		live := copyOf(object)
		err := e.Live.Get(ctx, client.ObjectKeyFromObject(object), live)
		other := object.GetUID() != "" && live.GetUID() != object.GetUID()
		switch {
		case apierrors.IsNotFound(err), err == nil && (other || !sameOwner(live, object)):
			e.Made.gone(owner.GetUID(), object)
		case err != nil:
			return false, fmt.Errorf("look whether %s is there: %w", describeObject(e.Client.Scheme(), object), err)
		default:
			e.Made.await(live)
		}
	}
	if len(ask) > 0 {
		all, _ = e.Made.allSeen(owner.GetUID(), shown)
	}
	return all, nil
}

func (e *Executor) changeSeen(ctx context.Context, owner client.Object) (bool, error) {
	written := e.Made.changeOf(owner.GetUID())
	if written == nil {
		return true, nil
	}
	if written.GetResourceVersion() == "" {
		live := copyOf(owner)
		if err := e.Live.Get(ctx, client.ObjectKeyFromObject(owner), live); err != nil {
			if apierrors.IsNotFound(err) {
				return false, nil // the caches will show it
			}
			return false, fmt.Errorf("look whether %s was changed: %w", describeObject(e.Client.Scheme(), owner), err)
		}
		e.Made.awaitChange(live)
		written = live
	}
	order, err := resourceversion.CompareResourceVersion(owner.GetResourceVersion(), written.GetResourceVersion())
	if err != nil || order < 0 {
		return false, err
	}
	e.Made.seenChange(owner.GetUID())
	return true, nil
}
