package action

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ServiceAsWanted tells whether a live Service has everything that the wanted one names. What the API server fills in
// and what others add makes no difference, so that an apply is asked for only when it would change something.
func ServiceAsWanted(live, wanted *corev1.Service) bool {
	if len(wanted.Spec.Ports) != len(live.Spec.Ports) {
		return false
	}
	return equality.Semantic.DeepDerivative(complete(wanted, live), complete(live, live)) &&
		hasAll(live.Labels, wanted.Labels) && hasAll(live.Annotations, wanted.Annotations)
}

// complete returns the spec with what the API server defaults or allocates, as it did for the live Service.
func complete(service, live *corev1.Service) corev1.ServiceSpec {
	spec := *service.Spec.DeepCopy()
	for i := range spec.Ports {
		completePort(&spec.Ports[i], live.Spec.Ports)
	}
	if spec.HealthCheckNodePort == 0 {
		spec.HealthCheckNodePort = live.Spec.HealthCheckNodePort
	}
	return spec
}

func completePort(port *corev1.ServicePort, live []corev1.ServicePort) {
	if port.Protocol == "" {
		port.Protocol = corev1.ProtocolTCP
	}
	if port.TargetPort == (intstr.IntOrString{}) {
		port.TargetPort = intstr.FromInt32(port.Port)
	}
	for _, other := range live {
		if port.NodePort == 0 && other.Name == port.Name {
			port.NodePort = other.NodePort
		}
	}
}

func hasAll(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}
