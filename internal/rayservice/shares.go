package rayservice

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// whole is all of something, in percent.
const whole = 100

// share is the part of its replicas that Serve on a cluster is asked for, and the part of the traffic that is sent there, in
// percent.
type share struct{ capacity, traffic int32 }

// shares are those of both clusters while traffic moves step by step. No cluster gets a larger part of the traffic than of
// its capacity, and the parts of the traffic make up the whole.
type shares struct{ active, pending share }

// moreTraffic moves the next part of the traffic to the cluster that gains, as far as its capacity goes.
func moreTraffic(to, from share, step int32) (toNext, fromNext share) {
	to.traffic = min(whole, to.traffic+step, to.capacity)
	from.traffic = whole - to.traffic
	return to, from
}

// moreCapacity is the next step of capacity, once the cluster that gains has as much traffic as capacity: the other one gives
// up what it does not need any more, or else the one that gains is given more. Together they never have more than the surge
// above the whole.
func moreCapacity(to, from share, surge int32) (toNext, fromNext share) {
	if to.capacity+from.capacity > whole {
		from.capacity = max(from.traffic, from.capacity-surge)
		return to, from
	}
	to.capacity = min(whole, to.capacity+surge)
	return to, from
}

// readShares finds out what the shares are. What the traffic is sent to is read from the route (spec/rayservice.md 6.2); the
// status says only what Serve was asked for, and what the route said if somebody deleted that.
func (p *planner) readShares() {
	active, pending := p.recorded(p.active), p.recorded(p.pending)
	now := shares{
		active:  share{capacity: ptr.Deref(active.TargetCapacity, whole), traffic: whole},
		pending: share{capacity: ptr.Deref(pending.TargetCapacity, 0)},
	}
	switch {
	case !p.serves():
		// There is nothing that could be spared: all of the pending cluster is needed.
		now.pending.capacity = whole
		now.pending.traffic = p.sentTo(p.pending)
		now.active.traffic = whole - now.pending.traffic
	case !p.alive(p.pending):
		now = shares{active: share{capacity: whole, traffic: whole}}
	default:
		now.pending.traffic = p.sentTo(p.pending)
		now.active.traffic = whole - now.pending.traffic
	}
	now.active.capacity = max(now.active.capacity, now.active.traffic)
	now.pending.capacity = max(now.pending.capacity, now.pending.traffic)
	p.shares, p.next = now, now
}

// sentTo is the part of the traffic that goes to the pending cluster.
func (p *planner) sentTo(pending string) int32 {
	route := p.route()
	if route == nil {
		return ptr.Deref(p.recorded(pending).TrafficRoutedPercent, 0)
	}
	mine, others := int64(weightOf(route, pending)), int64(weightOf(route, p.active))
	if mine == 0 {
		return 0
	}
	return int32(mine * whole / (mine + others))
}

// recorded is what the status said about a cluster, in whichever role.
func (p *planner) recorded(name string) rayv1.RayServiceStatus {
	for _, status := range []rayv1.RayServiceStatus{p.s.Service.Status.PendingServiceStatus, p.s.Service.Status.ActiveServiceStatus} {
		if name != "" && status.RayClusterName == name {
			return status
		}
	}
	return rayv1.RayServiceStatus{}
}

// movedAt is when the part of the traffic of a cluster last changed; nil if it never did. A change that is seen for the first
// time has happened just now. The time is rounded up, because the status keeps whole seconds and no interval may be too
// short.
func (p *planner) movedAt(name string, traffic int32) *metav1.Time {
	before := p.recorded(name)
	if before.TrafficRoutedPercent == nil || *before.TrafficRoutedPercent == traffic {
		return before.LastTrafficMigratedTime
	}
	at := p.now.Truncate(time.Second)
	if at.Before(p.now) {
		at = at.Add(time.Second)
	}
	return ptr.To(metav1.NewTime(at))
}

// sharing tells whether the status speaks of shares.
func (p *planner) sharing() bool { return p.asksForSteps() || p.route() != nil }

// capacityOf is the target capacity of Serve on a cluster in percent, nil for what its config says, which is all of it unless
// the user wants something else.
func (p *planner) capacityOf(c *Cluster) *int32 {
	switch {
	case !p.incremental() || p.pending == "" || !p.serves():
		return nil
	case c.name() == p.pending:
		return &p.shares.pending.capacity
	case c.name() == p.active:
		return &p.shares.active.capacity
	default:
		return nil
	}
}

// fillShares writes the shares of capacity and traffic into the status: the capacity as Serve is asked for it from now on, and
// the traffic as it is.
func (p *planner) fillShares() {
	active, pending := &p.st.ActiveServiceStatus, &p.st.PendingServiceStatus
	p.fillShare(active, p.next.active.capacity, p.shares.active.traffic)
	p.fillShare(pending, p.next.pending.capacity, p.shares.pending.traffic)
}

func (p *planner) fillShare(status *rayv1.RayServiceStatus, capacity, traffic int32) {
	name := status.RayClusterName
	if !p.sharing() || name == "" {
		status.TargetCapacity, status.TrafficRoutedPercent, status.LastTrafficMigratedTime = nil, nil, nil
		return
	}
	status.LastTrafficMigratedTime = p.movedAt(name, traffic)
	status.TargetCapacity, status.TrafficRoutedPercent = &capacity, &traffic
	if p.route() == nil && p.recorded(name).TrafficRoutedPercent == nil {
		status.TrafficRoutedPercent = nil // nothing has been sent anywhere by a route yet
	}
}
