package rayservice

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// Questions are what a plan wants to be asked from now on. What it does not want any more is forgotten.
type Questions struct {
	// Reports are dashboards that are asked for the report of Serve.
	Reports []poll.Target
	// Pods are Serve proxies that are asked for their health, and Pods that are asked for the requests that they serve.
	Pods []poll.Target
}

// askReport has Serve on a cluster asked, and tells whether that can be done.
func (p *planner) askReport(c *Cluster) bool {
	if !headAnswers(c) {
		return false
	}
	address, err := p.address(c)
	if err != nil {
		p.block(rayv1.ReasonServiceMissing, err.Error())
		return false
	}
	p.decision.Reports = append(p.decision.Reports, poll.Target{Owner: reportKey(c.Object), OwnerUID: c.Object.UID, Ask: poll.AskServe,
		BaseURL: address, Secret: raycluster.AuthOf(c.Object).Secret})
	p.expect(c.Report)
	return true
}

// expect has the service looked at again when nothing was heard in this term: the same answer as in the term before wakes
// nobody.
func (p *planner) expect(answer *poll.Observation) {
	if answer == nil {
		p.again(pollAgain)
	}
}

// headLabels asks the Serve proxy of each node for its health, and marks the heads whose proxy is well, because only for
// workers the kubelet keeps requests from Pods whose proxy does not answer from the first moment on. While no operator looks,
// the head's own probe does the rest (RS-W23).
func (p *planner) headLabels() {
	for i := range p.s.Clusters {
		c := &p.s.Clusters[i]
		if c.Object.DeletionTimestamp != nil {
			continue
		}
		if c.name() == p.pending || c.name() == p.active {
			p.askHealth(c)
		}
		if head := c.head(); head != nil && head.DeletionTimestamp == nil {
			p.labelHead(head)
		}
	}
}

func (p *planner) askHealth(c *Cluster) {
	for i := range c.Pods {
		pod := &c.Pods[i]
		if !counts(pod) || !p.proxied(pod) {
			continue
		}
		p.decision.Pods = append(p.decision.Pods, poll.Target{Owner: healthKey(pod.Pod), OwnerUID: pod.UID, Ask: poll.AskProxy,
			BaseURL: p.podURL(pod.Pod, servePort(pod.Pod))})
		p.expect(pod.Health)
	}
}

// askTraffic has the Pods of a retired cluster asked for the requests that they serve.
func (p *planner) askTraffic(c *Cluster) {
	for i := range c.Pods {
		if pod := &c.Pods[i]; counts(pod) {
			p.decision.Pods = append(p.decision.Pods, poll.Target{Owner: trafficKey(pod.Pod), OwnerUID: pod.UID, Ask: poll.AskTraffic,
				BaseURL: p.podURL(pod.Pod, containerPort(pod.Pod, ray.PortNameMetrics, ray.DefaultMetricsPort))})
		}
	}
}

// counts tells whether a Pod may have requests under way.
func counts(pod *Pod) bool {
	return hasAddress(pod.Pod) && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
}

// proxied tells whether a Pod is to take requests, by the rules that the spec gives. Workers are marked when they are made.
func (p *planner) proxied(pod *Pod) bool {
	if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead {
		return !p.service.Spec.ExcludeHeadPodFromServeSvc
	}
	return pod.Labels[rayv1.LabelServe] == "true"
}

func (p *planner) podURL(pod *corev1.Pod, port int32) string {
	if p.settings.ProxiesByName {
		return dashboard.ProxiedPodURL(pod.Namespace, pod.Name, port)
	}
	return dashboard.PodURL(pod.Status.PodIP, port)
}

// servePort is where the Serve proxy of a Pod listens.
func servePort(pod *corev1.Pod) int32 {
	return containerPort(pod, ray.PortNameServe, ray.DefaultServePort)
}

// containerPort is the port of a name of the Ray container, or else the usual one.
func containerPort(pod *corev1.Pod, name string, usual int32) int32 {
	if len(pod.Spec.Containers) == 0 {
		return usual
	}
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return usual
}

// labelHead brings the label by which Services find the head to what its proxy says. Silence before the first answer, and a
// single question that is not answered, change nothing.
func (p *planner) labelHead(head *Pod) {
	value := head.Labels[rayv1.LabelServe]
	switch {
	case p.service.Spec.ExcludeHeadPodFromServeSvc:
		value = "false"
	case head.Health == nil:
		if value == "" {
			value = "false"
		}
	case head.Health.Err == nil:
		value = "true"
	case head.Health.Failures >= leastFailures || value == "":
		value = "false"
	default:
		p.again(pollAgain) // the poller tells of the first failure, not of those after it
	}
	if value == head.Labels[rayv1.LabelServe] {
		return
	}
	next := head.DeepCopy()
	next.Labels = overlay(next.Labels, map[string]string{rayv1.LabelServe: value})
	a := action.Update{
		Object: next, Base: head.Pod, Why: "its Serve proxy makes it " + value + " that requests can be sent to the head",
		Done:   action.Normal("UpdatedHeadPodServeLabel", "Update", "label "+rayv1.LabelServe+" is now "+value+" on head Pod"),
		Failed: action.Warning("FailedToUpdateHeadPodServeLabel", "Update", "cannot set label "+rayv1.LabelServe+" of the head Pod"),
	}
	if !p.held(a.Key()) {
		p.do(a)
	}
}

// pollKeys names the owners of targets.
func pollKeys(all ...[]poll.Target) map[poll.Key]bool {
	keys := map[poll.Key]bool{}
	for _, target := range slices.Concat(all...) {
		keys[target.Owner] = true
	}
	return keys
}
