package raycluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// entrance returns what leads to the dashboard from outside of Kubernetes: an Ingress, or a Route where the settings
// say so. It is nil when the cluster does not ask for it.
func entrance(cluster *rayv1.RayCluster, settings Settings) action.Object {
	switch {
	case !ptr.Deref(cluster.Spec.HeadGroupSpec.EnableIngress, false):
		return nil
	case settings.Routes:
		return headRoute(cluster)
	default:
		return headIngress(cluster)
	}
}

func ingressName(cluster *rayv1.RayCluster) string { return ShortName(cluster.Name + "-head-ingress") }

func headIngress(cluster *rayv1.RayCluster) *networkingv1.Ingress {
	options := cluster.Spec.HeadGroupSpec.IngressOptions.DeepCopy()
	if options == nil {
		options = &rayv1.IngressOptions{}
	}
	pathType := networkingv1.PathType(ptr.Deref(options.PathType, rayv1.IngressPathType(networkingv1.PathTypePrefix)))
	path := networkingv1.HTTPIngressPath{
		Path:     ptr.Deref(options.Path, "/"),
		PathType: &pathType,
		Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: HeadServiceName(cluster),
			Port: networkingv1.ServiceBackendPort{Number: dashboardPort(cluster)},
		}},
	}
	ingress := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: kindIngress},
		ObjectMeta: ownedMeta(cluster, ingressName(cluster)),
		Spec: networkingv1.IngressSpec{
			TLS: options.TLS,
			Rules: []networkingv1.IngressRule{{
				Host: ptr.Deref(options.Host, ""),
				IngressRuleValue: networkingv1.IngressRuleValue{
					HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}},
				},
			}},
		},
	}
	if class := cluster.Annotations[rayv1.AnnotationIngressClass]; class != "" {
		ingress.Spec.IngressClassName = &class
	}
	ingress.Labels[rayv1.LabelIdentifier] = HeadIdentifier(cluster.Name)
	ingress.Annotations = entranceAnnotations(cluster)
	return ingress
}

// entranceAnnotations are those of the cluster's annotations that an Ingress controller may be meant by: all but those of
// Ray and of this operator, and those by which tools tell which objects are theirs.
func entranceAnnotations(cluster *rayv1.RayCluster) map[string]string {
	others := []string{"ray.io/", "heliostat.io/", "kubectl.kubernetes.io/", "argocd.argoproj.io/", "meta.helm.sh/",
		"config.kubernetes.io/", rayv1.AnnotationIngressClass}
	annotations := map[string]string{}
	for key, value := range cluster.Annotations {
		if !slices.ContainsFunc(others, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			annotations[key] = value
		}
	}
	return annotations
}

// dashboardPort is the port of the head that clients take for the dashboard's.
func dashboardPort(cluster *rayv1.RayCluster) int32 {
	for _, port := range declaredPorts(cluster) {
		if port.Name == ray.PortNameDashboard {
			return port.Port
		}
	}
	return ray.DefaultDashboardPort
}

// noteEntrance says when the entrance leads nowhere.
func (p *planner) noteEntrance(head *corev1.Service) {
	number := dashboardPort(p.cluster)
	leads := slices.ContainsFunc(head.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == number })
	if !leads {
		p.notes = append(p.notes, fmt.Sprintf("headGroupSpec.enableIngress leads to port %d of Service %s, which has no such port: "+
			"declare a port named %q in the head's first container", number, head.Name, ray.PortNameDashboard))
	}
}
