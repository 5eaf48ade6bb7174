package rayservice

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// retire takes down the clusters that have no part in the service any more, each in three steps that are written on it: it
// is retired, and may be wanted again; it is abandoned, when its time is over and its requests have ended; it is deleted.
// One that any Service or route of ours leads to is neither abandoned nor deleted, whatever the status says (RS-W3).
func (p *planner) retire() {
	for i := range p.s.Clusters {
		c := &p.s.Clusters[i]
		stays := c.name() == p.pending || c.name() == p.active || p.takesTraffic(c.name()) || p.losesHeadService(c.name())
		if !stays && c.Object.DeletionTimestamp == nil {
			p.retireCluster(c)
		}
	}
}

// takesTraffic tells whether a Service of Serve, or the route, sends requests to a cluster.
func (p *planner) takesTraffic(name string) bool { return p.servesThrough(name) || p.routesTo(name) }

// servesThrough tells whether a Service of Serve leads to a cluster.
func (p *planner) servesThrough(name string) bool {
	return slices.ContainsFunc(p.s.Services, func(service *corev1.Service) bool {
		return (service.Name == serveServiceName(p.service) || p.isServeService(service)) && selects(service, name)
	})
}

// losesHeadService tells whether the head Service leads to a cluster and is about to follow the active one. Where there is no
// active one, it leads to a cluster that never served: that is retired, since the next one is not made before, and keeps the
// head Service until the next one takes it over.
func (p *planner) losesHeadService(name string) bool {
	return p.s.cluster(p.active) != nil && p.headLeadsTo(name)
}

// headLeadsTo tells whether the head Service leads to a cluster.
func (p *planner) headLeadsTo(name string) bool {
	head := p.s.service(headServiceName(p.service))
	return head != nil && selects(head, name)
}

func selects(service *corev1.Service, cluster string) bool {
	return service.Spec.Selector[rayv1.LabelCluster] == cluster
}

func (p *planner) retireCluster(c *Cluster) {
	since, retired := retiredAt(c)
	switch {
	case !retired && c.Object.Annotations[rayv1.AnnotationAbandoned] == "":
		p.mark(c, rayv1.AnnotationRetiredAt, "it has no part in the service any more")
		p.again(p.deletionDelay())
	case p.headLeadsTo(c.name()):
		// The write that takes it away brings the next pass.
	case c.Object.Annotations[rayv1.AnnotationAbandoned] != "":
		p.deleteCluster(c, "it has no part in the service any more")
	case p.served(c, since):
		p.mark(c, rayv1.AnnotationAbandoned, "it was kept as long as was asked for, and its requests have ended")
	}
}

// reasonDrainLimit is the reason of the event for a cluster that is deleted although requests may be under way on it.
const reasonDrainLimit = "DrainLimitReached"

// served tells whether a retired cluster has been kept long enough: for the delay that is asked for, and until its requests
// have ended, within a limit.
func (p *planner) served(c *Cluster, since time.Time) bool {
	p.askTraffic(c)
	kept := p.now.Sub(since)
	if left := p.deletionDelay() - kept; left > 0 {
		// Two operators' clocks may differ; no wait is longer than the delay itself.
		p.again(min(left, p.deletionDelay()))
		return false
	}
	busy := p.busy(c)
	if busy == "" {
		return true
	}
	if kept > max(p.drainLimit(), p.deletionDelay()) {
		p.tell(action.Warning(reasonDrainLimit, "Delete", fmt.Sprintf("RayCluster %s is deleted after %s although %s", c.name(), kept.Round(time.Second), busy)))
		return true
	}
	p.again(pollAgain)
	return false
}

// busy says why a retired cluster may still serve requests, or nothing. A Pod that does not tell for long, because nobody can
// reach its metrics, or of which Serve counts nothing, holds up nothing beyond the delay, unless its last word was of requests
// under way.
func (p *planner) busy(c *Cluster) string {
	behind := map[types.UID]bool{}
	for _, endpoint := range p.s.Endpoints[serveServiceName(p.service)] {
		behind[endpoint.Pod] = true
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		switch {
		case behind[pod.UID]:
			return fmt.Sprintf("Service %s still leads to Pod %s", serveServiceName(p.service), pod.Name)
		case !counts(pod):
		case pod.Traffic == nil, pod.Traffic.Err != nil && p.now.Sub(pod.Traffic.FailingSince) < silence:
			return fmt.Sprintf("Pod %s does not tell of its requests", pod.Name)
		case pod.Traffic.Traffic == nil || !pod.Traffic.Traffic.Reported:
		case pod.Traffic.Traffic.Ongoing > 0:
			return fmt.Sprintf("Pod %s has %.0f requests under way", pod.Name, pod.Traffic.Traffic.Ongoing)
		case pod.Traffic.Err != nil:
		case pod.Traffic.QuietSince.IsZero() || p.now.Sub(pod.Traffic.QuietSince) < quietTime:
			return fmt.Sprintf("Pod %s served requests a moment ago", pod.Name)
		}
	}
	return ""
}

func retiredAt(c *Cluster) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, c.Object.Annotations[rayv1.AnnotationRetiredAt])
	return at, err == nil
}

func (p *planner) mark(c *Cluster, annotation, why string) {
	next := c.Object.DeepCopy()
	next.Annotations = overlay(next.Annotations, map[string]string{annotation: p.now.UTC().Format(time.RFC3339)})
	p.do(action.Update{Object: next, Base: c.Object, Why: why,
		Failed: action.Warning("FailedToUpdateRayCluster", "Update", "cannot mark the RayCluster")})
}

func (p *planner) deleteCluster(c *Cluster, why string) {
	p.do(action.Delete{
		Object: c.Object, Owner: p.service, Why: why,
		Done:   action.Normal("DeletedRayCluster", "Delete", "deleted RayCluster: "+why),
		Failed: action.Warning("FailedToDeleteRayCluster", "Delete", "cannot delete the RayCluster"),
	})
}

func (p *planner) deletionDelay() time.Duration {
	if seconds := p.service.Spec.RayClusterDeletionDelaySeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return defaultDeletionDelay
}

// drainLimit is how long a retired cluster may be kept for requests that do not end.
func (p *planner) drainLimit() time.Duration {
	limit, err := drainTimeout(p.service)
	if err != nil {
		return defaultDrain
	}
	return limit
}

// drainTimeout reads the annotation that sets the limit: a whole number of seconds.
func drainTimeout(service *rayv1.RayService) (time.Duration, error) {
	text := service.Annotations[rayv1.AnnotationDrainTimeout]
	if text == "" {
		return defaultDrain, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number of seconds", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// deleted takes the clusters down at once, and then lets the RayService go. Its other objects follow it.
func (p *planner) deleted() {
	if !slices.Contains(p.s.Service.Finalizers, rayv1.FinalizerRayService) {
		return
	}
	if p.deleteClusters("the RayService is deleted") > 0 {
		return
	}
	var rest []string
	for _, finalizer := range p.s.Service.Finalizers {
		if finalizer != rayv1.FinalizerRayService {
			rest = append(rest, finalizer)
		}
	}
	p.do(action.Finalizers{Object: p.s.Service, Want: rest, Why: "all clusters are gone"})
}

// deleteClusters deletes those that are not being deleted, and returns how many are still there.
func (p *planner) deleteClusters(why string) int {
	for i := range p.s.Clusters {
		if c := &p.s.Clusters[i]; c.Object.DeletionTimestamp == nil {
			p.deleteCluster(c, why)
		}
	}
	return len(p.s.Clusters)
}
