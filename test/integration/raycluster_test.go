package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func workersOf(name string) client.MatchingLabels {
	return client.MatchingLabels{rayv1.LabelCluster: name, rayv1.LabelNodeType: rayv1.NodeTypeWorker}
}

func TestRayClusterLifeCycle(t *testing.T) {
	g := NewWithT(t)
	c, ns := connect(t)
	operator := c.run(t, ns, "only")
	cluster := newCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())

	t.Run("becomes ready with one head, its workers and its Service", func(t *testing.T) {
		g := NewWithT(t)
		c.readyCluster(t, g, cluster)
		g.Expect(c.pods(t, ns, nil)).To(HaveLen(3))
		service := &corev1.Service{}
		g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "demo-head-svc"}, service)).To(Succeed())
		g.Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		for _, object := range append(c.pods(t, ns, nil)[:0:0], c.pods(t, ns, nil)...) {
			g.Expect(metav1.IsControlledBy(&object, cluster)).To(BeTrue())
		}
		status := cluster.Status
		g.Expect([]int32{status.DesiredWorkerReplicas, status.AvailableWorkerReplicas, status.ReadyWorkerReplicas, status.MinWorkerReplicas, status.MaxWorkerReplicas}).
			To(Equal([]int32{2, 2, 2, 0, 4}))
		g.Expect(status.Head.ServiceName).To(Equal("demo-head-svc"))
		g.Expect(status.Endpoints).To(HaveLen(5))
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, rayv1.ConditionRayClusterProvisioned)).To(BeTrue())
		g.Eventually(func() []string { return c.eventReasons(t, cluster) }, patience).
			Should(ContainElements("CreatedHeadPod", "CreatedWorkerPod", "CreatedService"))
	})

	t.Run("writes nothing while nothing changes", func(t *testing.T) {
		settle(t, operator)
		before := operator.writes.Load()
		touched := cluster.DeepCopy()
		touched.Labels = map[string]string{"touched": "yes"} // asks for a pass that has nothing to do
		NewWithT(t).Expect(c.Patch(t.Context(), touched, client.MergeFrom(cluster))).To(Succeed())
		NewWithT(t).Consistently(operator.writes.Load, 5*time.Second, time.Second).Should(Equal(before))
	})

	t.Run("is scaled by hand", func(t *testing.T) {
		g := NewWithT(t)
		scale(t, g, c, cluster, 3)
		g.Eventually(func() int { return len(c.pods(t, ns, workersOf("demo"))) }, patience).Should(Equal(3))
		c.readyCluster(t, g, cluster)
		scale(t, g, c, cluster, 1)
		g.Eventually(func() string { return names(alive(c.pods(t, ns, workersOf("demo")))) }, patience).
			Should(HaveLen(len("[demo-a-worker-xxxxx]")))
	})

	t.Run("replaces a deleted and a failed Pod under new names", func(t *testing.T) {
		g := NewWithT(t)
		c.readyCluster(t, g, cluster)
		worker := c.pods(t, ns, workersOf("demo"))[0]
		worker.Status.Phase = corev1.PodFailed
		g.Expect(c.Status().Update(t.Context(), &worker)).To(Succeed())
		g.Eventually(func() string { return names(alive(c.pods(t, ns, workersOf("demo")))) }, patience).
			ShouldNot(Or(ContainSubstring(worker.Name), Equal("[]")))
		head := c.pods(t, ns, client.MatchingLabels{rayv1.LabelNodeType: rayv1.NodeTypeHead})[0]
		c.kill(t, &head)
		g.Eventually(func() string {
			return names(c.pods(t, ns, client.MatchingLabels{rayv1.LabelNodeType: rayv1.NodeTypeHead}))
		}, patience).
			ShouldNot(Or(ContainSubstring(head.Name), Equal("[]")))
	})

	t.Run("is deleted without waiting for the operator", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(cluster.Finalizers).To(BeEmpty())
		g.Expect(c.Delete(t.Context(), cluster)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).ToNot(Succeed())
	})
}

func alive(pods []corev1.Pod) []corev1.Pod {
	var rest []corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			rest = append(rest, pod)
		}
	}
	return rest
}

func scale(t *testing.T, g Gomega, c cluster, cluster *rayv1.RayCluster, replicas int32) {
	t.Helper()
	base := cluster.DeepCopy()
	cluster.Spec.WorkerGroupSpecs[0].Replicas = &replicas
	g.Expect(c.Patch(t.Context(), cluster, client.MergeFrom(base))).To(Succeed())
}

