package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func TestRayClusterLifeCycle(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())

	t.Run("becomes ready with one head, its workers and its Service", func(t *testing.T) {
		g := NewWithT(t)
		c.BecomesReady(t, cluster)
		g.Expect(c.Pods(t, ns, nil)).To(HaveLen(3))
		service := &corev1.Service{}
		g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "demo-head-svc"}, service)).To(Succeed())
		g.Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		for _, object := range c.Pods(t, ns, nil) {
			g.Expect(metav1.IsControlledBy(&object, cluster)).To(BeTrue())
		}
		status := cluster.Status
		g.Expect([]int32{status.DesiredWorkerReplicas, status.AvailableWorkerReplicas, status.ReadyWorkerReplicas, status.MinWorkerReplicas, status.MaxWorkerReplicas}).
			To(Equal([]int32{2, 2, 2, 0, 4}))
		g.Expect(status.Head.ServiceName).To(Equal("demo-head-svc"))
		g.Expect(status.Endpoints).To(HaveLen(5))
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, rayv1.ConditionRayClusterProvisioned)).To(BeTrue())
		g.Eventually(func() []string { return c.EventReasons(t, cluster) }).
			Should(ContainElements("CreatedHeadPod", "CreatedWorkerPod", "CreatedService"))
	})

	t.Run("writes nothing while nothing changes", func(t *testing.T) {
		operator.Settle(t)
		before := operator.Traffic.Writes()
		c.Edit(t, cluster, func(cluster *rayv1.RayCluster) {
			cluster.Labels = map[string]string{"touched": "yes"} // asks for a pass that has nothing to do
		})
		NewWithT(t).Consistently(operator.Traffic.Writes, 5*time.Second, time.Second).Should(Equal(before))
	})

	t.Run("is scaled by hand", func(t *testing.T) {
		g := NewWithT(t)
		c.Edit(t, cluster, replicas(3))
		g.Eventually(func() int { return len(c.Pods(t, ns, harness.WorkersOf("demo"))) }).Should(Equal(3))
		c.BecomesReady(t, cluster)
		c.Edit(t, cluster, replicas(1))
		g.Eventually(func() []corev1.Pod { return harness.Alive(c.Pods(t, ns, harness.WorkersOf("demo"))) }).Should(HaveLen(1))
	})

	t.Run("replaces a deleted and a failed Pod under new names", func(t *testing.T) {
		g := NewWithT(t)
		c.BecomesReady(t, cluster)
		worker := c.Pods(t, ns, harness.WorkersOf("demo"))[0]
		c.SetPod(t, &worker, harness.Ended(corev1.PodFailed, ""))
		g.Eventually(func() []string { return harness.Names(harness.Alive(c.Pods(t, ns, harness.WorkersOf("demo")))) }).
			ShouldNot(Or(ContainElement(worker.Name), BeEmpty()))
		head := c.Pods(t, ns, harness.HeadOf("demo"))[0]
		c.Kill(t, &head)
		g.Eventually(func() []string { return harness.Names(c.Pods(t, ns, harness.HeadOf("demo"))) }).
			ShouldNot(Or(ContainElement(head.Name), BeEmpty()))
	})

	t.Run("is deleted without waiting for the operator", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(cluster.Finalizers).To(BeEmpty())
		g.Expect(c.Delete(t.Context(), cluster)).To(Succeed())
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).ToNot(Succeed())
	})
}

func replicas(count int32) func(*rayv1.RayCluster) {
	return func(cluster *rayv1.RayCluster) { cluster.Spec.WorkerGroupSpecs[0].Replicas = &count }
}

