package raycluster

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/internal/ray"
)

// DashboardAddress returns host and port of the dashboard that a head Service leads to, without a scheme. It fails while there
// is no Service, and when the Service has no port named "dashboard".
func DashboardAddress(head *corev1.Service, domain string) (string, error) {
	if head == nil {
		return "", errors.New("there is no head Service yet")
	}
	for _, port := range head.Spec.Ports {
		if port.Name == ray.PortNameDashboard {
			return fmt.Sprintf("%s:%d", ServiceHost(head.Name, head.Namespace, domain), port.Port), nil
		}
	}
	return "", fmt.Errorf("Service %s has no port named %q; add a container port of that name to the head's Ray container", head.Name, ray.PortNameDashboard)
}
