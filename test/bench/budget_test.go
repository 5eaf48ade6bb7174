package bench

import (
	"testing"

	. "github.com/onsi/gomega"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// cost is how often a request is sent, and why at all.
type cost struct {
	verb, resource string
	times          int
	why            string
}

// budget is every request from the creation of a RayCluster with a head and three workers until it is ready.
func budget() []cost {
	return []cost{
		// The floor: less cannot be.
		{"create", "pods", 4, "a head and three workers"},
		{"create", "services", 1, "the head Service"},
		{"patch", "rayclusters/status", 2, "that it was seen, and that it is ready"},
		// Above the floor.
		{"create", "events", 3, "CreatedHeadPod, CreatedWorkerPod (one for all three) and CreatedService, for people who ask what happened"},
	}
}

// TestBudgetOfACluster given an idle operator, when a RayCluster is created and its Pods become ready, then exactly the
// listed requests are sent. The Lease, whose requests do not depend on RayClusters, is left out.
func TestBudgetOfACluster(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns, harness.Alone())
	// Watches and whatever else an operator asks for when it starts are behind us when the first cluster is ready.
	warm := harness.NewCluster(ns, "warm")
	g.Expect(c.Create(t.Context(), warm)).To(Succeed())
	c.BecomesReady(t, warm)
	operator.Settle(t)
	before := len(operator.Traffic.All())

	cluster := harness.NewCluster(ns, "demo", func(cluster *rayv1.RayCluster) {
		three := int32(3)
		cluster.Spec.WorkerGroupSpecs[0].Replicas = &three
	})
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	operator.Settle(t)

	sent := map[string]int{}
	for _, request := range operator.Traffic.All()[before:] {
		sent[request.Verb+" "+request.Resource]++
	}
	want := map[string]int{}
	for _, cost := range budget() {
		want[cost.verb+" "+cost.resource] = cost.times
		t.Logf("%d × %s %s: %s", cost.times, cost.verb, cost.resource, cost.why)
	}
	g.Expect(sent).To(Equal(want))
}
