package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
)

func (c cluster) holder(t *testing.T, namespace string) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: config.LeaseName}, lease); err != nil {
		return err.Error()
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestStandbyTakesOverWithinSecondsWhenTheLeaderStops(t *testing.T) {
	g := NewWithT(t)
	c, ns := connect(t)
	first := c.run(t, ns, "first")
	g.Eventually(func() string { return c.holder(t, ns) }, patience).Should(Equal("first"))
	second := c.run(t, ns, "second")
	cluster := newCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.readyCluster(t, g, cluster)
	settle(t, first)
	g.Expect(second.writes.Load()).To(BeZero(), "a standby writes nothing but its tries for the lease")
	before := names(c.pods(t, ns, nil))

	first.shutdown()
	g.Expect(c.holder(t, ns)).ToNot(Equal("first"), "a stopping leader releases the lease before it is gone")
	g.Eventually(func() string { return c.holder(t, ns) }, patience).Should(Equal("second"))
	settle(t, second)
	g.Expect(names(c.pods(t, ns, nil))).To(Equal(before), "a change of the leader touches no Pod")

	worker := c.pods(t, ns, workersOf("demo"))[0]
	c.kill(t, &worker)
	g.Eventually(func() int { return len(c.pods(t, ns, workersOf("demo"))) }, patience).Should(Equal(2))
}

func TestLosingTheLeaseEndsTheTermAndNotTheProcess(t *testing.T) {
	g := NewWithT(t)
	c, ns := connect(t)
	operator := c.run(t, ns, "ours")
	g.Eventually(func() string { return c.holder(t, ns) }, patience).Should(Equal("ours"))

	lease := &coordinationv1.Lease{}
	g.Eventually(func() error {
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: config.LeaseName}, lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To("thief")
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](15)
		return c.Update(t.Context(), lease)
	}, patience).Should(Succeed())

	// The thief never renews, so the operator stands again and wins, without a restart of the process.
	cluster := newCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() string { return c.holder(t, ns) }, 2*patience, time.Second).Should(Equal("ours"))
	c.readyCluster(t, g, cluster)
	select {
	case <-operator.ended:
		t.Fatal("the operator ended although only its term should have")
	default:
	}
	g.Expect(c.List(t.Context(), &rayv1.RayClusterList{}, client.InNamespace(ns))).To(Succeed())
}
