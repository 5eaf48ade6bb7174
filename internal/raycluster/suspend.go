package raycluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// suspendPhase is where a cluster stands between running and suspended.
type suspendPhase int

const (
	running suspendPhase = iota
	// suspending clusters lose their Pods, even if spec.suspend is taken back meanwhile.
	suspending
	// suspended clusters have no Pod.
	suspended
)

// nextSuspendPhase follows from the recorded phase, from spec.suspend (absent means false) and from whether any Pod
// is left.
func nextSuspendPhase(s Snapshot) suspendPhase {
	wanted := ptr.Deref(s.Cluster.Spec.Suspend, false)
	isSuspending := conditionTrue(s.Cluster, rayv1.ConditionRayClusterSuspending)
	isSuspended := conditionTrue(s.Cluster, rayv1.ConditionRayClusterSuspended)
	switch {
	case isSuspending && len(s.Pods) > 0, wanted && !isSuspending && !isSuspended, wanted && len(s.Pods) > 0:
		return suspending
	case isSuspending, wanted:
		return suspended
	default:
		return running
	}
}

func conditionTrue(cluster *rayv1.RayCluster, kind string) bool {
	return meta.IsStatusConditionTrue(cluster.Status.Conditions, kind)
}

// removeAllPods empties a cluster that is being suspended.
func (p *planner) removeAllPods() {
	for _, pod := range p.snapshot.Pods {
		if pod.DeletionTimestamp == nil {
			p.do(action.Delete{
				Object: pod, Why: "the cluster is suspended",
				Done:   action.Normal("DeletedPod", "Delete", "deleted Pods to suspend the cluster"),
				Failed: action.Warning("FailedToDeletePodCollection", "Delete", "cannot delete a Pod to suspend the cluster"),
			})
		}
	}
}
