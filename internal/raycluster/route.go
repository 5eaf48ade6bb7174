package raycluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// RouteKind is OpenShift's kind of entrance.
func RouteKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: kindRoute}
}

// routeName leaves room for the namespace: OpenShift makes one label of a DNS name from both.
func routeName(cluster *rayv1.RayCluster) string {
	const least = 20
	name := ShortName(cluster.Name + "-head-route")
	limit := max(validation.DNS1123LabelMaxLength-len("-"+cluster.Namespace), least)
	if len(name) > limit {
		suffix := "-" + NameSuffix(name)
		name = name[:limit-len(suffix)] + suffix
	}
	return name
}

func headRoute(cluster *rayv1.RayCluster) *unstructured.Unstructured {
	route := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"to": map[string]any{
			"kind": kindService, "name": HeadServiceName(cluster), "weight": int64(100),
		},
		"port":           map[string]any{"targetPort": int64(dashboardPort(cluster))},
		"wildcardPolicy": "None",
	}}}
	meta := ownedMeta(cluster, routeName(cluster))
	route.SetGroupVersionKind(RouteKind())
	route.SetName(meta.Name)
	route.SetNamespace(meta.Namespace)
	route.SetLabels(meta.Labels)
	route.SetAnnotations(entranceAnnotations(cluster))
	route.SetOwnerReferences(meta.OwnerReferences)
	return route
}
