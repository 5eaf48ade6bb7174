package raycluster

import (
	"fmt"
	"math"
	"strconv"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// leastStuckHeadTimeout is the shortest wait for a head Pod that is overdue: by then its node would have said that it has ended.
const leastStuckHeadTimeout = 30 * time.Second

// budgets are the PodDisruptionBudgets that the annotations of the cluster ask for. They say how many Pods must be there, and not
// how many may be missing: for that Kubernetes asks the owner of the Pods for its scale, and a RayCluster has no single one.
func (p *planner) budgets() []action.Object {
	var budgets []action.Object
	if least, wanted := p.leastHeads(); wanted {
		budgets = append(budgets, budget(p.cluster, HeadBudgetName(p.cluster.Name), headSelector(p.cluster), least))
	}
	missing, wanted := p.numberIn(rayv1.AnnotationMaxUnavailableWorkers, 0)
	for i := range p.cluster.Spec.WorkerGroupSpecs {
		if !wanted {
			break
		}
		group := &p.cluster.Spec.WorkerGroupSpecs[i]
		selector := map[string]string{rayv1.LabelCluster: p.cluster.Name, rayv1.LabelNodeType: rayv1.NodeTypeWorker, rayv1.LabelGroup: group.GroupName}
		least := max(0, podsOf(group, GroupReplicas(group))-missing)
		budgets = append(budgets, budget(p.cluster, WorkerBudgetName(p.cluster.Name, group.GroupName), selector, least))
	}
	return budgets
}

// leastHeads is how many heads an eviction must leave, and whether that is to be said.
func (p *planner) leastHeads() (least int64, wanted bool) {
	switch policy := p.cluster.Annotations[rayv1.AnnotationProtectHead]; policy {
	case "":
		return 0, false
	case rayv1.ProtectHeadAlways:
		return 1, true
	case rayv1.ProtectHeadWhileJobsRun:
		if p.snapshot.Idle {
			return 0, true
		}
		return 1, true
	default:
		p.notes = append(p.notes, fmt.Sprintf("annotation %s is %q, and must be %s or %s: nothing protects the head",
			rayv1.AnnotationProtectHead, policy, rayv1.ProtectHeadAlways, rayv1.ProtectHeadWhileJobsRun))
		return 0, false
	}
}

// numberIn reads an annotation that holds a number. One that does not is said, and counts as absent.
func (p *planner) numberIn(annotation string, least int64) (number int64, is bool) {
	text, set := p.cluster.Annotations[annotation]
	if !set {
		return 0, false
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil || number < least {
		p.notes = append(p.notes, fmt.Sprintf("annotation %s is %q, and must be a whole number from %d: it is not acted upon", annotation, text, least))
		return 0, false
	}
	return number, true
}

// HeadBudgetName is the name of the PodDisruptionBudget of a cluster's head.
func HeadBudgetName(cluster string) string { return cluster + "-head" }

// WorkerBudgetName is the name of the PodDisruptionBudget of a worker group. A point is not in the name of a group.
func WorkerBudgetName(cluster, group string) string { return cluster + "-workers." + group }

// budget keeps Pods that are ready. Those that are not may be evicted: nothing is lost with them.
func budget(cluster *rayv1.RayCluster, name string, selector map[string]string, least int64) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: kindBudget},
		ObjectMeta: ownedMeta(cluster, name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               ptr.To(intstr.FromInt32(int32(min(least, math.MaxInt32)))),
			Selector:                   &metav1.LabelSelector{MatchLabels: selector},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// budgetNames are those under which the cluster may want a PodDisruptionBudget.
func budgetNames(cluster *rayv1.RayCluster) []string {
	names := []string{HeadBudgetName(cluster.Name)}
	for i := range cluster.Spec.WorkerGroupSpecs {
		names = append(names, WorkerBudgetName(cluster.Name, cluster.Spec.WorkerGroupSpecs[i].GroupName))
	}
	return names
}

// releaseStuckHead deletes a head Pod whose node does not say that it has ended, where the user has said for how long that is to be
// waited for. With the state on a volume it stays: two heads must never be on one.
func (p *planner) releaseStuckHead() {
	seconds, wanted := p.numberIn(rayv1.AnnotationStuckHeadTimeout, int64(leastStuckHeadTimeout/time.Second))
	if !wanted {
		return
	}
	if embedded(p.cluster) {
		p.notes = append(p.notes, fmt.Sprintf("annotation %s is not acted upon, because the state of the GCS is on a volume: two heads on it would destroy it",
			rayv1.AnnotationStuckHeadTimeout))
		return
	}
	for _, pod := range membersOf(p.snapshot.Pods, rayv1.HeadGroupName).terminating {
		left := pod.DeletionTimestamp.Add(time.Duration(seconds) * time.Second).Sub(p.now)
		switch {
		case ptr.Deref(pod.DeletionGracePeriodSeconds, -1) == 0, ended(pod):
			// It was let go before, or a finalizer of others holds it.
		case left > 0:
			p.again(left)
		default:
			why := fmt.Sprintf("it should have been gone %d seconds ago, and node %s does not say that it is", seconds, pod.Spec.NodeName)
			p.do(action.Delete{
				Object: pod, Now: true, Why: why,
				Done:   action.Warning("ForceDeletedHeadPod", "Delete", "deleted head Pod without waiting for its node: "+why),
				Failed: action.Warning("FailedToDeleteHeadPod", "Delete", "cannot delete the head Pod"),
			})
		}
	}
}
