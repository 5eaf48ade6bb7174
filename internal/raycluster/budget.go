package raycluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// podsPerPass is how many worker Pods one pass makes, shared by the groups, so that a large cluster does not keep
	// the others waiting. The rest follows in the next passes.
	podsPerPass = 64
	// leastPerPass is what each group may make in any case.
	leastPerPass = 4
	// pendingLimit is how many Pods of a group may be pending at once while Ray's autoscaler is on. It halves each time
	// Pods of the group end early, so that a broken node or image does not draw hundreds of Pods.
	pendingLimit = 128
)

// budget is how many replicas the group may make in this pass. It asks for another pass if that is less than it wants,
// and says so in the status if the group has to wait for Pods that are pending.
func (g *groupPlan) budget() int {
	groups := max(len(g.cluster.Spec.WorkerGroupSpecs), 1)
	replicas := max(max(podsPerPass/groups, leastPerPass)/g.hosts, 1)
	missing := int(GroupReplicas(g.spec)) - len(g.replicas) - g.going
	if autoscaling(g.cluster) && missing > 0 {
		streak := g.snapshot.Streaks[g.spec.GroupName]
		limit := max(pendingLimit>>min(streak.Count, 7), g.hosts)
		room := (limit - g.pending()) / g.hosts
		if room < min(missing, replicas) {
			if streak.Count > 0 {
				g.again(streak.Last.Add(longLife + time.Second).Sub(g.now))
			}
			g.wait("group %s: %d more replicas wait until fewer than %d Pods are pending", g.spec.GroupName, missing-max(room, 0), limit)
			return max(room, 0)
		}
	}
	if missing > replicas {
		g.again(nextStep)
	}
	return replicas
}

func (g *groupPlan) pending() int {
	count := 0
	for _, r := range g.replicas {
		for _, pod := range r.pods {
			if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "" {
				count++
			}
		}
	}
	return count
}

// oldHeadLeaves tells whether a head that is being replaced by a new one for a changed spec or token is still there. Workers
// that are made meanwhile would join it.
func (p *planner) oldHeadLeaves() bool {
	heads := p.podsOf(rayv1.HeadGroupName)
	return slices.ContainsFunc(heads, p.recreated()) || slices.ContainsFunc(heads, p.staleToken)
}
