package rayservice

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// undoing is the pending cluster if its take-over, which goes step by step, is to be undone and that has not come to its end
// yet; else empty. It is undone when the spec asks for the active cluster again, for a third one, or for none, or when it took
// too long.
func (p *planner) undoing() string {
	if !p.incremental() || !p.serves() || !p.alive(p.pending) || !p.hasShare(p.pending) {
		return ""
	}
	active, pending := p.s.cluster(p.active), p.s.cluster(p.pending)
	goesOn := p.wanted(pending) && !p.wanted(active) && p.zeroDowntime() && p.st.AbandonedUpgrade == nil
	if goesOn || p.undone(pending) {
		return ""
	}
	return p.pending
}

// hasShare tells whether a cluster has been asked for a share of capacity, or gets traffic.
func (p *planner) hasShare(name string) bool {
	return p.recorded(name).TargetCapacity != nil || p.routesTo(name)
}

// undone tells whether all is as it was before a take-over. A pending cluster that does not answer needs no care.
func (p *planner) undone(pending *Cluster) bool {
	p.readShares()
	if p.shares.active != (share{whole, whole}) {
		return false
	}
	return !reported(pending) || p.shares.pending.capacity == 0 && !p.following(pending, 0)
}

// takeBack makes the cluster pending whose take-over is being undone, or none.
func (p *planner) takeBack() {
	p.pending = p.undoing()
	p.rollback = p.pending != ""
}

// rollsBack tells whether a step by step take-over is being undone.
func (p *planner) rollsBack() bool { return p.rollback }

// backward takes the next step back to the active cluster. It depends on nothing that the pending cluster says, except that
// capacity which this one gives up is waited for where it answers.
func (p *planner) backward(active, pending *Cluster, pace pace) {
	to, from := p.shares.active, p.shares.pending
	switch {
	case to.traffic < to.capacity:
		p.waiting = cmp.Or(p.shortOfReplicas(active, to.capacity), p.unreachable(active))
		switch {
		case p.waiting != "":
			p.again(pollAgain)
		case p.due(active, to, pace.interval):
			p.next.active, p.next.pending = moreTraffic(to, from, pace.step)
		}
	case pace.atOnce && to.capacity < whole:
		p.next.active.capacity = whole
	case to.capacity+from.capacity > whole:
		// What never got traffic can go at once; otherwise no traffic must be left that needs it.
		if p.waiting = p.unprogrammed(); p.waiting == "" || p.movedAt(pending.name(), from.traffic) == nil {
			p.next.active, p.next.pending = moreCapacity(to, from, pace.surge)
		}
	case p.following(pending, from.capacity):
		p.waiting = fmt.Sprintf("RayCluster %s has not given up replicas yet", pending.name())
		p.again(pollAgain)
	default:
		p.next.active, p.next.pending = moreCapacity(to, from, pace.surge)
	}
}

// rollingBack sets the condition that a take-over is being undone, which is absent otherwise.
func (p *planner) rollingBack() {
	switch {
	case p.rollback:
		c := metav1.Condition{Type: rayv1.ConditionRollbackInProgress, Status: metav1.ConditionTrue, Reason: rayv1.ReasonDesiredClusterSpecChanged, Message: p.waiting}
		if p.st.AbandonedUpgrade != nil {
			c.Reason = rayv1.ReasonUpgradeTimeout
		}
		p.set(c)
	case !p.frozen():
		meta.RemoveStatusCondition(&p.st.Conditions, rayv1.ConditionRollbackInProgress)
	}
}
