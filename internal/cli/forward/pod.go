package forward

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodOf returns the Pod behind a Service that takes connections, the newest of several. The error says what stands in the
// way when there is none.
func PodOf(ctx context.Context, c client.Reader, service types.NamespacedName) (*corev1.Service, *corev1.Pod, error) {
	s := &corev1.Service{}
	if err := c.Get(ctx, service, s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("no Service %q in namespace %q", service.Name, service.Namespace)
		}
		return nil, nil, fmt.Errorf("read Service %s: %w", service, err)
	}
	if len(s.Spec.Selector) == 0 {
		return nil, nil, fmt.Errorf("the Service %s selects no Pods, so there is nothing to connect to", service)
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, client.InNamespace(service.Namespace), client.MatchingLabels(s.Spec.Selector)); err != nil {
		return nil, nil, fmt.Errorf("list the Pods of Service %s: %w", service, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	var others []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		if Running(pod) {
			return s, pod, nil
		}
		others = append(others, pod.Name+" is "+state(pod))
	}
	if len(others) == 0 {
		return nil, nil, fmt.Errorf("the Service %s has no Pod", service)
	}
	return nil, nil, fmt.Errorf("the Service %s has no running Pod: %s", service, strings.Join(others, ", "))
}

// Running tells whether a Pod runs and is not on its way out.
func Running(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
}

// state is one word for what a Pod does that does not run.
func state(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "terminating"
	case pod.Status.Phase == "":
		return "pending"
	default:
		return strings.ToLower(string(pod.Status.Phase))
	}
}

// ServicePort is the port of a Service that has this name, or else the other number.
func ServicePort(service *corev1.Service, name string, other int32) int32 {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name })
	if i < 0 {
		return other
	}
	return service.Spec.Ports[i].Port
}

// TargetPort is the port of the Pod that a port of the Service leads to. A port that the Service does not have is taken for
// one of the Pod.
func TargetPort(service *corev1.Service, pod *corev1.Pod, port int32) int32 {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	// A headless Service is only a name: whoever connects to it reaches the port itself.
	if i < 0 || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return port
	}
	target := service.Spec.Ports[i].TargetPort
	if target.Type == intstr.Int {
		if target.IntVal == 0 {
			return port
		}
		return target.IntVal
	}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == target.StrVal {
				return p.ContainerPort
			}
		}
	}
	return port
}
