package raycluster

import (
	"encoding/json"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// Specs remembers the last spec of each RayCluster that made sense, so that a running cluster is kept whole on it
// while its present spec makes none. See docs/decisions/0004-last-valid-spec.md.
type Specs struct {
	settings Settings
	mu       sync.Mutex
	byName   map[types.NamespacedName]lastSpec
}

type lastSpec struct {
	uid  types.UID
	spec *rayv1.RayClusterSpec
}

// NewSpecs returns an empty memory. What makes sense depends on the operator's settings.
func NewSpecs(settings Settings) *Specs {
	return &Specs{settings: settings, byName: map[types.NamespacedName]lastSpec{}}
}

// Note takes in a RayCluster as it was observed, and returns the last spec of it that made sense: its own, or an earlier
// one, or nil when none is known.
func (s *Specs) Note(cluster *rayv1.RayCluster) *rayv1.RayClusterSpec {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	valid := len(Validate(cluster, s.settings)) == 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if valid {
		s.byName[name] = lastSpec{uid: cluster.UID, spec: &cluster.Spec}
	}
	if last := s.byName[name]; last.uid == cluster.UID {
		return last.spec
	}
	return nil
}

// Forget drops what is known about a cluster that is gone.
func (s *Specs) Forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
}

// lastValidName is the name of the object that keeps the last spec that made sense for the next leader.
func lastValidName(cluster *rayv1.RayCluster) string { return ShortName(cluster.Name + "-last-valid") }

// lastValidRevision is that object. It exists only while the present spec makes no sense.
func lastValidRevision(cluster *rayv1.RayCluster, spec *rayv1.RayClusterSpec) (*appsv1.ControllerRevision, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write the last valid spec of RayCluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	return &appsv1.ControllerRevision{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kindRevision},
		ObjectMeta: ownedMeta(cluster, lastValidName(cluster)),
		Data:       runtime.RawExtension{Raw: text},
		Revision:   1,
	}, nil
}

// storedSpec is the last spec that made sense as an earlier leader left it, or nil.
func (s Snapshot) storedSpec() *rayv1.RayClusterSpec {
	for _, object := range s.Owned {
		revision, ok := object.(*appsv1.ControllerRevision)
		if !ok || revision.Name != lastValidName(s.Cluster) {
			continue
		}
		spec := &rayv1.RayClusterSpec{}
		if err := json.Unmarshal(revision.Data.Raw, spec); err == nil {
			return spec
		}
	}
	return nil
}

// keepLastValid stores the spec that the plan acts upon when it is not the present one.
func (p *planner) keepLastValid() {
	if len(p.invalid) == 0 {
		return
	}
	if stored := p.snapshot.standing(kindRevision, lastValidName(p.cluster)); stored != nil && metav1.IsControlledBy(stored, p.cluster) {
		if !equality.Semantic.DeepEqual(p.snapshot.storedSpec(), p.snapshot.LastValid) && stored.GetDeletionTimestamp() == nil {
			p.do(deleteObject(stored, "it is not the last valid spec any more"))
		}
		return
	}
	revision, err := lastValidRevision(p.snapshot.Cluster, p.snapshot.LastValid)
	if err != nil {
		p.notes = append(p.notes, err.Error())
		return
	}
	create := action.Create{Object: revision, Group: objectKey(kindRevision, revision.Name), Why: "the present spec makes no sense",
		Failed: action.Warning("FailedToCreateControllerRevision", "Create", "cannot keep the last valid spec")}
	if !p.held(create.Key()) {
		p.do(create)
	}
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
