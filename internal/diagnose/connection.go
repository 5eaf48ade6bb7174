package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// starting is how long Ray on a head may take until it is ready.
const starting = 5 * time.Minute

// connectionRules are about whether the parts of a cluster, and its clients, reach each other.
func connectionRules() []objectRule {
	return []objectRule{
		{"head-missing", Blocking, headMissing},
		{"head-service-missing", Blocking, headServiceMissing},
		{"head-service-foreign", Blocking, headServiceForeign},
		{"head-service-selector", Blocking, headServiceSelector},
		{"head-service-port", Blocking, headServicePort},

		{"service-no-endpoints", Passing, serviceNoEndpoints},
		{"policy-blocks-gcs", Blocking, policyBlocksGCS},
		{"policy-blocks-dns", Blocking, policyBlocksDNS},
		{"name-not-resolved", Blocking, logRule(nameTrouble())},
		{"mesh-blocks", Blocking, meshBlocks},
		{"token-mismatch", Blocking, logRule(tokenTrouble())},
		{"tls-mismatch", Blocking, logRule(tlsTrouble())},
		{"worker-not-connected", Passing, workerNotConnected},
		{"dashboard-silent", Passing, dashboardSilent},
	}
}

// headService is the Service that leads to the head of a cluster, or nil.
func (s *Snapshot) headService(cluster *rayv1.RayCluster) *corev1.Service {
	for _, name := range headServiceNames(cluster) {
		if service := named(s.Services, name); service != nil {
			return service
		}
	}
	labelled := func(service *corev1.Service) bool {
		return service.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && metav1.IsControlledBy(service, cluster)
	}
	if i := slices.IndexFunc(s.Services, labelled); i >= 0 {
		return s.Services[i]
	}
	return nil
}

// headServiceNames are the names under which the head Service of a cluster may stand, the likeliest first.
func headServiceNames(cluster *rayv1.RayCluster) []string {
	var names []string
	if custom := cluster.Spec.HeadGroupSpec.HeadService; custom != nil && custom.Name != "" {
		names = append(names, custom.Name)
	}
	if name := cluster.Status.Head.ServiceName; name != "" {
		names = append(names, name)
	}
	return append(names, cluster.Name+"-head-svc")
}

// headMissing is silent where the operator says why there is no head.
func headMissing(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		if s.Pods == nil || s.hasPodOf(cluster, rayv1.NodeTypeHead) || s.clusterTroubled(cluster) || s.operatorDown() {
			continue
		}
		o := clusterObject(cluster)
		findings = append(findings, Finding{Reason: rayv1.ReasonHeadPodNotFound, Object: o.String(),
			Message: "there is no head Pod",
			Cause:   fmt.Sprintf("%s has no head Pod, so its workers and its head Service lead nowhere.", o),
			Next: fmt.Sprintf("Read the events with \"kubectl describe raycluster %s\" and the log of the operator: one of "+
				"them says why the head is not made.",
				cluster.Name)})
	}
	return findings
}

// hasPodOf counts Pods that end or have ended, too: they are replaced, or the rules about Pods tell of them.
func (s *Snapshot) hasPodOf(cluster *rayv1.RayCluster, nodeType string) bool {
	return slices.ContainsFunc(s.Pods, func(pod *corev1.Pod) bool {
		return pod.Labels[rayv1.LabelCluster] == cluster.Name && pod.Labels[rayv1.LabelNodeType] == nodeType
	})
}

func headServiceMissing(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		if s.Services == nil || s.headService(cluster) != nil || s.clusterTroubled(cluster) || s.operatorDown() {
			continue
		}
		name := headServiceNames(cluster)[0]
		findings = append(findings, Finding{Reason: "HeadServiceNotFound", Object: "Service " + name,
			Message: "it is not there",
			Cause: fmt.Sprintf("Workers of RayCluster %s look for their head under Service %s, which does "+
				"not exist.", cluster.Name, name),
			Next: fmt.Sprintf("The operator makes Service %s: read the events with \"kubectl describe raycluster %s\" "+
				"to see why it did not.", name, cluster.Name)})
	}
	return findings
}

// headServiceForeign serves where no operator says so. What the operator says is told by name-collision.
func headServiceForeign(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		service := s.headService(cluster)
		if service == nil || collides(cluster) {
			continue
		}
		owner := metav1.GetControllerOf(service)
		if owner == nil || owner.UID == cluster.UID {
			continue
		}
		findings = append(findings, Finding{Reason: rayv1.ReasonNameCollision, Object: "Service " + service.Name,
			Message: fmt.Sprintf("it belongs to %s %s, not to RayCluster %s", owner.Kind, owner.Name, cluster.Name),
			Cause: fmt.Sprintf("Service %s stands where the head Service of RayCluster %s belongs, and is that "+
				"of %s %s.", service.Name, cluster.Name, owner.Kind, owner.Name),
			Next: fmt.Sprintf("Delete Service %s if nobody needs it, so that the operator makes its own, or give "+
				"RayCluster %s another metadata.name.", service.Name, cluster.Name)})
	}
	return findings
}