func TestRefusedPodsAreSaidAndDoNotMakeAHotLoop(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.LimitCPUs(t, ns)
	cluster := harness.NewCluster(ns, "demo")
	harness.AskFor(&cluster.Spec.WorkerGroupSpecs[0].Template, map[corev1.ResourceName]string{"cpu": harness.TooManyCPUs})
	operator := c.Run(t, ns)
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	g.Eventually(func() string {
		c.Kubelet(t, ns)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		failure := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionReplicaFailure)
		if failure == nil || failure.Status != metav1.ConditionTrue {
			return ""
		}
		return failure.Reason + ": " + failure.Message
	}).Should(And(ContainSubstring(rayv1.ReasonFailedCreateWorkerPod), ContainSubstring("maximum cpu usage per Container is 1")))
	g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, rayv1.ConditionRayClusterProvisioned)).To(BeFalse())
	g.Expect(c.Pods(t, ns, harness.HeadOf("demo"))).To(HaveLen(1))

	// The back-off doubles from one second up to a minute: after five tries there is room for few more.
	before := operator.Traffic.Writes()
	g.Consistently(func() int { return operator.Traffic.Writes() - before }, 15*time.Second, time.Second).
		Should(BeNumerically("<=", 40), "many writes while the API server refuses the Pods are a hot loop")

	c.Edit(t, cluster, func(cluster *rayv1.RayCluster) {
		cluster.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	})
	c.BecomesReady(t, cluster)
	g.Eventually(func() *metav1.Condition {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		return meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionReplicaFailure)
	}).Should(BeNil())
}

// TestBadInputIsSaidAndCostsNothing is about specs that pass the schema and still cannot be acted upon.
func TestBadInputIsSaidAndCostsNothing(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns)
	bad := harness.NewCluster(ns, "bad")
	bad.Spec.HeadGroupSpec.RayStartParams = map[string]string{"num-cpus": "2"}
	bad.Spec.HeadGroupSpec.Resources = map[string]string{"CPU": "1"}
	g.Expect(c.Create(t.Context(), bad)).To(Succeed())
	job := harness.NewJob(ns, rayv1.K8sJobMode)
	job.Spec.TTLSecondsAfterFinished = 5 // without shutdownAfterJobFinishes
	g.Expect(c.Create(t.Context(), job)).To(Succeed())

	g.Eventually(func() string {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(bad), bad)).To(Succeed())
		if valid := meta.FindStatusCondition(bad.Status.Conditions, rayv1.ConditionValid); valid != nil {
			return string(valid.Status) + ": " + valid.Message
		}
		return ""
	}).Should(And(HavePrefix("False"), ContainSubstring("spec.headGroupSpec.rayStartParams[num-cpus]"), ContainSubstring("2")))
	g.Eventually(func() string {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return string(job.Status.JobDeploymentStatus) + ": " + job.Status.Message
	}).Should(And(HavePrefix("ValidationFailed"), ContainSubstring("spec.ttlSecondsAfterFinished"), ContainSubstring("shutdownAfterJobFinishes")))
	g.Eventually(func() []string { return append(c.EventReasons(t, bad), c.EventReasons(t, job)...) }).
		Should(ContainElements("InvalidRayClusterSpec", "InvalidRayJobSpec"))
	g.Expect(c.Pods(t, ns, nil)).To(BeEmpty())

	operator.Settle(t)
	reads, writes := operator.Traffic.Reads(), operator.Traffic.Writes()
	g.Consistently(func() []int { return []int{operator.Traffic.Reads() - reads, operator.Traffic.Writes() - writes} },
		20*time.Second, time.Second).Should(HaveExactElements(BeNumerically("<=", 10), BeZero()), "reads and writes with nothing to do")

	c.Edit(t, bad, func(cluster *rayv1.RayCluster) { cluster.Spec.HeadGroupSpec.Resources = nil })
	c.BecomesReady(t, bad)
}

func TestForeignServiceUnderOurNameIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "demo-head-svc"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	g.Expect(c.Create(t.Context(), foreign)).To(Succeed())
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	c.Run(t, ns)
	g.Eventually(func() []string { return c.EventReasons(t, cluster) }).Should(ContainElement("FailedToCreateService"))
	g.Eventually(func() int { return len(c.Pods(t, ns, nil)) }).Should(Equal(3), "Pods do not wait for the Service")
	after := &corev1.Service{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(foreign), after)).To(Succeed())
	g.Expect(after.ResourceVersion).To(Equal(foreign.ResourceVersion))
}
