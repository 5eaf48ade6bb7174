package rayservice

import (
	"fmt"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// gatewayGrace is how long a new Gateway or HTTPRoute may take to be used before that is called an obstacle.
const gatewayGrace = 30 * time.Second

// keepGateway makes the Gateway, and keeps it as the spec wants it. While the spec cannot be acted upon, or asks for no
// steps any more, it stays as it is.
func (p *planner) keepGateway() {
	if !p.asksForSteps() || p.invalid != nil {
		return
	}
	wanted := Gateway(p.service)
	live := p.s.Gateway
	switch {
	case live == nil:
		p.keepRouting(nil, wanted)
	case !action.UpToDate(live, action.Stamp(wanted)):
		p.keepRouting(live, wanted)
	}
	if gateway := p.gateway(); gateway != nil {
		p.complain(gateway, gatewayVerdict(gateway))
	}
	if route := p.route(); route != nil {
		p.complain(route, routeVerdict(route, gatewayName(p.service)))
	}
}

// complain says that an object is not in use, unless it is new, or only its last change has not been taken up.
func (p *planner) complain(object action.Object, is verdict) {
	if is.why == "" || is.stale {
		return
	}
	if left := object.GetCreationTimestamp().Add(gatewayGrace).Sub(p.now); left > 0 {
		p.again(left)
		return
	}
	p.block(rayv1.ReasonGatewayNotReady, is.why)
}

// unprogrammed says why the traffic may not yet go where the HTTPRoute sends it, or nothing. That does not matter any more
// when nobody asks for steps.
func (p *planner) unprogrammed() string {
	gateway, route := p.gateway(), p.route()
	switch {
	case !p.asksForSteps():
		return ""
	case gateway == nil:
		return "there is no Gateway yet"
	case route == nil:
		return "there is no HTTPRoute yet"
	}
	if is := gatewayVerdict(gateway); is.why != "" {
		return is.why
	}
	return routeVerdict(route, gateway.Name).why
}

// keepRoute brings the HTTPRoute to the shares that are wanted. Each write of it is refused when it is not as it was observed,
// and one that leads to another cluster alone is the cut-over.
func (p *planner) keepRoute() {
	active := p.s.cluster(p.active)
	target, backends := active, []backend{}
	switch {
	case p.promoted != nil:
		target, backends = p.promoted, []backend{{p.promoted.Object, whole}}
	case active == nil || p.s.service(raycluster.ServeServiceName(p.active)) == nil:
		return
	default:
		backends = append(backends, backend{active.Object, p.next.active.traffic})
		if pending := p.s.cluster(p.pending); pending != nil && !pending.leaving() && p.s.service(raycluster.ServeServiceName(p.pending)) != nil {
			backends = append(backends, backend{pending.Object, p.next.pending.traffic})
		}
	}
	wanted, err := Route(p.service, backends...)
	if err != nil {
		p.block(rayv1.ReasonServiceMissing, err.Error())
		return
	}
	live := p.s.Route
	if live == nil {
		if p.asksForSteps() && p.invalid == nil {
			wanted.Annotations = p.routeMarks(target)
			p.keepRouting(nil, wanted)
		}
		return
	}
	wanted.Annotations = p.routeMarks(target)
	if !action.UpToDate(live, action.Stamp(wanted)) || !sameBackends(live, wanted) {
		wanted.ResourceVersion = live.ResourceVersion
		p.keepRouting(live, wanted)
	}
}

// routeMarks are the annotations of the HTTPRoute that leads to a cluster. A route that is made for the cluster that serves
// already is no cut-over, and says of the last one what the Service says.
func (p *planner) routeMarks(c *Cluster) map[string]string {
	route := p.route()
	if p.promoted != nil || route != nil && route.Annotations[rayv1.AnnotationServesCluster] != "" {
		return p.marks(c)
	}
	if serving := p.s.service(serveServiceName(p.service)); serving != nil && serving.Annotations[rayv1.AnnotationServesCluster] == c.name() {
		return switchAnnotations(serving)
	}
	return map[string]string{rayv1.AnnotationServesCluster: c.name(), rayv1.AnnotationServesGoal: goalOf(c.Object)}
}

// keepRouting asks for the write that makes a Gateway or an HTTPRoute, or brings it to what is wanted.
func (p *planner) keepRouting(live, wanted action.Object) {
	kind := kindOf(wanted)
	version := wanted.GetResourceVersion()
	wanted.SetResourceVersion("")
	stamped := action.Stamp(wanted)
	stamped.SetResourceVersion(version)
	var a action.Action
	switch {
	case live == nil:
		// A create, and not an apply: one that the caches do not show yet may say something else by now.
		a = action.Create{
			Object: stamped, Identity: []string{rayv1.LabelOriginatedFromName}, Group: kind + "/" + wanted.GetName(),
			Why:    "traffic is to move step by step",
			Done:   action.Normal("Created"+kind, "Create", "created "+kind),
			Failed: action.Warning("FailedToCreate"+kind, "Create", "cannot make the "+kind),
		}
	case !p.s.owns(live):
		p.block(rayv1.ReasonNameCollision, fmt.Sprintf("the service needs %s %s, but one of that name exists already and belongs to someone else", kind, wanted.GetName()))
		p.again(collisionPause)
		return
	case live.GetDeletionTimestamp() != nil:
		return
	default:
		a = action.Apply{
			Object: stamped, Observed: live, Why: p.whyRouting(wanted),
			Done:   action.Normal("Updated"+kind, "Update", "updated "+kind),
			Failed: action.Warning("FailedToUpdate"+kind, "Update", "cannot change the "+kind),
		}
	}
	if !p.held(a.Key()) {
		p.do(a)
	}
}

// whyRouting is the reason for a change of a Gateway or an HTTPRoute, for the log.
func (p *planner) whyRouting(wanted action.Object) string {
	route, isRoute := wanted.(*gatewayv1.HTTPRoute)
	switch {
	case !isRoute:
		return "the Gateway differs from what is wanted"
	case p.promoted != nil:
		return fmt.Sprintf("RayCluster %s has taken over", p.promoted.name())
	case p.pending == "":
		return "all traffic is to go to RayCluster " + p.active
	default:
		return fmt.Sprintf("of the traffic %d%% are to go to RayCluster %s", weightOf(route, p.pending), p.pending)
	}
}

// follow switches the Service of Serve after the route: who does not come through the Gateway is to get to the same cluster.
// It waits for a Pod that takes requests there, as long as there is one where the Service leads to now (L53).
func (p *planner) follow() {
	live, active := p.s.service(serveServiceName(p.service)), p.s.cluster(p.active)
	if p.route() == nil || live == nil || active == nil || !p.s.owns(live) || live.Spec.Selector[rayv1.LabelCluster] == p.active {
		return
	}
	if p.takesRequests(active) || readyCount(p.s.Endpoints[live.Name]) == 0 {
		p.switchTo(active)
	}
}

// dropRouting removes the HTTPRoute and the Gateway when nobody asks for steps any more, after the Service of Serve leads to
// the active cluster. It tells whether the route is still there: nothing else can take over while that has the say.
func (p *planner) dropRouting() (routed bool) {
	route, gateway := p.route(), p.gateway()
	switch {
	case p.frozen() || p.asksForSteps():
	case route != nil && p.leads():
		p.drop(route)
	case route == nil && gateway != nil:
		p.drop(gateway)
	}
	return route != nil
}

// leads tells whether requests that do not come through the Gateway get to the active cluster. A cluster that is lost is not
// waited for.
func (p *planner) leads() bool {
	if !p.serves() {
		return true
	}
	serving := p.s.service(serveServiceName(p.service))
	return serving != nil && serving.Spec.Selector[rayv1.LabelCluster] == p.active && readyCount(p.s.Endpoints[serving.Name]) > 0
}

func (p *planner) drop(object action.Object) {
	if object.GetDeletionTimestamp() != nil {
		return
	}
	kind := kindOf(object)
	p.do(action.Delete{
		Object: object, Owner: p.service, Why: "upgradeStrategy asks for no steps any more",
		Done:   action.Normal("Deleted"+kind, "Delete", "deleted "+kind+": upgradeStrategy asks for no steps any more"),
		Failed: action.Warning("FailedToDelete"+kind, "Delete", "cannot delete the "+kind),
	})
}
