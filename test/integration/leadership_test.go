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
	"github.com/heliostat-io/heliostat/test/harness"
)

func holder(t *testing.T, c harness.Cluster, namespace string) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: config.LeaseName}, lease); err != nil {
		return err.Error()
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestStandbyTakesOverWithinSecondsWhenTheLeaderStops(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	first := c.Run(t, ns, harness.As("first"))
	g.Eventually(func() string { return holder(t, c, ns) }).Should(Equal("first"))
	second := c.Run(t, ns, harness.As("second"))
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	first.Settle(t)
	g.Expect(second.Traffic.Writes()).To(BeZero(), "a standby writes nothing but its tries for the lease")
	before := harness.Names(c.Pods(t, ns, nil))

	first.Stop()
	g.Expect(holder(t, c, ns)).ToNot(Equal("first"), "a stopping leader releases the lease before it is gone")
	g.Eventually(func() string { return holder(t, c, ns) }).Should(Equal("second"))
	second.Settle(t)
	g.Expect(harness.Names(c.Pods(t, ns, nil))).To(Equal(before), "a change of the leader touches no Pod")

	worker := c.Pods(t, ns, harness.WorkersOf("demo"))[0]
	c.Kill(t, &worker)
	g.Eventually(func() int { return len(c.Pods(t, ns, harness.WorkersOf("demo"))) }).Should(Equal(2))
}

func TestLosingTheLeaseEndsTheTermAndNotTheProcess(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns, harness.As("ours"))
	g.Eventually(func() string { return holder(t, c, ns) }).Should(Equal("ours"))

	lease := &coordinationv1.Lease{}
	g.Eventually(func() error {
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: config.LeaseName}, lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To("thief")
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](15)
		return c.Update(t.Context(), lease)
	}).Should(Succeed())

	// The thief never renews, so the operator stands again and wins, without a restart of the process.
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() string { return holder(t, c, ns) }, 2*harness.Patience, time.Second).Should(Equal("ours"))
	c.BecomesReady(t, cluster)
	select {
	case <-operator.Ended():
		t.Fatal("the operator ended although only its term should have")
	default:
	}
	g.Expect(c.List(t.Context(), &rayv1.RayClusterList{}, client.InNamespace(ns))).To(Succeed())
}

// TestANewLeaderWaitsForWhatItsPredecessorWrote gives a standby no news of Pods while the leader makes some, and lets it
// take over. From what it knows, they are missing.
func TestANewLeaderWaitsForWhatItsPredecessorWrote(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	first := c.Run(t, ns, harness.As("first"))
	g.Eventually(func() string { return holder(t, c, ns) }).Should(Equal("first"))
	pause := harness.PauseOf("pods")
	second := c.Run(t, ns, harness.As("second"), harness.Transport(pause.Transport))
	g.Eventually(func() int { return second.Traffic.Count("watch", "pods") }).Should(BeNumerically(">", 0))
	early := harness.NewCluster(ns, "early")
	g.Expect(c.Create(t.Context(), early)).To(Succeed())
	c.BecomesReady(t, early)

	pause.On()
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	first.Settle(t)
	before := harness.Names(c.Pods(t, ns, nil))
	first.Stop()
	g.Eventually(func() string { return holder(t, c, ns) }).Should(Equal("second"))
	g.Consistently(second.Traffic.Writes, 5*time.Second, time.Second).Should(BeZero(), "the new leader acts on what it does not know")

	pause.Off()
	worker := c.Pods(t, ns, harness.WorkersOf("demo"))[0]
	c.Kill(t, &worker)
	g.Eventually(func() int { return second.Traffic.Count("create", "pods") }).Should(Equal(1))
	second.Settle(t)
	g.Expect(harness.Names(c.Pods(t, ns, nil))).To(HaveLen(len(before)))
	g.Expect(second.Traffic.Count("create", "pods")).To(Equal(1), "only what was lost is made")
}
