package rayservice

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// Memory is what a process remembers of RayServices between two looks: what it has had asked, and since when Pods are quiet. What
// is lost with the process costs some seconds before a retired cluster is deleted.
type Memory struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*remembered
}

type remembered struct {
	asked map[poll.Key]bool
	quiet map[types.UID]quiet
}

// quiet is since when a Pod has served no request.
type quiet struct {
	requests float64
	since    time.Time
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{byName: map[types.NamespacedName]*remembered{}} }

// of is what is remembered of a service. The lock is held.
func (m *Memory) of(name types.NamespacedName) *remembered {
	if m.byName[name] == nil {
		m.byName[name] = &remembered{asked: map[poll.Key]bool{}, quiet: map[types.UID]quiet{}}
	}
	return m.byName[name]
}

// note takes in a snapshot and adds to it what is remembered.
func (m *Memory) note(name types.NamespacedName, s *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(name)
	quietNow := map[types.UID]quiet{}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		for j := range c.Pods {
			pod := &c.Pods[j]
			if is, ok := quietSince(pod, known.quiet[pod.UID]); ok {
				quietNow[pod.UID] = is
				pod.QuietSince = is.since
			}
		}
	}
	known.quiet = quietNow
}

// quietSince is since when a Pod has served no request. The time is that of the answer which was the first to show none.
func quietSince(pod *Pod, before quiet) (quiet, bool) {
	if pod.Traffic == nil || pod.Traffic.Err != nil || pod.Traffic.Traffic == nil || pod.Traffic.Traffic.Ongoing > 0 {
		return quiet{}, false
	}
	requests := pod.Traffic.Traffic.Requests
	if before.since.IsZero() || before.requests != requests {
		return quiet{requests: requests, since: pod.Traffic.Answered}, true
	}
	return before, true
}

// ask takes in what a service wants asked, and returns what it wants no more.
func (m *Memory) ask(name types.NamespacedName, keys map[poll.Key]bool) (noMore []poll.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(name)
	for key := range known.asked {
		if !keys[key] {
			noMore = append(noMore, key)
		}
	}
	known.asked = keys
	return noMore
}

// forget drops what is remembered of a service, and returns what was asked on its behalf.
func (m *Memory) forget(name types.NamespacedName) []poll.Key {
	noMore := m.ask(name, nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
	return noMore
}
