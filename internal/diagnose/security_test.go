package diagnose

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestExposure(t *testing.T) {
	// open takes away the token, and the Ingress of the healthy cluster with it.
	open := func(s *Snapshot) { demo(s).Spec.AuthOptions, s.Ingresses = nil, nil }
	of := func(kind corev1.ServiceType) func(*Snapshot) {
		return func(s *Snapshot) {
			open(s)
			s.Services[0].Spec.Type = kind
		}
	}
	service := []string{"dashboard-exposed Service demo-head-svc"}
	testWhole(t, map[string]wholeCase{
		"a load balancer": {of(corev1.ServiceTypeLoadBalancer), service},
		"a node port":     {of(corev1.ServiceTypeNodePort), service},
		"neither":         {open, nil},
		"a load balancer with a token": {func(s *Snapshot) {
			s.Services[0].Spec.Type = corev1.ServiceTypeLoadBalancer
		}, nil},
		"a load balancer with a token from the user's own variable": {func(s *Snapshot) {
			of(corev1.ServiceTypeLoadBalancer)(s)
			c := &demo(s).Spec.HeadGroupSpec.Template.Spec.Containers[0]
			c.Env = append(c.Env, corev1.EnvVar{Name: "RAY_AUTH_MODE", Value: "token"})
		}, nil},
		"an internal load balancer": {func(s *Snapshot) {
			of(corev1.ServiceTypeLoadBalancer)(s)
			s.Services[0].Annotations = map[string]string{"networking.gke.io/load-balancer-type": "Internal"}
		}, nil},
		"a load balancer for some addresses": {func(s *Snapshot) {
			of(corev1.ServiceTypeLoadBalancer)(s)
			s.Services[0].Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
		}, nil},
		"an Ingress": {func(s *Snapshot) { demo(s).Spec.AuthOptions.Mode = rayv1.AuthModeDisabled }, []string{"dashboard-exposed Ingress demo-head-ingress"}},
		"an Ingress that asks who it is": {func(s *Snapshot) {
			demo(s).Spec.AuthOptions = nil
			s.Ingresses[0].Annotations = map[string]string{"nginx.ingress.kubernetes.io/auth-url": "https://sso"}
		}, nil},
		"an Ingress to Serve": {func(s *Snapshot) {
			demo(s).Spec.AuthOptions, s.Ingresses[0].Labels = nil, nil
			s.Ingresses[0].Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "demo-head-svc", Port: networkingv1.ServiceBackendPort{Number: 8000}}}
		}, nil},
		"an Ingress of the user's own to the dashboard": {func(s *Snapshot) {
			demo(s).Spec.AuthOptions, s.Ingresses[0].Labels = nil, nil
			s.Ingresses[0].Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "demo-head-svc", Port: networkingv1.ServiceBackendPort{Number: 8265}}}
		}, []string{"dashboard-exposed Ingress demo-head-ingress"}},
	})
}
