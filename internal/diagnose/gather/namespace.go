package gather

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/diagnose"
)

// namespaced reads what Pods and Services in the namespace need.
func (g *gatherer) namespaced(ctx context.Context) {
	s, here := g.snapshot, g.here()
	s.Services = read(ctx, g, &corev1.ServiceList{}, func(l *corev1.ServiceList) []corev1.Service { return l.Items }, here)
	s.Slices = read(ctx, g, &discoveryv1.EndpointSliceList{}, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items }, here)
	s.Ingresses = read(ctx, g, &networkingv1.IngressList{}, func(l *networkingv1.IngressList) []networkingv1.Ingress { return l.Items }, here)
	s.Policies = read(ctx, g, &networkingv1.NetworkPolicyList{}, func(l *networkingv1.NetworkPolicyList) []networkingv1.NetworkPolicy { return l.Items }, here)
	s.Claims = read(ctx, g, &corev1.PersistentVolumeClaimList{}, func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items }, here)
	s.Accounts = read(ctx, g, &corev1.ServiceAccountList{}, func(l *corev1.ServiceAccountList) []corev1.ServiceAccount { return l.Items }, here)
	s.Roles = read(ctx, g, &rbacv1.RoleList{}, func(l *rbacv1.RoleList) []rbacv1.Role { return l.Items }, here)
	s.Bindings = read(ctx, g, &rbacv1.RoleBindingList{}, func(l *rbacv1.RoleBindingList) []rbacv1.RoleBinding { return l.Items }, here)
	s.Quotas = read(ctx, g, &corev1.ResourceQuotaList{}, func(l *corev1.ResourceQuotaList) []corev1.ResourceQuota { return l.Items }, here)
	g.keys(ctx)
}

// keys reads the keys of the Secrets and ConfigMaps that the objects refer to, and of no others. The values are dropped at once: no rule
// needs them.
func (g *gatherer) keys(ctx context.Context) {
	secrets, configMaps := g.snapshot.Needs()
	g.snapshot.Secrets = keysOf(ctx, g, secrets, "Secrets", func(s *corev1.Secret) []string {
		return slices.Sorted(maps.Keys(s.Data))
	})
	g.snapshot.ConfigMaps = keysOf(ctx, g, configMaps, "ConfigMaps", func(c *corev1.ConfigMap) []string {
		return slices.Sorted(maps.Keys(joined(c)))
	})
}

// joined are the keys of both parts of a ConfigMap.
func joined(c *corev1.ConfigMap) map[string]bool {
	keys := map[string]bool{}
	for key := range c.Data {
		keys[key] = true
	}
	for key := range c.BinaryData {
		keys[key] = true
	}
	return keys
}

// keysOf reads objects by their names. One that is not there is absent. If one cannot be read, nothing is known of all.
func keysOf[T any, P interface {
	*T
	client.Object
}](ctx context.Context, g *gatherer, names []string, what string, keys func(P) []string) diagnose.Keys {
	found := diagnose.Keys{}
	for _, name := range names {
		object := P(new(T))
		err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			g.gap(what, err)
			return nil
		}
		found[name] = keys(object)
	}
	return found
}

// clusterWide reads what stands in no namespace.
func (g *gatherer) clusterWide(ctx context.Context) {
	s := g.snapshot
	s.Nodes = read(ctx, g, &corev1.NodeList{}, func(l *corev1.NodeList) []corev1.Node { return l.Items })
	s.StorageClasses = read(ctx, g, &storagev1.StorageClassList{}, func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
	s.IngressClasses = read(ctx, g, &networkingv1.IngressClassList{}, func(l *networkingv1.IngressClassList) []networkingv1.IngressClass { return l.Items })
}
