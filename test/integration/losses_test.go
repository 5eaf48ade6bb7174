package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// rayOf adds a Ray for the cluster of that name.
func rayOf(c harness.Cluster, ns, cluster string) *fakedashboard.Dashboard {
	ray := fakedashboard.NewInProcess()
	c.Rays.Add(harness.DashboardHost(ns, cluster), ray)
	return ray
}

// TestALossWhileNoOperatorRuns given a head with actors, when it is lost while no operator runs, then the next operator tells of it,
// and of how many actors were lost with it.
func TestALossWhileNoOperatorRuns(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	ray := rayOf(c, ns, "demo")
	ray.SetActors(fakedashboard.Actor{ID: "a", Name: "a", State: "ALIVE", Node: "n1"}, fakedashboard.Actor{ID: "b", Name: "b", State: "ALIVE", Node: "n1"})
	first := c.Run(t, ns, harness.As("first"))
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	read := func() rayv1.RayClusterStatus {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		return cluster.Status
	}
	g.Eventually(func() *rayv1.RayClusterCensus { return read().LastCensus }, harness.Patience).Should(And(Not(BeNil()), HaveField("Actors", int32(2))))
	g.Expect(cluster.Status.LastCensus.Workers).To(HaveKeyWithValue("a", HaveLen(2)))
	first.Stop()

	head := c.Pods(t, ns, harness.HeadOf("demo"))[0]
	ray.Restart()
	c.Kill(t, &head)

	c.Run(t, ns, harness.As("second"))
	g.Eventually(func() []rayv1.RayClusterRecovery {
		c.Kubelet(t, ns)
		return read().Recoveries
	}, harness.Patience).Should(ConsistOf(And(HaveField("State", rayv1.RecoveryComplete), HaveField("Part", rayv1.LostHead), HaveField("Pod", head.Name),
		HaveField("Actors", HaveField("Lost", int32(2))))))
	g.Eventually(func() []string { return c.EventReasons(t, cluster) }).Should(ContainElement("ActorsLost"))
}

// TestAHeadIsProtectedWhileJobsRun given the annotation, when a job runs, then the head's PodDisruptionBudget allows no eviction, and
// it allows one when Ray says that none runs.
func TestAHeadIsProtectedWhileJobsRun(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	ray := rayOf(c, ns, "demo")
	ray.PutJob(fakedashboard.Job{SubmissionID: "train", Step: fakedashboard.Step{Status: "RUNNING"}})
	c.Run(t, ns, harness.Alone())
	cluster := harness.NewCluster(ns, "demo", func(cluster *rayv1.RayCluster) {
		cluster.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadWhileJobsRun}
	})
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.BecomesReady(t, cluster)
	least := func() int {
		budget := &policyv1.PodDisruptionBudget{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: raycluster.HeadBudgetName("demo")}, budget); err != nil {
			t.Log(err)
			return -1
		}
		return budget.Spec.MinAvailable.IntValue()
	}
	asked := func() int { return ray.Requests(fakedashboard.EndpointList) }
	g.Eventually(asked, harness.Patience).Should(BeNumerically(">=", 2))
	g.Expect(least()).To(Equal(1), "a job runs")
	ray.SetStep("train", fakedashboard.Step{Status: "SUCCEEDED"})
	g.Eventually(least, harness.Patience).Should(BeZero(), "it has ended")
	ray.PutJob(fakedashboard.Job{SubmissionID: "next", Step: fakedashboard.Step{Status: "PENDING"}})
	g.Eventually(least, harness.Patience).Should(Equal(1), "another one waits")
	ray.Down()
	ray.SetStep("next", fakedashboard.Step{Status: "FAILED"})
	g.Consistently(least).Should(Equal(1), "Ray does not answer")
}
