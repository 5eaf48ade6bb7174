package action

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestServiceAsWanted(t *testing.T) {
	wanted := func() *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{{Name: "dashboard", Port: 8265, AppProtocol: ptr.To("tcp")}}}}
	}
	// stored is what a real API server answers to a create of wanted with type NodePort.
	stored := func() *corev1.Service {
		s := wanted()
		s.Spec.Type, s.Spec.SessionAffinity, s.Spec.ClusterIP = corev1.ServiceTypeNodePort, corev1.ServiceAffinityNone, "10.96.0.7"
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
		s.Spec.Ports[0].Protocol, s.Spec.Ports[0].TargetPort, s.Spec.Ports[0].NodePort = "TCP", intstr.FromInt32(8265), 30123
		return s
	}
	for name, tc := range map[string]struct {
		edit func(live, wanted *corev1.Service)
		want bool
	}{
		"as the API server stored it": {func(_, _ *corev1.Service) {}, true},
		"others added a label":        {func(live, _ *corev1.Service) { live.Labels["mesh"] = "on" }, true},
		"a label was changed":         {func(live, _ *corev1.Service) { live.Labels["a"] = "c" }, false},
		"an annotation is wanted":     {func(_, wanted *corev1.Service) { wanted.Annotations = map[string]string{"k": "v"} }, false},
		"the selector was changed":    {func(live, _ *corev1.Service) { live.Spec.Selector["app"] = "y" }, false},
		"a port is wanted": {func(_, w *corev1.Service) {
			w.Spec.Ports = append(w.Spec.Ports, corev1.ServicePort{Name: "serve", Port: 8000})
		}, false},
		"a port is not wanted any more": {func(live, _ *corev1.Service) {
			live.Spec.Ports = append(live.Spec.Ports, corev1.ServicePort{Name: "old", Port: 1})
		}, false},
		"a port goes elsewhere":        {func(live, _ *corev1.Service) { live.Spec.Ports[0].TargetPort = intstr.FromInt32(1) }, false},
		"another node port is wanted":  {func(_, w *corev1.Service) { w.Spec.Ports[0].NodePort = 30999 }, false},
		"not ready addresses as well":  {func(_, w *corev1.Service) { w.Spec.PublishNotReadyAddresses = true }, false},
		"another type of Service":      {func(_, w *corev1.Service) { w.Spec.Type = corev1.ServiceTypeLoadBalancer }, false},
		"a health check port was made": {func(live, _ *corev1.Service) { live.Spec.HealthCheckNodePort = 31000 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			live, w := stored(), wanted()
			tc.edit(live, w)
			if got := ServiceAsWanted(live, w); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
