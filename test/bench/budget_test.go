package bench

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// cost is how often a request is sent, and why at all.
type cost struct {
	verb, resource string
	times          int
	why            string
}

// tries is how many clusters are started until the Pods of one become ready together, which a busy machine prevents.
const tries = 20

// together is the time within which changes of a status are told in one write.
const together = 2 * time.Second

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
	sent := map[string]int{}
	for i := 0; i < tries && len(sent) == 0; i++ {
		sent = startOne(t, c, operator, fmt.Sprintf("demo-%d", i), ns)
	}
	want := map[string]int{}
	for _, cost := range budget() {
		want[cost.verb+" "+cost.resource] = cost.times
		t.Logf("%d × %s %s: %s", cost.times, cost.verb, cost.resource, cost.why)
	}
	g.Expect(sent).To(Equal(want))
}

// startOne brings one cluster up and returns what was sent for it. It returns nothing when this machine is so busy that
// the Pods did not become ready together: then the operator rightly tells of the first ones before the last ones.
func startOne(t *testing.T, c harness.Cluster, operator *harness.Operator, name, ns string) map[string]int {
	t.Helper()
	before, began := len(operator.Traffic.All()), time.Now()
	cluster := harness.NewCluster(ns, name, func(cluster *rayv1.RayCluster) {
		cluster.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](3)
	})
	g := NewWithT(t)
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() []corev1.Pod { return c.Pods(t, ns, client.MatchingLabels{rayv1.LabelCluster: name}) }).Should(HaveLen(4))
	c.Kubelet(t, ns)
	took := time.Since(began)
	c.BecomesReady(t, cluster)
	operator.Settle(t)
	if took > together {
		t.Logf("cluster %s does not count: its Pods took %s", name, took)
		return nil
	}
	sent := map[string]int{}
	for _, request := range operator.Traffic.All()[before:] {
		sent[request.Verb+" "+request.Resource]++
	}
	return sent
}
