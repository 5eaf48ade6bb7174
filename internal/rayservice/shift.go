package rayservice

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
)

// capacityPause is how old a new target capacity must be before what Serve reports is taken for the outcome: Serve tells the
// new target at once, and the numbers of replicas that follow from it only after its next round of control.
const capacityPause = 3 * time.Second

// shift moves the next part of the capacity or of the traffic. The capacity is recorded in the status before Serve is asked
// for it; the traffic moves with a write of the HTTPRoute, and the last of these is the cut-over.
func (p *planner) shift(pending *Cluster) {
	if !p.s.GatewayAPI {
		p.withoutGateway(pending)
		return
	}
	p.keepGateway()
	switch active := p.s.cluster(p.active); {
	case !p.serves():
		p.recover(pending)
	case pending == nil || pending.leaving():
		p.remake()
	default:
		p.remake()
		p.move(active, pending)
	}
	p.keepRoute()
	p.follow()
}

// withoutGateway is what can be done of a take-over that goes step by step while the Gateway API is missing: a first cluster
// can serve, and one that is lost can be replaced, through the Service alone.
func (p *planner) withoutGateway(pending *Cluster) {
	p.block(rayv1.ReasonGatewayAPIMissing, "upgradeStrategy.type NewClusterWithIncrementalUpgrade needs the Gateway API, which is not installed: "+
		"install it and restart the operator, or choose another type")
	switch {
	case pending == nil:
		p.remake()
	case p.serves():
		p.waiting = "the Gateway API is not installed"
	default:
		p.switchWhenProved(pending)
	}
}

// recover makes the pending cluster serve when nothing else does.
func (p *planner) recover(pending *Cluster) {
	if pending == nil {
		return
	}
	p.waiting = p.unproved(pending)
	if p.waiting == "" && ptr.Deref(pending.Report.Serve.TargetCapacity, whole) == 0 {
		p.waiting = fmt.Sprintf("Serve on RayCluster %s was asked for no replicas until now", pending.name())
	}
	routed := p.route() != nil
	if p.waiting == "" && routed {
		p.waiting = p.unreachable(pending)
	}
	switch {
	case p.waiting != "":
		p.again(pollAgain)
	case routed:
		p.promoted = pending
	default:
		p.switchTo(pending)
	}
}

// move takes the next step between two clusters.
func (p *planner) move(active, pending *Cluster) {
	switch {
	case p.shares.pending.traffic > 0 && !p.takesRequests(pending) && p.takesRequests(active):
		// What is sent there fails. It goes back at once, and the active cluster gets all its replicas again.
		p.next = shares{active: share{whole, whole}, pending: share{capacity: p.shares.pending.capacity}}
		p.waiting = fmt.Sprintf("no Pod of RayCluster %s takes requests any more, so it gets none", pending.name())
	case p.frozen():
		p.waiting = "the spec cannot be acted upon"
	case ptr.Deref(p.recorded(p.pending).TrafficRoutedPercent, p.shares.pending.traffic) != p.shares.pending.traffic:
		// What has moved is recorded before the next step.
	case p.rollback:
		p.backward(active, pending, p.pace())
	default:
		p.forward(active, pending, p.pace())
	}
	p.tellCapacity(active, p.shares.active, p.next.active)
	p.tellCapacity(pending, p.shares.pending, p.next.pending)
}

// forward takes the next step towards the pending cluster. Nothing moves while that does not run as it should.
func (p *planner) forward(active, pending *Cluster, pace pace) {
	to, from := p.shares.pending, p.shares.active
	if p.waiting = p.short(pending, to.capacity); p.waiting != "" {
		p.again(pollAgain)
		return
	}
	p.waiting = p.unprogrammed()
	switch {
	case p.waiting != "":
	case to.traffic == whole:
		p.promoted = pending
	case to.traffic < to.capacity:
		// An active cluster that takes no requests is not worth waiting for.
		if p.due(pending, to, pace.interval) || !p.takesRequests(active) {
			p.waiting = ""
			p.next.pending, p.next.active = moreTraffic(to, from, pace.step)
		}
	case pace.atOnce:
		p.next.pending.capacity = whole
	case p.following(active, from.capacity):
		p.waiting = fmt.Sprintf("RayCluster %s has not given up replicas yet", active.name())
		p.again(pollAgain)
	default:
		p.next.pending, p.next.active = moreCapacity(to, from, pace.surge)
	}
}

