package rayservice

import (
	"cmp"
	"slices"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// roles finds out which cluster serves and which one is to take over. What carries the traffic decides: the status only
// says what it was when it was written (RS-W3).
func (p *planner) roles() {
	p.active = p.carrier()
	p.pending = cmp.Or(p.partner(p.active), p.st.PendingServiceStatus.RayClusterName)
	if p.pending == p.active {
		p.pending = ""
	}
}

// carrier is the name of the cluster that traffic is sent to, or empty. A Service that somebody deleted is made again for
// the cluster that it led to.
func (p *planner) carrier() string {
	if name := p.routed(); name != "" {
		return name
	}
	serving := p.s.service(serveServiceName(p.service))
	if serving == nil || !p.s.owns(serving) {
		serving = p.otherServeService()
	}
	if serving != nil {
		if name := serving.Spec.Selector[rayv1.LabelCluster]; name != "" {
			return name
		}
	}
	if last := p.st.ActiveServiceStatus.RayClusterName; p.s.cluster(last) != nil {
		return last
	}
	return ""
}

// chooseClusters decides whether a cluster is to take over, and which one.
func (p *planner) chooseClusters() {
	goal := Goal(&p.service.Spec.RayClusterConfig)
	p.forgetAbandoned(goal)
	active := p.s.cluster(p.active)
	serves := active != nil && !active.leaving()
	switch {
	case p.frozen():
		return
	case serves && p.wanted(active), serves && p.upgradeAbandoned(goal), serves && !p.zeroDowntime():
		// Without a second cluster only the config can change. One that was begun is given up.
		p.takeBack()
	case serves && p.undoing() != "":
		// A step by step take-over is undone before the next one begins.
		p.takeBack()
	default:
		p.pending = p.pendingCluster()
	}
}

// wanted tells whether a cluster is what the spec asks for.
func (p *planner) wanted(c *Cluster) bool { return fits(c.Object, &p.service.Spec.RayClusterConfig) }

// pendingCluster is the name of the cluster that is to take over: the one that was chosen, if it still fits the spec, else
// another that does, else one to be made.
func (p *planner) pendingCluster() string {
	chosen := p.s.cluster(p.pending)
	switch {
	case p.pending != "" && chosen == nil && p.st.PendingServiceStatus.Goal == "" && !p.s.Holds[clusterKey(p.pending)].Collision:
		// It was not made yet. One that was made and is gone may have left Pods, so its name is not used again.
		return p.pending
	case chosen != nil && !chosen.leaving() && p.wanted(chosen):
		return p.pending
	}
	for _, other := range slices.Backward(p.s.Clusters) {
		// A spec that goes back finds its cluster, as long as that has not been given up.
		if other.name() != p.active && !other.leaving() && p.wanted(&other) {
			return other.name()
		}
	}
	return p.newName()
}

// newName is a name that no cluster has. The count that names are made from is lost with the status, for example when a
// RayService was restored from a backup, and the clusters may be there still.
func (p *planner) newName() string {
	for {
		p.st.ClusterIncarnations++
		if name := clusterName(p.service); p.s.cluster(name) == nil {
			return name
		}
	}
}

// makeClusters makes the pending cluster, and brings those that stay to what is wanted of them.
func (p *planner) makeClusters() {
	p.st.PendingServiceStatus.RayClusterName = p.pending
	if p.frozen() {
		return
	}
	switch pending := p.s.cluster(p.pending); {
	case p.pending == "":
	case pending != nil && p.rollback:
		// It stays as it is until its take-over is undone: the spec asks for another one.
	case pending != nil:
		p.keepCluster(pending)
	case p.s.Service.Status.PendingServiceStatus.RayClusterName == p.pending:
		p.makeCluster()
	default:
		// Its name is recorded first; that write brings the next pass.
	}
	if active := p.s.cluster(p.active); active != nil && !active.leaving() && p.pending == "" && p.wanted(active) {
		p.keepCluster(active)
	}
}

func clusterKey(name string) string { return "RayCluster/" + name }

func (p *planner) desired(name string) *rayv1.RayCluster {
	location := ""
	if p.config != nil {
		location = p.config.ProxyLocation()
	}
	return rayCluster(p.service, name, location, p.settings.Clusters.OperatorVersion)
}

func (p *planner) makeCluster() {
	key := clusterKey(p.pending)
	if p.held(key) || p.crowded() {
		return
	}
	cluster := p.desired(p.pending)
	if p.incremental() && p.active != "" {
		cluster = withoutReplicas(cluster)
	}
	p.do(action.Create{
		Object: cluster, Group: key, Why: "the service needs a cluster of this spec",
		Done:   action.Normal("CreatedRayCluster", "Create", "created RayCluster"),
		Failed: action.Warning("FailedToCreateRayCluster", "Create", "cannot create the RayCluster"),
	})
}

// crowded tells whether some other cluster than the active one has not been retired yet. Its mark brings the next pass.
func (p *planner) crowded() bool {
	return slices.ContainsFunc(p.s.Clusters, func(c Cluster) bool {
		_, retired := retiredAt(&c)
		return c.name() != p.active && !c.leaving() && !retired
	})
}

// keepCluster changes in place what can be, and takes back that the cluster was retired.
func (p *planner) keepCluster(c *Cluster) {
	next := updated(c.Object, p.desired(c.name()))
	why := "the spec of the service changed in what a cluster takes over in place"
	if c.Object.Annotations[rayv1.AnnotationRetiredAt] != "" {
		if next == nil {
			next = c.Object.DeepCopy()
		}
		delete(next.Annotations, rayv1.AnnotationRetiredAt)
		why = "the service wants this cluster again"
	}
	if next == nil {
		return
	}
	a := action.Update{
		Object: next, Base: c.Object, Why: why,
		Done:   action.Normal("UpdatedRayCluster", "Update", "updated RayCluster"),
		Failed: action.Warning("FailedToUpdateRayCluster", "Update", "cannot update the RayCluster"),
	}
	if !p.held(a.Key()) {
		p.do(a)
	}
}

// forgetAbandoned drops the memory of an upgrade that was given up, when another one is asked for.
func (p *planner) forgetAbandoned(goal string) {
	if given := p.st.AbandonedUpgrade; given != nil && given.Goal != goal {
		p.st.AbandonedUpgrade = nil
	}
}

// upgradeAbandoned tells whether the upgrade to a goal was given up, and gives it up when its time is over.
func (p *planner) upgradeAbandoned(goal string) bool {
	if p.st.AbandonedUpgrade != nil {
		return true
	}
	limit, err := p.upgradeTimeout()
	pending := p.s.cluster(p.pending)
	if err != nil || limit == 0 || pending == nil || !p.wanted(pending) || p.servesThrough(p.pending) {
		return false
	}
	left := p.begun(pending).Add(limit).Sub(p.now)
	if left > 0 {
		p.again(left)
		return false
	}
	p.giveUp(goal, pending, limit)
	return true
}
