package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// podsUpToDate tells whether all Pods were made from the present spec. Without the strategy Recreate, a changed spec is
// followed only by Pods that are made for other reasons.
func (p *planner) podsUpToDate() metav1.Condition {
	c := metav1.Condition{Type: rayv1.ConditionPodsUpToDate, Status: metav1.ConditionTrue, Reason: rayv1.ReasonPodsUpToDate}
	older := map[string]int{}
	for _, pod := range p.snapshot.Pods {
		if pod.DeletionTimestamp == nil && p.outdated(pod) {
			older[groupOf(pod)]++
		}
	}
	if len(older) == 0 {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, rayv1.ReasonSpecChanged
	parts := make([]string, 0, len(older))
	for _, group := range slices.Sorted(maps.Keys(older)) {
		parts = append(parts, fmt.Sprintf("%d of group %s", older[group], group))
	}
	c.Message = "Pods that were made from an earlier spec: " + strings.Join(parts, ", ")
	return c
}
