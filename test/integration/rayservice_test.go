package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// TestRayServicesNeedNoMoreRightsThanTheChartGives: one is started, upgraded, suspended and deleted.
func TestRayServicesNeedNoMoreRightsThanTheChartGives(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns, harness.Alone(), chartRights(t, c, ns))
	nodes := c.NewServeNodes(ns)

	service := harness.NewService(ns, "chat")
	service.Spec.RayClusterDeletionDelaySeconds = ptr.To[int32](0)
	g.Expect(c.Create(t.Context(), service)).To(Succeed())
	// becomes plays Kubernetes and Ray until the status is as expected.
	becomes := func(what string, as func(status *rayv1.RayServiceStatuses) bool) {
		t.Helper()
		g.Eventually(func() bool {
			nodes.Turn(t)
			c.EndpointSlices(t, ns)
			c.CollectGarbage(t, ns)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
			return as(&service.Status)
		}).Should(BeTrue(), "never %s", what)
	}
	becomes("ready", func(status *rayv1.RayServiceStatuses) bool {
		return meta.IsStatusConditionTrue(status.Conditions, rayv1.ConditionRayServiceReady)
	})
	first := service.Status.ActiveServiceStatus.RayClusterName
	becomes("served by its head", func(*rayv1.RayServiceStatuses) bool {
		heads := &corev1.PodList{}
		g.Expect(c.List(t.Context(), heads, client.InNamespace(ns),
			client.MatchingLabels{rayv1.LabelCluster: first, rayv1.LabelNodeType: rayv1.NodeTypeHead, rayv1.LabelServe: "true"})).To(Succeed())
		return len(heads.Items) == 1
	})

	edit := func(change func(*rayv1.RayService)) {
		t.Helper()
		base := service.DeepCopy()
		change(service)
		g.Expect(c.Patch(t.Context(), service, client.MergeFrom(base))).To(Succeed())
	}
	edit(func(s *rayv1.RayService) {
		s.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Image = "ray:next"
	})
	becomes("upgraded", func(status *rayv1.RayServiceStatuses) bool {
		return status.ActiveServiceStatus.RayClusterName != first && status.PendingServiceStatus.RayClusterName == ""
	})
	becomes("rid of its first cluster", func(*rayv1.RayServiceStatuses) bool {
		return apierrors.IsNotFound(c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: first}, &rayv1.RayCluster{}))
	})
	edit(func(s *rayv1.RayService) { s.Spec.Suspend = true })
	becomes("suspended", func(status *rayv1.RayServiceStatuses) bool {
		return meta.IsStatusConditionTrue(status.Conditions, rayv1.ConditionRayServiceSuspended)
	})
	g.Expect(c.Delete(t.Context(), service)).To(Succeed())
	g.Eventually(func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(service), service))
	}).Should(BeTrue(), "the RayService never goes")
}
