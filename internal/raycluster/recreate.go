package raycluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// recreated returns which Pods go because upgradeStrategy is Recreate and what they were made from has changed.
func (p *planner) recreated() func(*corev1.Pod) bool {
	strategy := p.cluster.Spec.UpgradeStrategy
	if strategy == nil || ptr.Deref(strategy.Type, rayv1.RayClusterUpgradeNone) != rayv1.RayClusterRecreate {
		return func(*corev1.Pod) bool { return false }
	}
	return p.outdated
}

// outdated tells whether a Pod was made from a spec that differs from the present one in what shapes that Pod. Pods
// whose hash was made by another rule, or by another operator, are not compared: a new operator restarts nothing.
func (p *planner) outdated(pod *corev1.Pod) bool {
	madeFrom := pod.Annotations[rayv1.AnnotationRecreateHash]
	if !strings.HasPrefix(madeFrom, hashRule) {
		return false
	}
	wanted, known := p.hashes()[groupOf(pod)]
	return known && madeFrom != wanted
}

// hashes returns the wanted hash of the Pods of each group.
func (p *planner) hashes() map[string]string {
	if p.hashByGroup == nil {
		spec := &p.cluster.Spec
		p.hashByGroup = map[string]string{rayv1.HeadGroupName: HeadHash(spec)}
		for i := range spec.WorkerGroupSpecs {
			p.hashByGroup[spec.WorkerGroupSpecs[i].GroupName] = WorkerHash(spec, &spec.WorkerGroupSpecs[i])
		}
	}
	return p.hashByGroup
}
