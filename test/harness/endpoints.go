package harness

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sliceController is by what Kubernetes marks the EndpointSlices that it looks after.
const sliceController = "endpointslice-controller.k8s.io"

// EndpointSlices plays the controller of EndpointSlices once: each Service with a selector has one slice of all Pods that it
// selects, with the labels of the Service. Slices that a test has made are left alone.
func (c Cluster) EndpointSlices(t testing.TB, namespace string) {
	t.Helper()
	services := &corev1.ServiceList{}
	if err := c.List(t.Context(), services, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	if len(services.Items) == 0 {
		return
	}
	list := &discoveryv1.EndpointSliceList{}
	if err := c.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: sliceController}); err != nil {
		t.Fatal(err)
	}
	slicesOf := map[string]*discoveryv1.EndpointSlice{}
	for i := range list.Items {
		slicesOf[list.Items[i].Name] = &list.Items[i]
	}
	pods := c.Pods(t, namespace, nil)
	for i := range services.Items {
		service := &services.Items[i]
		if len(service.Spec.Selector) > 0 && service.DeletionTimestamp == nil {
			wanted := sliceOf(service, pods)
			c.writeSlice(t, slicesOf[wanted.Name], wanted)
		}
	}
}

// writeSlice brings one slice to what is wanted, if it is not that yet. A Service that is gone meanwhile takes its slice along.
func (c Cluster) writeSlice(t testing.TB, live, wanted *discoveryv1.EndpointSlice) {
	t.Helper()
	var err error
	switch {
	case live == nil:
		err = client.IgnoreAlreadyExists(c.Create(t.Context(), wanted))
	case maps.Equal(live.Labels, wanted.Labels) && equality.Semantic.DeepEqual(live.Endpoints, wanted.Endpoints) &&
		equality.Semantic.DeepEqual(live.Ports, wanted.Ports) && equality.Semantic.DeepEqual(live.OwnerReferences, wanted.OwnerReferences):
		return
	default:
		wanted.ResourceVersion = live.ResourceVersion
		err = client.IgnoreNotFound(c.Update(t.Context(), wanted))
	}
	if err != nil && !apierrors.IsConflict(err) {
		t.Fatalf("write EndpointSlice %s: %v", wanted.Name, err)
	}
}

// sliceOf is the slice of a Service as Kubernetes makes it.
func sliceOf(service *corev1.Service, pods []corev1.Pod) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-ipv4", Labels: maps.Clone(service.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	if slice.Labels == nil {
		slice.Labels = map[string]string{}
	}
	slice.Labels[discoveryv1.LabelServiceName] = service.Name
	slice.Labels[discoveryv1.LabelManagedBy] = sliceController
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		slice.Labels[corev1.IsHeadlessService] = ""
	}
	for _, port := range service.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To(port.Name), Protocol: ptr.To(port.Protocol),
			Port: ptr.To(port.TargetPort.IntVal), AppProtocol: port.AppProtocol})
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for i := range pods {
		if pod := &pods[i]; selector.Matches(labels.Set(pod.Labels)) && reachable(pod) {
			slice.Endpoints = append(slice.Endpoints, endpointOf(pod, service.Spec.PublishNotReadyAddresses))
		}
	}
	return slice
}

// reachable tells whether a Pod is listed at all: it has an address, and has not ended.
func reachable(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// endpointOf is what a slice says of a Pod. A terminating one serves as long as it is ready, and takes nothing new.
func endpointOf(pod *corev1.Pod, publishNotReady bool) discoveryv1.Endpoint {
	serving := publishNotReady || podIsReady(pod)
	terminating := pod.DeletionTimestamp != nil
	return discoveryv1.Endpoint{
		Addresses: []string{pod.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{
			Ready: ptr.To(publishNotReady || serving && !terminating), Serving: &serving, Terminating: &terminating,
		},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
}
