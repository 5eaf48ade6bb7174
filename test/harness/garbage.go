package harness

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// ownable are the kinds that own something or are owned by something, owners first.
func ownable() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		rayv1.GroupVersion.WithKind("RayCronJob"),
		rayv1.GroupVersion.WithKind("RayService"),
		rayv1.GroupVersion.WithKind("RayJob"),
		rayv1.GroupVersion.WithKind("RayCluster"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
	}
}

// CollectGarbage plays the garbage collector once: it deletes what has a controller owner that is gone, and what that
// leaves without an owner in turn. Finalizers still hold what they hold.
func (c Cluster) CollectGarbage(t testing.TB, namespace string) {
	t.Helper()
	alive := map[types.UID]bool{}
	for _, kind := range ownable() {
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), objects, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, object := range objects.Items {
			owner := metav1.GetControllerOf(&object)
			if owner == nil || alive[owner.UID] || object.DeletionTimestamp != nil {
				alive[object.UID] = true
				continue
			}
			alive[object.UID] = len(object.Finalizers) > 0
			c.collect(t, kind, object)
		}
	}
}

// collect deletes one object, unless another one has its name by now.
func (c Cluster) collect(t testing.TB, kind schema.GroupVersionKind, object metav1.PartialObjectMetadata) {
	t.Helper()
	object.SetGroupVersionKind(kind)
	err := c.Delete(t.Context(), &object, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		t.Fatalf("collect %s %s: %v", kind.Kind, object.Name, err)
	}
}