// due tells whether enough time has passed since traffic last moved, and otherwise says when it will have.
func (p *planner) due(gaining *Cluster, now share, interval time.Duration) bool {
	last := p.movedAt(gaining.name(), now.traffic)
	if last == nil {
		return true
	}
	next := last.Add(interval)
	left := next.Sub(p.now)
	if left <= 0 {
		return true
	}
	p.waiting = fmt.Sprintf("the next part of the traffic moves at %s", next.UTC().Format(time.RFC3339))
	// Two operators' clocks may differ; no wait is much longer than the interval itself.
	p.again(min(left, interval+time.Second))
	return false
}

// short says what a cluster lacks before it can bear as much traffic as the capacity that it was asked for, or nothing.
func (p *planner) short(c *Cluster, capacity int32) string {
	if why := cmp.Or(p.notRunning(c), p.shortOfReplicas(c, capacity)); why != "" || capacity == 0 {
		return why
	}
	return p.withoutEndpoints(c)
}

// shortOfReplicas says which replicas a cluster does not have yet for a capacity, or nothing. Only what Serve reports counts
// (RS-W6). Deployments that Serve has found to be broken are not waited for.
func (p *planner) shortOfReplicas(c *Cluster, capacity int32) string {
	switch {
	case !reported(c):
		return fmt.Sprintf("Serve on RayCluster %s does not answer", c.name())
	case len(c.Report.Serve.Applications) == 0:
		return fmt.Sprintf("Serve on RayCluster %s has no application", c.name())
	case !sameCapacity(nil, &capacity, c.Report.Serve.TargetCapacity):
		return fmt.Sprintf("Serve on RayCluster %s does not have the target capacity of %d%% yet%s", c.name(), capacity, p.putFailure(c))
	case c.Put != nil && c.Report.Answered.Sub(c.Put.At) < capacityPause:
		return fmt.Sprintf("Serve on RayCluster %s was given the target capacity of %d%% a moment ago", c.name(), capacity)
	}
	for _, application := range c.Report.Serve.Applications {
		for _, deployment := range application.Deployments {
			broken := deployment.Status == rayv1.DeploymentStatusUnhealthy || deployment.Status == rayv1.AppStatusDeployFailed
			needed := max(deployment.TargetNumReplicas, replicasAt(capacity, deployment.FewestReplicas))
			if runningReplicas(deployment) < needed && !broken {
				return fmt.Sprintf("deployment %s of application %s on RayCluster %s does not have the %d replicas for %d%% of its capacity yet",
					deployment.Name, displayed(application.Name), c.name(), needed, capacity)
			}
		}
	}
	return ""
}

// replicasAt is how many of so many replicas Serve wants at a target capacity (spec/ray-runtime.md 2.4).
func replicasAt(capacity int32, all int) int {
	if capacity == 0 || all == 0 {
		return 0
	}
	return max(1, (all*int(capacity)+whole/2)/whole)
}

// putFailure is why a cluster could not be given a capacity. It is told when it is news.
func (p *planner) putFailure(c *Cluster) string {
	if c.Put == nil || c.Put.Err == nil {
		return ""
	}
	why := ": " + excerpt.Beginning(c.Put.Err.Error(), 200)
	before := meta.FindStatusCondition(p.s.Service.Status.Conditions, rayv1.ConditionUpgradeInProgress)
	if before != nil && !strings.HasSuffix(before.Message, why) {
		p.tell(action.Warning("FailedToUpdateTargetCapacity", "Update", "cannot set the target capacity of RayCluster "+c.name()+why))
	}
	return why
}

func runningReplicas(deployment dashboard.ServeDeployment) int {
	running := 0
	for _, replica := range deployment.Replicas {
		if replica.State == dashboard.ReplicaRunning {
			running++
		}
	}
	return running
}

// following tells whether Serve on a cluster has been asked for another capacity than it reports, and will get there. One that
// does not answer, has lost its applications or does not take the capacity is not waited for.
func (p *planner) following(c *Cluster, capacity int32) bool {
	if !reported(c) || c.Put != nil && c.Put.Err != nil {
		return false
	}
	_, has := serve.Reported(c.Report.Serve)
	return has && !sameCapacity(nil, &capacity, c.Report.Serve.TargetCapacity)
}

// unreachable says that no Pod of a cluster takes requests, or nothing.
func (p *planner) unreachable(c *Cluster) string {
	if p.takesRequests(c) {
		return ""
	}
	return fmt.Sprintf("no Pod of RayCluster %s takes requests", c.name())
}

// tellCapacity tells of a new target capacity.
func (p *planner) tellCapacity(c *Cluster, before, after share) {
	if before.capacity != after.capacity {
		p.tell(action.Normal("UpdatedServeTargetCapacity", "Update",
			fmt.Sprintf("RayCluster %s is to have %d%% of its capacity instead of %d%%", c.name(), after.capacity, before.capacity)))
	}
}
