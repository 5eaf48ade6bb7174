package bench

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// marks remembers when a replica won the lease, and when its first Pod was made.
type marks struct {
	mu       sync.Mutex
	won, did time.Time
}

func (m *marks) see(request harness.Request, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case request.Code >= 300:
	case request.Verb == "update" && request.Resource == "leases" && m.won.IsZero():
		m.won = at
	case request.Verb == "create" && request.Resource == "pods" && m.did.IsZero():
		m.did = at
	}
}

// between is the time from the lease to the first Pod.
func (m *marks) between() (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.did.Sub(m.won), !m.won.IsZero() && !m.did.IsZero()
}

// TestTakeOverWithManyClusters measures how long a standby that wins the lease takes until its first correct write: the
// fence has moved, all caches have caught up, and of all clusters it has found the one that lost its head.
func TestTakeOverWithManyClusters(t *testing.T) {
	g := NewWithT(t)
	c, _ := harness.Connect(t)
	i := c.Install(t)
	i.Fence(t)
	replica := func(name string, options ...harness.Option) *harness.Operator {
		as := c
		as.REST = i.Connection(t, i.NewPod(t, name))
		return as.Run(t, i.Namespace, append(options, harness.As(name), harness.Args("--fencing=required", "--qps=-1"))...)
	}
	first := replica("first")
	g.Eventually(func() bool {
		return meta.IsStatusConditionTrue(i.Holder(t).Status.Conditions, heliostatv1alpha1.ConditionFenced)
	}).Should(BeTrue(), "the first leader never leads")
	(&nodes{heads: map[string]int{}}).watch(t, c, i.Namespace)
	for n := range *taken {
		cluster := harness.NewCluster(i.Namespace, fmt.Sprintf("c%d", n), func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = nil })
		g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	}
	g.Eventually(func() int {
		all, ready := &rayv1.RayClusterList{}, 0
		g.Expect(c.List(t.Context(), all, client.InNamespace(i.Namespace))).To(Succeed())
		for _, cluster := range all.Items {
			if cluster.Status.State == rayv1.ClusterStateReady {
				ready++
			}
		}
		return ready
	}, 10*harness.Patience, time.Second).Should(Equal(*taken))
	first.Settle(t)

	seen := &marks{}
	second := replica("second", harness.Transport(harness.Watched(seen.see)))
	g.Eventually(func() bool { return second.Traffic.Count("watch", "pods") > 0 }).Should(BeTrue())
	lost := c.Pods(t, i.Namespace, harness.HeadOf(fmt.Sprintf("c%d", *taken/2)))[0]
	first.Stop()
	c.Kill(t, &lost)
	var took time.Duration
	g.Eventually(func() (done bool) {
		took, done = seen.between()
		return done
	}).Should(BeTrue(), "the new leader never wrote")
	second.Settle(t)
	t.Logf("%d clusters: %s from the lease to the first write", *taken, took.Round(time.Millisecond))
	g.Expect(second.Traffic.Count("create", "pods")).To(Equal(1))
	g.Expect(second.Traffic.Count("delete", "pods")).To(BeZero())
}
