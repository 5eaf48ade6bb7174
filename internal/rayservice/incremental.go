package rayservice

import (
	"slices"
	"time"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// asksForSteps tells whether the spec asks that traffic moves step by step.
func (p *planner) asksForSteps() bool {
	return p.strategy() == rayv1.RayServiceNewClusterWithIncrementalUpgrade && p.settings.Incremental
}

// incremental tells whether traffic moves step by step, through a Gateway: because the spec asks for it, or because it has
// begun and is to be brought to its end whatever the spec asks for by then (RS-W7).
func (p *planner) incremental() bool { return p.asksForSteps() || p.partner(p.active) != "" }

// pace is how fast capacity and traffic move.
type pace struct {
	surge, step int32
	interval    time.Duration
	// atOnce means that nobody asks for steps any more.
	atOnce bool
}

func (p *planner) pace() pace {
	strategy := p.service.Spec.UpgradeStrategy
	if !p.asksForSteps() || strategy.ClusterUpgradeOptions == nil {
		return pace{surge: whole, step: whole, atOnce: true}
	}
	options := strategy.ClusterUpgradeOptions
	return pace{
		surge:    ptr.Deref(options.MaxSurgePercent, whole),
		step:     ptr.Deref(options.StepSizePercent, whole),
		interval: time.Duration(ptr.Deref(options.IntervalSeconds, 0)) * time.Second,
	}
}

// route is the HTTPRoute, nil when there is none of ours.
func (p *planner) route() *gatewayv1.HTTPRoute {
	if p.s.Route == nil || !p.s.owns(p.s.Route) {
		return nil
	}
	return p.s.Route
}

// gateway is the Gateway, nil when there is none of ours.
func (p *planner) gateway() *gatewayv1.Gateway {
	if p.s.Gateway == nil || !p.s.owns(p.s.Gateway) {
		return nil
	}
	return p.s.Gateway
}

// routed is the cluster that serves by the word of the HTTPRoute, or empty. When that one is lost, the one that gets the rest
// of the traffic serves: it has proved that it can, and nothing else is left (RS-W4).
func (p *planner) routed() string {
	route := p.route()
	if route == nil {
		return ""
	}
	name := route.Annotations[rayv1.AnnotationServesCluster]
	if name == "" {
		// KubeRay's routes do not say.
		name = p.st.ActiveServiceStatus.RayClusterName
	}
	if name == "" || p.alive(name) {
		return name
	}
	if other := p.partner(name); other != "" {
		return other
	}
	return name
}

// partner is the cluster that the HTTPRoute sends traffic to besides another one, or empty.
func (p *planner) partner(other string) string {
	route := p.route()
	if route == nil {
		return ""
	}
	for _, backend := range slices.Backward(p.s.Clusters) {
		if name := backend.name(); name != other && weightOf(route, name) > 0 && !backend.leaving() {
			return name
		}
	}
	return ""
}

// routesTo tells whether the HTTPRoute sends any traffic to a cluster.
func (p *planner) routesTo(name string) bool {
	return p.route() != nil && weightOf(p.route(), name) > 0
}

// alive tells whether there is a cluster of a name that is not on its way out.
func (p *planner) alive(name string) bool {
	c := p.s.cluster(name)
	return c != nil && !c.leaving()
}

// serves tells whether the active cluster can be reckoned with: it is there, and not on its way out.
func (p *planner) serves() bool { return p.alive(p.active) }

// takesRequests tells whether a Pod of a cluster takes requests.
func (p *planner) takesRequests(c *Cluster) bool {
	return readyCount(p.s.Endpoints[raycluster.ServeServiceName(c.name())]) > 0
}
