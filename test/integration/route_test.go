package integration

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/test/harness"
)

// routes is a stand-in for OpenShift's own API.
const routes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.route.openshift.io}
spec:
  group: route.openshift.io
  names: {kind: Route, listKind: RouteList, plural: routes, singular: route}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// onOpenShift makes the API server serve Routes until the test ends.
func onOpenShift(t *testing.T, c harness.Cluster) {
	t.Helper()
	g := NewWithT(t)
	crd := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte(routes), &crd.Object)).To(Succeed())
	g.Expect(c.Create(t.Context(), crd)).To(Succeed())
	served := func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(raycluster.RouteKind())
		return c.List(ctx, list)
	}
	g.Eventually(func() error { return served(t.Context()) }).Should(Succeed())
	t.Cleanup(func() {
		// Operators of later tests must not find it.
		g.Expect(c.Delete(context.Background(), crd)).To(Succeed())
		g.Eventually(func() error { return served(context.Background()) }).ShouldNot(Succeed())
	})
}

func TestRouteOnOpenShift(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	onOpenShift(t, c)
	operator := c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo", func(cluster *rayv1.RayCluster) { cluster.Spec.HeadGroupSpec.EnableIngress = ptr.To(true) })
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(raycluster.RouteKind())
	get := func(name string, object client.Object) error {
		return c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, object)
	}
	weight := func() int64 {
		_ = get("demo-head-route", route)
		weight, _, _ := unstructured.NestedInt64(route.Object, "spec", "to", "weight")
		return weight
	}

	c.BecomesReady(t, cluster)
	g.Eventually(weight).Should(Equal(int64(100)))
	g.Expect(get("demo-head-ingress", &networkingv1.Ingress{})).ToNot(Succeed())
	operator.Settle(t)
	before := operator.Traffic.Writes()
	c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Labels = map[string]string{"touched": "yes"} })
	g.Consistently(operator.Traffic.Writes, 5*time.Second, time.Second).Should(Equal(before))

	someoneElse := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"to":{"weight":1}}}`))
	g.Expect(c.Patch(t.Context(), route, someoneElse)).To(Succeed())
	g.Eventually(weight).Should(Equal(int64(100)))

	c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Spec.HeadGroupSpec.EnableIngress = nil })
	g.Eventually(func() error { return get("demo-head-route", route) }).ShouldNot(Succeed())
}
