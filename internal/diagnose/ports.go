package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// headServicePort is silent where the user starts Ray by a command of his own: then nobody knows where it listens.
func headServicePort(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.settled() {
		service, head := s.ownHeadService(cluster), s.head(cluster)
		own := strings.EqualFold(cluster.Annotations[rayv1.AnnotationOverwriteContainerCommand], "true")
		if service == nil || head == nil || own {
			continue
		}
		why := portTrouble(cluster, service, head)
		if why == "" {
			continue
		}
		findings = append(findings, Finding{Reason: "WrongPort", Object: "Service " + service.Name, Message: why,
			Cause: fmt.Sprintf("Connections through Service %s do not arrive where Ray listens on the head of "+
				"RayCluster %s: %s.", service.Name, cluster.Name, why),
			Next: fmt.Sprintf("Make ports of the first container in spec.headGroupSpec.template of RayCluster %s agree "+
				"with port and dashboard-port in "+
				"spec.headGroupSpec.rayStartParams; it is simplest to leave out both.", cluster.Name)})
	}
	return findings
}

// portTrouble compares the ports of a head Service with those on which Ray listens. Behind a headless Service clients
// choose the port themselves; only the dashboard's is read from it.
func portTrouble(cluster *rayv1.RayCluster, service *corev1.Service, head *corev1.Pod) string {
	params := cluster.Spec.HeadGroupSpec.RayStartParams
	wanted := map[string]int32{ray.PortNameDashboard: ray.DashboardPort(params)}
	if gcs, err := strconv.ParseInt(ray.GCSPort(params), 10, 32); err == nil && service.Spec.ClusterIP != corev1.ClusterIPNone {
		wanted[ray.PortNameGCS] = int32(gcs)
	}
	for _, name := range []string{ray.PortNameGCS, ray.PortNameDashboard} {
		listens, known := wanted[name]
		if !known {
			continue
		}
		for _, port := range service.Spec.Ports {
			target, ok := targetOf(port, head)
			switch {
			case port.Name != name:
				continue
			case !ok:
				return fmt.Sprintf("port %s leads to the port named %s, which Pod %s does "+
					"not declare", name, port.TargetPort.StrVal, head.Name)
			case target != listens:
				return fmt.Sprintf("port %s leads to %d, and Ray listens on %d", name, target, listens)
			}
		}
	}
	return missingPort(service, head, wanted)
}

// missingPort tells of a Service with an address of its own, which passes on only the ports that it names.
func missingPort(service *corev1.Service, head *corev1.Pod, wanted map[string]int32) string {
	if service.Spec.ClusterIP == corev1.ClusterIPNone || service.Spec.Type == corev1.ServiceTypeExternalName {
		return ""
	}
	for _, name := range []string{ray.PortNameGCS, ray.PortNameDashboard} {
		listens, known := wanted[name]
		leads := func(port corev1.ServicePort) bool {
			target, ok := targetOf(port, head)
			return ok && target == listens
		}
		if known && !slices.ContainsFunc(service.Spec.Ports, leads) {
			return fmt.Sprintf("none of its ports leads to %d, the port %s of Ray", listens, name)
		}
	}
	return ""
}

// targetOf is the port of the Pod to which a port of a Service leads.
func targetOf(port corev1.ServicePort, pod *corev1.Pod) (int32, bool) {
	switch {
	case port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal != 0:
		return port.TargetPort.IntVal, true
	case port.TargetPort.Type == intstr.Int:
		return port.Port, true
	}
	return declared(pod, port.TargetPort.StrVal)
}

// declared is the number of a named port of a Pod.
func declared(pod *corev1.Pod, name string) (int32, bool) {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}
