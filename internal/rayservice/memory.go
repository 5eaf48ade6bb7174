package rayservice

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// Memory is what a process has had asked on behalf of RayServices, so that it can end that.
type Memory struct {
	mu    sync.Mutex
	asked map[types.NamespacedName]map[poll.Key]bool
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{asked: map[types.NamespacedName]map[poll.Key]bool{}} }

// ask takes in what a service wants asked, and returns what it wants no more.
func (m *Memory) ask(name types.NamespacedName, keys map[poll.Key]bool) (noMore []poll.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.asked[name] {
		if !keys[key] {
			noMore = append(noMore, key)
		}
	}
	if len(keys) == 0 {
		delete(m.asked, name)
	} else {
		m.asked[name] = keys
	}
	return noMore
}