// settle waits until the operator has been silent for two seconds.
func settle(t *testing.T, operator *replica) {
	t.Helper()
	last, since := operator.writes.Load(), time.Now()
	NewWithT(t).Eventually(func() bool {
		if n := operator.writes.Load(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 2*time.Second
	}, patience, 100*time.Millisecond).Should(BeTrue(), "the operator never falls silent")
}

func TestRefusedPodsAreSaidAndDoNotMakeAHotLoop(t *testing.T) {
	g := NewWithT(t)
	c, ns := connect(t)
	limit := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "small"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}
	g.Expect(c.Create(t.Context(), limit)).To(Succeed())
	cluster := newCluster(ns, "demo")
	cluster.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("8")}
	operator := c.run(t, ns, "only")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() string {
		c.kubelet(t, ns)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		failure := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionReplicaFailure)
		if failure == nil || failure.Status != metav1.ConditionTrue {
			return ""
		}
		return failure.Reason + ": " + failure.Message
	}, patience).Should(And(ContainSubstring(rayv1.ReasonFailedCreateWorkerPod), ContainSubstring("maximum cpu usage per Container is 1")))
	g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, rayv1.ConditionRayClusterProvisioned)).To(BeFalse())
	g.Expect(c.pods(t, ns, client.MatchingLabels{rayv1.LabelNodeType: rayv1.NodeTypeHead})).To(HaveLen(1))

	// The back-off doubles from one second up to a minute: after five tries there is room for few more.
	before := operator.writes.Load()
	g.Consistently(func() int64 { return operator.writes.Load() - before }, 15*time.Second, time.Second).
		Should(BeNumerically("<=", 40), "many writes while the API server refuses the Pods are a hot loop")

	base := cluster.DeepCopy()
	cluster.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Resources.Limits = nil
	g.Expect(c.Patch(t.Context(), cluster, client.MergeFrom(base))).To(Succeed())
	c.readyCluster(t, g, cluster)
	g.Eventually(func() *metav1.Condition {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		return meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionReplicaFailure)
	}, patience).Should(BeNil())
}

// TestBadInputIsSaidAndCostsNothing is about specs that pass the schema and still cannot be acted upon.
func TestBadInputIsSaidAndCostsNothing(t *testing.T) {
	g := NewWithT(t)
	c, ns := connect(t)
	operator := c.run(t, ns, "only")
	bad := newCluster(ns, "bad")
	bad.Spec.HeadGroupSpec.RayStartParams = map[string]string{"num-cpus": "2"}
	bad.Spec.HeadGroupSpec.Resources = map[string]string{"CPU": "1"}
	g.Expect(c.Create(t.Context(), bad)).To(Succeed())
	job := newJob(ns, rayv1.K8sJobMode)
	job.Spec.TTLSecondsAfterFinished = 5 // without shutdownAfterJobFinishes
	g.Expect(c.Create(t.Context(), job)).To(Succeed())

	g.Eventually(func() string {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(bad), bad)).To(Succeed())
		if valid := meta.FindStatusCondition(bad.Status.Conditions, rayv1.ConditionValid); valid != nil {
			return string(valid.Status) + ": " + valid.Message
		}
		return ""
	}, patience).Should(And(HavePrefix("False"), ContainSubstring("spec.headGroupSpec.rayStartParams[num-cpus]"), ContainSubstring("2")))
	g.Eventually(func() string {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return string(job.Status.JobDeploymentStatus) + ": " + job.Status.Message
	}, patience).Should(And(HavePrefix("ValidationFailed"), ContainSubstring("spec.ttlSecondsAfterFinished"), ContainSubstring("shutdownAfterJobFinishes")))
	g.Eventually(func() []string { return append(c.eventReasons(t, bad), c.eventReasons(t, job)...) }, patience).
		Should(ContainElements("InvalidRayClusterSpec", "InvalidRayJobSpec"))
	g.Expect(c.pods(t, ns, nil)).To(BeEmpty())

	settle(t, operator)
	reads, writes := operator.reads.Load(), operator.writes.Load()
	g.Consistently(func() []int64 { return []int64{operator.reads.Load() - reads, operator.writes.Load() - writes} },
		20*time.Second, time.Second).Should(HaveExactElements(BeNumerically("<=", 10), BeZero()), "reads and writes with nothing to do")

	base := bad.DeepCopy()
	bad.Spec.HeadGroupSpec.Resources = nil
	g.Expect(c.Patch(t.Context(), bad, client.MergeFrom(base))).To(Succeed())
	c.readyCluster(t, g, bad)
}

func TestForeignServiceUnderOurNameIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	c, ns := connect(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo-head-svc"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	g.Expect(c.Create(t.Context(), foreign)).To(Succeed())
	cluster := newCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.run(t, ns, "only")
	g.Eventually(func() []string { return c.eventReasons(t, cluster) }, patience).Should(ContainElement("FailedToCreateService"))
	g.Eventually(func() int { return len(c.pods(t, ns, nil)) }, patience).Should(Equal(3), "Pods do not wait for the Service")
	after := &corev1.Service{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(foreign), after)).To(Succeed())
	g.Expect(after.ResourceVersion).To(Equal(foreign.ResourceVersion))
}
