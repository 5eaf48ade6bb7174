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

// keys reads the names and keys of Secrets and ConfigMaps. The values are dropped at once: no rule needs them.
func (g *gatherer) keys(ctx context.Context) {
	secrets := read(ctx, g, &corev1.SecretList{}, func(l *corev1.SecretList) []corev1.Secret { return l.Items }, g.here())
	if secrets != nil {
		g.snapshot.Secrets = diagnose.Keys{}
	}
	for _, secret := range secrets {
		g.snapshot.Secrets[secret.Name] = slices.Sorted(maps.Keys(secret.Data))
	}
	configs := read(ctx, g, &corev1.ConfigMapList{}, func(l *corev1.ConfigMapList) []corev1.ConfigMap { return l.Items }, g.here())
	if configs != nil {
		g.snapshot.ConfigMaps = diagnose.Keys{}
	}
	for _, config := range configs {
		keys := slices.Concat(slices.Collect(maps.Keys(config.Data)), slices.Collect(maps.Keys(config.BinaryData)))
		slices.Sort(keys)
		g.snapshot.ConfigMaps[config.Name] = keys
	}
}

// clusterWide reads what stands in no namespace.
func (g *gatherer) clusterWide(ctx context.Context) {
	s := g.snapshot
	s.Nodes = read(ctx, g, &corev1.NodeList{}, func(l *corev1.NodeList) []corev1.Node { return l.Items })
	s.StorageClasses = read(ctx, g, &storagev1.StorageClassList{}, func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
	s.IngressClasses = read(ctx, g, &networkingv1.IngressClassList{}, func(l *networkingv1.IngressClassList) []networkingv1.IngressClass { return l.Items })
}
