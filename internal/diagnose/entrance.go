package diagnose

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// entrances are the Ingresses that lead to the head Service of a cluster.
func (s *Snapshot) entrances(cluster *rayv1.RayCluster) []*networkingv1.Ingress {
	service := s.headService(cluster)
	return slices.DeleteFunc(slices.Clone(s.Ingresses), func(ingress *networkingv1.Ingress) bool {
		if ingress.DeletionTimestamp != nil {
			return true
		}
		return ingress.Labels[rayv1.LabelCluster] != cluster.Name && (service == nil || !leadsTo(ingress, service.Name))
	})
}

// leadsTo tells whether an Ingress leads to a Service, and not to Serve behind it.
func leadsTo(ingress *networkingv1.Ingress, service string) bool {
	is := func(b *networkingv1.IngressBackend) bool {
		if b == nil || b.Service == nil || b.Service.Name != service {
			return false
		}
		return b.Service.Port.Name != ray.PortNameServe && b.Service.Port.Number != ray.DefaultServePort
	}
	if is(ingress.Spec.DefaultBackend) {
		return true
	}
	for _, rule := range ingress.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		if slices.ContainsFunc(rule.HTTP.Paths, func(p networkingv1.HTTPIngressPath) bool { return is(&p.Backend) }) {
			return true
		}
	}
	return false
}

func ingressNoClass(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.living() {
		for _, ingress := range s.entrances(cluster) {
			why := s.ingressClassTrouble(ingress)
			if why == "" {
				continue
			}
			findings = append(findings, Finding{Reason: "IngressClassNotFound", Object: "Ingress " + ingress.Name, Message: why,
				Cause: fmt.Sprintf("No ingress controller serves Ingress %s: %s.", ingress.Name, why),
				Next: fmt.Sprintf("Set the annotation %s on RayCluster %s to a class that \"kubectl get ingressclass\" "+
					"shows, or install an ingress "+
					"controller.", rayv1.AnnotationIngressClass, cluster.Name)})
		}
	}
	return findings
}

// ingressClassTrouble is why no controller takes an Ingress, as far as its class tells. A class in the old annotation needs
// no IngressClass.
func (s *Snapshot) ingressClassTrouble(ingress *networkingv1.Ingress) string {
	class := ingress.Spec.IngressClassName
	switch {
	case s.IngressClasses == nil, ingress.Annotations[rayv1.AnnotationIngressClass] != "":
		return ""
	case class == nil:
		isDefault := func(c *networkingv1.IngressClass) bool {
			return c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		}
		if slices.ContainsFunc(s.IngressClasses, isDefault) {
			return ""
		}
		return "it names no class, and no IngressClass is the default"
	case named(s.IngressClasses, *class) == nil:
		return fmt.Sprintf("there is no IngressClass %s", *class)
	default:
		return ""
	}
}

func ingressNoAddress(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.living() {
		for _, ingress := range s.entrances(cluster) {
			young := s.youngerThan(ingress.CreationTimestamp, provisioning)
			if young || len(ingress.Status.LoadBalancer.Ingress) > 0 || s.ingressClassTrouble(ingress) != "" {
				continue
			}
			findings = append(findings, Finding{Reason: "IngressNoAddress", Object: "Ingress " + ingress.Name,
				Message: "its status has no address",
				Cause: fmt.Sprintf("The ingress controller has given Ingress %s no address, so nothing outside may reach "+
					"the dashboard of RayCluster %s.", ingress.Name, cluster.Name),
				Next: fmt.Sprintf("See \"kubectl describe ingress %s\" and the log of the ingress controller; check "+
					"that it runs and that its own Service has an address.", ingress.Name)})
		}
	}
	return findings
}
