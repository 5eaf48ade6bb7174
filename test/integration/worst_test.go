package integration

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// TestTheWorstFindingStandsInAConditionAndOneEvent goes when its cause goes.
func TestTheWorstFindingStandsInAConditionAndOneEvent(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	quota := c.LimitPods(t, ns, 0)
	c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo")
	cluster.Spec.WorkerGroupSpecs = nil
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	says := func(kind string) func() string { return func() string { return c.Condition(t, cluster, kind).Message } }
	withHint := func() []eventsv1.Event {
		return slices.DeleteFunc(c.Events(t, cluster), func(e eventsv1.Event) bool { return e.Type != "Warning" })
	}

	for _, kind := range []string{rayv1.ConditionTroubled, rayv1.ConditionStalled} {
		g.Eventually(says(kind)).Should(And(ContainSubstring("exceeded quota"), HaveSuffix(
			`[finding quota-exceeded: Run "kubectl describe quota pods"; raise its spec.hard, delete what nobody needs, or lower the requests and replicas of RayCluster demo]`)))
	}
	g.Eventually(withHint).Should(HaveLen(1))
	g.Consistently(withHint, "3s").Should(And(HaveLen(1), HaveEach(HaveField("Note", ContainSubstring("[finding quota-exceeded: ")))))

	c.Lift(t, quota)
	g.Eventually(says(rayv1.ConditionTroubled)).Should(BeEmpty())
	g.Eventually(func() []string { return c.EventReasons(t, cluster) }).Should(ContainElement("TroubleGone"))
}
