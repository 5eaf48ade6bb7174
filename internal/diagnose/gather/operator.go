package gather

import (
	"context"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
)

// OperatorSelector selects the Deployments that run an operator for ray.io, Heliostat's or KubeRay's, in any namespace, as long as nobody
// has given them another name.
func OperatorSelector() labels.Selector {
	selector := labels.NewSelector()
	requirement, err := labels.NewRequirement(rayv1.LabelAppName, selection.In, []string{"heliostat", "kuberay-operator", "kuberay"})
	if err != nil {
		// The values above are constants that make a valid requirement.
		panic(err)
	}
	return selector.Add(*requirement)
}

// operator reads what runs the operator, and what it competes for.
func (g *gatherer) operator(ctx context.Context) {
	o := &g.snapshot.Operator
	o.Deployments = g.deployments(ctx)
	namespaces := map[string]bool{}
	for _, deployment := range o.Deployments {
		namespaces[deployment.Namespace] = true
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		if err != nil {
			g.gap("Pods of the operator", err)
			continue
		}
		o.Pods = append(o.Pods, read(ctx, g, &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items },
			client.InNamespace(deployment.Namespace), client.MatchingLabelsSelector{Selector: selector})...)
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		leases := read(ctx, g, &coordinationv1.LeaseList{}, func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items }, client.InNamespace(namespace))
		for _, lease := range leases {
			if lease.Name == config.LeaseName {
				o.Leases = append(o.Leases, lease)
			}
		}
	}
	g.crds(ctx)
	g.refused(ctx)
}

// deployments are those that run an operator. Only where there is none of the usual name all Deployments are read: a chart with another
// name still marks the Pods of its Deployment.
func (g *gatherer) deployments(ctx context.Context) []*appsv1.Deployment {
	items := func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }
	found := read(ctx, g, &appsv1.DeploymentList{}, items, client.MatchingLabelsSelector{Selector: OperatorSelector()})
	if found == nil || len(found) > 0 {
		return found
	}
	all := read(ctx, g, &appsv1.DeploymentList{}, items)
	if all == nil {
		return nil
	}
	return slices.DeleteFunc(all, func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Labels[rayv1.LabelAppComponent] != operatorComponent
	})
}

// operatorComponent is what the charts of Heliostat and KubeRay call the Pods of their operator, see
// charts/heliostat/templates/deployment.yaml.
const operatorComponent = "kuberay-operator"

// crds reads the fields of spec that the API server knows of each kind.
func (g *gatherer) crds(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := g.Client.List(ctx, list); err != nil {
		g.gap("CustomResourceDefinitions", err)
		return
	}
	g.snapshot.Operator.CRDFields = map[string][]string{}
	for i := range list.Items {
		group, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "names", "kind")
		if fields, served := specFields(&list.Items[i]); served && group == rayv1.GroupVersion.Group {
			g.snapshot.Operator.CRDFields[kind] = fields
		}
	}
}

// specFields are the fields of spec in the schema of version v1, if the API server serves that.
func specFields(crd *unstructured.Unstructured) (fields []string, served bool) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		v, ok := version.(map[string]any)
		if !ok || v["name"] != rayv1.GroupVersion.Version || v["served"] == false {
			continue
		}
		properties, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema", "properties", "spec", "properties")
		return slices.Sorted(maps.Keys(properties)), true
	}
	return nil, false
}
