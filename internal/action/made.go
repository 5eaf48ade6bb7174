package action

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unseenLimit is how long an object may take to show up in the cache before it counts as made and gone meanwhile.
const unseenLimit = 30 * time.Second

// Made remembers created objects until the caches show them. It stands in for read-your-writes where the client cannot
// do that, which is when several single namespaces are watched.
type Made struct {
	clock  clock.PassiveClock
	mu     sync.Mutex
	unseen map[types.UID]map[types.UID]time.Time // by owner and object
}

// NewMade returns an empty memory.
func NewMade(clock clock.PassiveClock) *Made {
	return &Made{clock: clock, unseen: map[types.UID]map[types.UID]time.Time{}}
}

func (m *Made) add(object client.Object) {
	owner := metav1.GetControllerOf(object)
	if m == nil || owner == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unseen[owner.UID] == nil {
		m.unseen[owner.UID] = map[types.UID]time.Time{}
	}
	m.unseen[owner.UID][object.GetUID()] = m.clock.Now()
}

// AllSeen tells whether everything that was created for the owner is among the objects that the caches showed. A plan
// made while it is not would make things twice.
func (m *Made) AllSeen(owner types.UID, shown []types.UID) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, at := range m.unseen[owner] {
		if slices.Contains(shown, uid) || m.clock.Since(at) > unseenLimit {
			delete(m.unseen[owner], uid)
		}
	}
	if len(m.unseen[owner]) > 0 {
		return false
	}
	delete(m.unseen, owner)
	return true
}
