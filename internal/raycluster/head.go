package raycluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// head keeps exactly one head. A terminating head counts as alive until it is known to be dead: two heads would be two clusters.
func (p *planner) head() {
	heads := membersOf(p.snapshot.Pods, rayv1.HeadGroupName)
	for _, pod := range heads.doomed {
		if p.ripe(pod) {
			p.do(deleteHead(pod, "the head Pod has ended"))
		}
	}
	slices.SortFunc(heads.live, byWorth)
	recreated := p.recreated()
	for i, pod := range heads.live {
		switch {
		case recreated(pod):
			p.do(deleteHead(pod, "the cluster is recreated from a changed spec"))
		case p.staleToken(pod):
			p.do(deleteHead(pod, "the token that it was given has been replaced"))
		case i > 0:
			p.do(deleteHead(pod, "another head Pod of this cluster is worth more"))
		}
	}
	if p.headLives(heads) || HeadStaysAway(p.cluster) || p.awaitsToken() || p.awaitsAccount() || p.awaitsFinalizer() || p.sharesClaim() || p.held(rayv1.HeadGroupName) {
		return
	}
	p.do(action.Create{
		Object:   p.withToken(HeadPod(p.cluster, p.settings, p.nextIncarnation(rayv1.HeadGroupName))),
		Identity: []string{rayv1.LabelCluster, rayv1.LabelNodeType, rayv1.LabelIncarnation},
		Group:    rayv1.HeadGroupName,
		Why:      "the cluster has no head Pod",
		Done:     action.Normal("CreatedHeadPod", "Create", "created head Pod"),
		Failed:   action.Warning("FailedToCreateHeadPod", "Create", "cannot create the head Pod"),
	})
}

// HeadStaysAway tells whether a lost head of the cluster is not replaced: a RayJob in SidecarMode asks for that, because its
// job died with the head. While the cluster has never been complete a head is made all the same.
func HeadStaysAway(cluster *rayv1.RayCluster) bool {
	return cluster.Annotations[rayv1.AnnotationDisableProvisionedHeadRestart] == "true" &&
		conditionTrue(cluster, rayv1.ConditionRayClusterProvisioned)
}

// headLives tells whether a head may be alive. One that has ended, and is held by a finalizer of others for too long, is not; it
// is still in the way where all heads have one name.
func (p *planner) headLives(heads members) bool {
	mayLive := func(pod *corev1.Pod) bool {
		if !ended(pod) || len(pod.Finalizers) == 0 || p.settings.DeterministicHeadPodName {
			return true
		}
		left := pod.DeletionTimestamp.Add(overdueAfter).Sub(p.now)
		if left > 0 {
			p.again(left)
		}
		return left > 0
	}
	return len(heads.live)+len(heads.doomed) > 0 || slices.ContainsFunc(heads.terminating, mayLive)
}

func deleteHead(pod *corev1.Pod, why string) action.Delete {
	return action.Delete{
		Object: pod, Why: why,
		Done:   action.Normal("DeletedHeadPod", "Delete", "deleted head Pod: "+why),
		Failed: action.Warning("FailedToDeleteHeadPod", "Delete", "cannot delete the head Pod"),
	}
}
