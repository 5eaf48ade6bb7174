package rayservice

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// takeOver moves the traffic to the pending cluster when that has proved that it can take it. The move is one write: that
// of the Service of Serve, or of the HTTPRoute. Everything else follows from it and can be done by whoever leads then.
func (p *planner) takeOver() {
	pending := p.s.cluster(p.pending)
	switch {
	case p.incremental():
		p.shift(pending)
	case p.dropRouting():
		p.waiting = "the HTTPRoute is to be removed first"
		p.remake()
		p.follow()
	case pending == nil:
		p.remake()
	default:
		p.switchWhenProved(pending)
	}
}

func (p *planner) switchWhenProved(pending *Cluster) {
	if p.waiting = p.unproved(pending); p.waiting != "" {
		p.again(pollAgain)
		return
	}
	p.switchTo(pending)
}

// firstReady is the pending cluster of a service of which nothing serves, if its applications run.
func (p *planner) firstReady() *Cluster {
	if pending := p.s.cluster(p.pending); pending != nil && p.notRunning(pending) == "" {
		return pending
	}
	return nil
}

// unproved says what is missing before a cluster may take all traffic, or nothing. Where nothing serves, there is no
// traffic to be lost, and running applications are enough.
func (p *planner) unproved(c *Cluster) string {
	if why := p.notRunning(c); why != "" {
		return why
	}
	if active := p.s.cluster(p.active); active == nil || active.leaving() {
		return ""
	}
	return p.withoutEndpoints(c)
}

// notRunning says which applications of the config do not run on a cluster as the config has them, or nothing. Only a
// report that was given since the last config was sent counts.
func (p *planner) notRunning(c *Cluster) string {
	_, retired := retiredAt(c)
	switch {
	case p.config == nil:
		return "serveConfigV2 cannot be used"
	case retired && c.name() == p.pending:
		// It may have been given up meanwhile, which the caches do not show. Taking the mark back shows which of the two it is.
		return fmt.Sprintf("RayCluster %s was retired, and is to be taken back first", c.name())
	case !reported(c):
		return fmt.Sprintf("Serve on RayCluster %s does not answer yet", c.name())
	case c.Sending || c.Put != nil && c.Put.Err == nil && !c.Report.Answered.After(c.Put.At):
		return fmt.Sprintf("Serve on RayCluster %s was just given its config", c.name())
	case !c.applied(p.config):
		return fmt.Sprintf("Serve on RayCluster %s does not have the config: %s", c.name(), p.config.Difference(c.Report.Serve))
	}
	for _, name := range p.config.ApplicationNames() {
		application := c.Report.Serve.Applications[name]
		if application.Status != dashboard.ApplicationRunning {
			return strings.TrimSpace(fmt.Sprintf("application %s on RayCluster %s is %s %s", displayed(name), c.name(), application.Status, application.Says()))
		}
	}
	return ""
}

// displayed is the name of an application as the status shows it.
func displayed(name string) string {
	if name == "" {
		return "default"
	}
	return name
}

// withoutEndpoints says which Pods with a healthy proxy do not take requests yet through the cluster's own Service, or have not
// answered themselves; or nothing.
func (p *planner) withoutEndpoints(c *Cluster) string {
	service := raycluster.ServeServiceName(c.name())
	ready := map[string]bool{}
	for _, endpoint := range p.s.Endpoints[service] {
		ready[string(endpoint.Pod)] = endpoint.Ready
	}
	serving, missing := 0, []string{}
	for i := range c.Pods {
		pod := &c.Pods[i]
		answers := pod.Health != nil && pod.Health.Err == nil
		switch {
		case ready[string(pod.UID)] && answers:
			serving++
		case ready[string(pod.UID)], p.proxied(pod) && proxyHealthy(c, pod):
			missing = append(missing, pod.Name)
		}
	}
	switch {
	case len(missing) > 0:
		return fmt.Sprintf("Pods that have a Serve proxy and do not take requests yet: %s", strings.Join(missing, ", "))
	case serving == 0:
		return fmt.Sprintf("Service %s has no ready endpoint", service)
	default:
		return ""
	}
}

// healthyProxy is the status of a proxy that takes requests.
const healthyProxy = "HEALTHY"

// proxyHealthy tells whether Serve reports a healthy proxy on a Pod.
func proxyHealthy(c *Cluster, pod *Pod) bool {
	for _, proxy := range c.Report.Serve.Proxies {
		if proxy.Status == healthyProxy && (proxy.NodeIP == pod.Status.PodIP || proxy.NodeInstanceID == pod.Name) {
			return true
		}
	}
	return false
}

// switchTo is the cut-over: one write that is refused if the Service is not as it was observed.
func (p *planner) switchTo(c *Cluster) {
	wanted, err := ServeService(p.service, c.Object)
	if err != nil {
		reason := rayv1.ReasonServiceMissing
		if !errors.Is(err, errNoServePort) {
			reason = rayv1.ReasonSpecInvalid
		}
		p.block(reason, err.Error())
		return
	}
	wanted.Annotations = overlay(wanted.Annotations, p.marks(c))
	if live := p.s.service(wanted.Name); live != nil {
		wanted.ResourceVersion = live.ResourceVersion
		p.keep(wanted, p.service)
		return
	}
	// A create, and not an apply: one that the caches do not show yet may lead to another cluster by now.
	a := action.Create{
		Object: action.Stamp(wanted), Identity: []string{rayv1.LabelServe}, Group: serviceKey(wanted.Name), Why: "requests are to get to RayCluster " + c.name(),
		Done:   action.Normal("CreatedService", "Create", "created Service"),
		Failed: action.Warning("FailedToCreateService", "Create", "cannot make the Service"),
	}
	if !p.held(a.Group) {
		p.do(a)
	}
}

// remake makes the Service of Serve again when somebody deleted it, for the cluster that it led to.
func (p *planner) remake() {
	active := p.s.cluster(p.active)
	if active == nil || active.leaving() || p.s.service(serveServiceName(p.service)) != nil {
		return
	}
	p.switchTo(active)
}

// marks are the annotations of what leads to a cluster. They are those of the route where that leads to the cluster already,
// and else a new record: the write of it is the cut-over.
func (p *planner) marks(c *Cluster) map[string]string {
	from := p.active
	if route := p.route(); route != nil {
		if route.Annotations[rayv1.AnnotationServesCluster] == c.name() {
			return switchAnnotations(route)
		}
		from = cmp.Or(route.Annotations[rayv1.AnnotationServesCluster], from)
	}
	why := rayv1.CutOverUpgrade
	switch {
	case from == "":
		why = rayv1.CutOverFirstStart
	case !p.alive(from):
		why = rayv1.CutOverRecovery
	}
	return map[string]string{
		rayv1.AnnotationServesCluster: c.name(),
		rayv1.AnnotationServesGoal:    goalOf(c.Object),
		rayv1.AnnotationSwitchedAt:    p.now.UTC().Format(time.RFC3339),
		rayv1.AnnotationSwitchedFrom:  from,
		rayv1.AnnotationSwitchReason:  why,
	}
}

// switchAnnotations are those of the last cut-over.
func switchAnnotations(object action.Object) map[string]string {
	kept := map[string]string{}
	for _, key := range []string{rayv1.AnnotationServesCluster, rayv1.AnnotationServesGoal, rayv1.AnnotationSwitchedAt,
		rayv1.AnnotationSwitchedFrom, rayv1.AnnotationSwitchReason} {
		if value, ok := object.GetAnnotations()[key]; ok {
			kept[key] = value
		}
	}
	return kept
}
