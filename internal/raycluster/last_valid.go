package raycluster

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Specs remembers the last spec of each RayCluster that made sense, so that a running cluster is kept whole on it
// while its present spec makes none.
type Specs struct {
	mu        sync.Mutex
	byCluster map[types.UID]*rayv1.RayClusterSpec
}

// NewSpecs returns an empty memory.
func NewSpecs() *Specs {
	return &Specs{byCluster: map[types.UID]*rayv1.RayClusterSpec{}}
}

// Note takes in a RayCluster as it was observed, and returns the last spec of it that made sense: its own, or an earlier
// one, or nil when none is known.
func (s *Specs) Note(cluster *rayv1.RayCluster) *rayv1.RayClusterSpec {
	valid := len(Validate(cluster)) == 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if valid {
		s.byCluster[cluster.UID] = &cluster.Spec
	}
	return s.byCluster[cluster.UID]
}

// Forget drops what is known about a cluster that is gone.
func (s *Specs) Forget(cluster types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byCluster, cluster)
}

// ForgetAll drops everything.
func (s *Specs) ForgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byCluster)
}

// chooseSpec makes the plan act upon the last spec that made sense when the present one does not. What the user or Ray's
// autoscaler asks for in numbers and in suspension is still followed.
func (p *planner) chooseSpec() {
	last := p.snapshot.LastValid
	switch {
	case len(p.invalid) == 0:
		return
	case last == nil:
		p.frozen = true
		return
	}
	acted := p.snapshot.Cluster.DeepCopy()
	acted.Spec = *last.DeepCopy()
	acted.Spec.Suspend = p.snapshot.Cluster.Spec.Suspend
	present := map[string]rayv1.WorkerGroupSpec{}
	for _, group := range p.snapshot.Cluster.Spec.WorkerGroupSpecs {
		present[group.GroupName] = group
	}
	for i := range acted.Spec.WorkerGroupSpecs {
		group := &acted.Spec.WorkerGroupSpecs[i]
		if now, ok := present[group.GroupName]; ok {
			group.Replicas, group.ScaleStrategy = now.Replicas, now.ScaleStrategy
		}
	}
	p.cluster = acted
}
