package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// securityRules are about who can reach a cluster.
func securityRules() []objectRule {
	return []objectRule{{"dashboard-exposed", Blocking, dashboardExposed}}
}

// dashboardExposed goes by what an Ingress says about itself: one whose annotations ask for authentication counts as safe.
func dashboardExposed(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.living() {
		if asksForToken(cluster) {
			continue
		}
		add := func(object, how string) {
			findings = append(findings, Finding{Reason: "DashboardExposed", Object: object, Message: how + ", and Ray asks for no token",
				Cause: fmt.Sprintf("Whoever reaches %s can run any program on RayCluster %s, because its "+
					"spec.authOptions.mode is not token.", object, cluster.Name),
				Next: fmt.Sprintf("Set spec.authOptions.mode of RayCluster %s to token (Ray 2.52.0 or newer), or close the "+
					"way: spec.headGroupSpec.serviceType ClusterIP, "+
					"spec.headGroupSpec.enableIngress false, and kubectl port-forward instead.", cluster.Name)})
		}
		if service := s.headService(cluster); service != nil && exposes(service) {
			add("Service "+service.Name, fmt.Sprintf("its type is %s", service.Spec.Type))
		}
		for _, ingress := range s.entrances(cluster) {
			if !guarded(ingress) {
				add("Ingress "+ingress.Name, "it leads to the dashboard")
			}
		}
	}
	return findings
}

func guarded(ingress *networkingv1.Ingress) bool {
	return slices.ContainsFunc([]string{"auth", "middlewares", "whitelist", "allowlist", "internal"}, func(word string) bool {
		return hasWord(ingress.Annotations, word)
	})
}

// asksForToken tells whether Ray on the cluster asks its clients for a token, by the spec or by the user's own environment.
func asksForToken(cluster *rayv1.RayCluster) bool {
	if a := cluster.Spec.AuthOptions; a != nil && a.Mode == rayv1.AuthModeToken {
		return true
	}
	containers := cluster.Spec.HeadGroupSpec.Template.Spec.Containers
	return len(containers) > 0 && slices.ContainsFunc(containers[0].Env, func(e corev1.EnvVar) bool {
		return e.Name == ray.EnvAuthMode && e.Value == string(rayv1.AuthModeToken)
	})
}

// exposes tells whether a Service has an address outside of the Kubernetes cluster. Load balancers that are marked as
// internal have none.
func exposes(service *corev1.Service) bool {
	switch service.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true
	case corev1.ServiceTypeLoadBalancer:
		return len(service.Spec.LoadBalancerSourceRanges) == 0 && !hasWord(service.Annotations, "internal")
	default:
		return false
	}
}

// hasWord tells whether a word stands in a key or value of annotations.
func hasWord(annotations map[string]string, word string) bool {
	for key, value := range annotations {
		if strings.Contains(strings.ToLower(key+"="+value), word) {
			return true
		}
	}
	return false
}
