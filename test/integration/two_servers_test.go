package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/heliostat-io/heliostat/test/apiserver"
	"github.com/heliostat-io/heliostat/test/harness"
)

// TestTwoAPIServersOneLags is the situation of kubernetes#59848: a new leader asks an API server that has not heard yet
// what its predecessor wrote through another one.
func TestTwoAPIServersOneLags(t *testing.T) {
	g := NewWithT(t)
	log, flags := harness.NewAuditLog(t)
	first, second, lag := apiserver.NewPair(t, flags...)
	s := stage{cluster: harness.ConnectTo(t, first), log: log, program: harness.BuildOperator(t)}
	p := pair{Installation: s.cluster.Install(t), fenced: true}
	p.Fence(t)
	p.first = p.StartReplica(t, s.program, "first", first, "--fencing=required")
	p.leads(t, p.first)
	p.second = p.StartReplica(t, s.program, "second", second, "--fencing=required")
	g.Eventually(func() bool { return p.second.Says("Starting workers") }, 2*harness.Patience).Should(BeTrue())
	lag.Set(time.Second)
	cluster := harness.NewCluster(p.Namespace, "demo")
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	p.BecomesReady(t, cluster)

	for range 2 {
		// The head is lost, the leader makes another one, and ends at once: the standby's server knows of neither.
		heads := p.Pods(t, p.Namespace, harness.HeadOf(cluster.Name))
		p.Kill(t, &heads[0])
		var next []string
		g.Eventually(func() []string {
			next = harness.Names(harness.Alive(p.Pods(t, p.Namespace, harness.HeadOf(cluster.Name))))
			return next
		}).Should(And(HaveLen(1), Not(ContainElement(heads[0].Name))))
		p.first.Terminate(t)
		p.leads(t, p.second)
		p.BecomesReady(t, cluster)
		p.heals(t, cluster)
		g.Expect(harness.Names(p.Pods(t, p.Namespace, harness.HeadOf(cluster.Name)))).To(Equal(next), "a live head was replaced")

		p.first = p.StartReplica(t, s.program, "first-"+next[0], first, "--fencing=required")
		g.Eventually(func() bool { return p.first.Says("Starting workers") }, 2*harness.Patience).Should(BeTrue())
		p.second.Terminate(t)
		p.leads(t, p.first)
		p.second = p.StartReplica(t, s.program, "second-"+next[0], second, "--fencing=required")
		g.Eventually(func() bool { return p.second.Says("Starting workers") }, 2*harness.Patience).Should(BeTrue())
	}
	s.judgeMade(t, p, cluster)
}