// ownHeadService is the head Service of a cluster if it is the operator's work, or nil. How a Service of somebody else looks is no fault:
// that it is there is.
func (s *Snapshot) ownHeadService(cluster *rayv1.RayCluster) *corev1.Service {
	service := s.headService(cluster)
	if service == nil || collides(cluster) || !metav1.IsControlledBy(service, cluster) {
		return nil
	}
	return service
}

// collides tells whether the operator says that objects of others stand in the way of a cluster.
func collides(cluster *rayv1.RayCluster) bool {
	return clusterObject(cluster).condition(rayv1.ConditionNameCollision, metav1.ConditionTrue) != nil
}

func headServiceSelector(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		service, head := s.ownHeadService(cluster), s.head(cluster)
		if service == nil || head == nil {
			continue
		}
		keys := differing(service.Spec.Selector, head.Labels)
		if len(keys) == 0 {
			continue
		}
		findings = append(findings, Finding{Reason: "SelectorMismatch", Object: "Service " + service.Name,
			Message: fmt.Sprintf("its selector differs from the labels of Pod %s in %s", head.Name, list(keys)),
			Cause: fmt.Sprintf("Service %s does not find the head Pod %s of RayCluster %s: they "+
				"differ in %s.", service.Name, head.Name, cluster.Name, list(keys)),
			Next: fmt.Sprintf("Take %s out of metadata.labels in spec.headGroupSpec.template of RayCluster %s if it stands "+
				"there, and delete Service %s, so that the "+
				"operator makes it anew.", list(keys), cluster.Name, service.Name)})
	}
	return findings
}

// differing are the keys of a selector for which the labels have another value or none.
func differing(selector, labels map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(selector)), func(key string) bool { return labels[key] == selector[key] })
}

// serviceNoEndpoints is about a head Service that does not know a head which is ready. Where the head is not, or the
// selector misses it, other rules say so.
func serviceNoEndpoints(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		service, head := s.ownHeadService(cluster), s.head(cluster)
		if s.Slices == nil || service == nil || head == nil || s.readyFor(head) < settling || len(service.Spec.Selector) == 0 ||
			len(differing(service.Spec.Selector, head.Labels)) > 0 || s.hasEndpoint(service) {
			continue
		}
		findings = append(findings, Finding{Reason: "NoEndpoints", Object: "Service " + service.Name,
			Message: fmt.Sprintf("no EndpointSlice of it has a ready endpoint, although Pod %s is ready", head.Name),
			Cause: fmt.Sprintf("Kubernetes has not made Pod %s an endpoint of Service %s, so nobody reaches the head "+
				"by name.", head.Name, service.Name),
			Next: fmt.Sprintf("Look at \"kubectl get endpointslices -l %s=%s -o yaml\" and check that "+
				"kube-controller-manager, which writes them, runs.",
				discoveryv1.LabelServiceName, service.Name)})
	}
	return findings
}

// hasEndpoint tells whether a Service has an endpoint that takes connections. An endpoint that says nothing counts as ready.
func (s *Snapshot) hasEndpoint(service *corev1.Service) bool {
	for _, slice := range s.Slices {
		if slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		ready := func(e discoveryv1.Endpoint) bool {
			return len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready)
		}
		if slices.ContainsFunc(slice.Endpoints, ready) {
			return true
		}
	}
	return false
}

// dashboardSilent is silent where it follows from a dashboard on the loopback interface, or from the user's own rights.
func dashboardSilent(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.living() {
		answer, asked := s.Dashboards[cluster.Name]
		head := s.head(cluster)
		if !asked || answer.Error == "" || head == nil || s.readyFor(head) < settling || s.troubled(head) || onLoopback(cluster) ||
			strings.Contains(answer.Error, "forbidden") {
			continue
		}
		findings = append(findings, Finding{Reason: "DashboardDoesNotAnswer", Object: "RayCluster " + cluster.Name,
			Message: shortened(answer.Error),
			Cause: fmt.Sprintf("The head Pod %s is ready, and Ray's dashboard on it does not answer, so jobs and "+
				"applications can be neither submitted nor watched.", head.Name),
			Next: fmt.Sprintf("Read /tmp/ray/session_latest/logs/dashboard.log in Pod %s; check that its image has "+
				"ray[default] and that include-dashboard is not \"false\" "+
				"in spec.headGroupSpec.rayStartParams.", head.Name)})
	}
	return findings
}
