package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func TestRouteScratch(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	crd := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal([]byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.route.openshift.io}
spec:
  group: route.openshift.io
  names: {kind: Route, listKind: RouteList, plural: routes, singular: route}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`), &crd.Object)).To(Succeed())
	g.Expect(c.Create(t.Context(), crd)).To(Succeed())
	defer func() { _ = c.Delete(t.Context(), crd) }()
	time.Sleep(3 * time.Second)
	operator := c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo", func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.EnableIngress = ptr.To(true) })
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"})
	get := func() error {
		return c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "demo-head-route"}, route)
	}
	g.Eventually(get).Should(Succeed())
	operator.Settle(t)
	before := operator.Traffic.Writes()
	c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Labels = map[string]string{"touched": "yes"} })
	g.Consistently(operator.Traffic.Writes, 4*time.Second, time.Second).Should(Equal(before))
	g.Expect(get()).To(Succeed())
	_ = unstructured.SetNestedField(route.Object, int64(1), "spec", "to", "weight")
	g.Expect(c.Update(t.Context(), route)).To(Succeed())
	g.Eventually(func() any { _ = get(); v, _, _ := unstructured.NestedInt64(route.Object, "spec", "to", "weight"); return v }).Should(Equal(int64(100)))
	c.Edit(t, cluster, func(cluster *rayv1.RayCluster) { cluster.Spec.HeadGroupSpec.EnableIngress = nil })
	g.Eventually(get).ShouldNot(Succeed())
}
