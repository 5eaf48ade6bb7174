package integration

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// TestTroubleOfPodsIsLiftedIntoTheCluster is about what the operator has to watch for it: Pods, and the kubelet's events.
func TestTroubleOfPodsIsLiftedIntoTheCluster(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo")
	g.Expect(c.Create(t.Context(), cluster)).To(Succeed())
	says := func(kind string) func() string {
		return func() string {
			condition := c.Condition(t, cluster, kind)
			return string(condition.Status) + "/" + condition.Reason + ": " + condition.Message
		}
	}
	g.Eventually(func() []corev1.Pod { return c.Pods(t, ns, nil) }).Should(HaveLen(3))
	head := c.Pods(t, ns, harness.HeadOf("demo"))[0]
	bind(t, g, c, &head)

	event := func(reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, GenerateName: "e-"}, Type: corev1.EventTypeWarning,
			Reason: reason, Message: message, LastTimestamp: metav1.Now(), Source: corev1.EventSource{Component: "kubelet"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: head.Name, UID: head.UID, APIVersion: "v1"}}
	}
	g.Expect(c.Create(t.Context(), event("Pulling", "Pulling image"))).To(Succeed())
	g.Expect(c.Create(t.Context(), event("FailedMount", `MountVolume.SetUp failed for volume "d": secret "x" not found`))).To(Succeed())
	g.Eventually(says(rayv1.ConditionPodsHealthy)).Should(And(HavePrefix("False/FailedMount"), ContainSubstring(head.Name), ContainSubstring(`secret "x" not found`)))
	g.Expect(says(rayv1.ConditionReconciling)()).To(HavePrefix("True/"), "the volume may still come")

	worker := c.Pods(t, ns, harness.WorkersOf("demo"))[0]
	c.SetPod(t, &worker, harness.Waiting("ray-worker", "ImagePullBackOff", "no such image"))
	g.Eventually(says(rayv1.ConditionStalled)).Should(And(HavePrefix("True/ImagePullBackOff"), ContainSubstring("group a"), ContainSubstring("no such image")))
	g.Expect(says(rayv1.ConditionPodsHealthy)()).To(ContainSubstring("FailedMount"), "each group has a line")

	for _, pod := range c.Pods(t, ns, nil) {
		c.SetPod(t, &pod, harness.Ready)
	}
	c.BecomesReady(t, cluster)
	g.Eventually(says(rayv1.ConditionPodsHealthy)).Should(HavePrefix("True/NoTrouble"))
	g.Expect(says(rayv1.ConditionReady)()).To(HavePrefix("True/AllPodsReady"))
	g.Expect(says(rayv1.ConditionReconciling)() + says(rayv1.ConditionStalled)()).ToNot(ContainSubstring("True"))

	t.Run("a Pod of nobody with the cluster's label is told of while it is there", func(t *testing.T) {
		g := NewWithT(t)
		operator.Settle(t)
		fake := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "fake",
			Labels: map[string]string{rayv1.LabelCluster: "demo", rayv1.LabelNodeType: rayv1.NodeTypeHead}}, Spec: harness.PodTemplate("ray-head").Spec}
		g.Expect(c.Create(t.Context(), fake)).To(Succeed())
		g.Eventually(says(rayv1.ConditionNameCollision)).Should(And(HavePrefix("True/"), ContainSubstring("Pod fake")))
		g.Expect(says(rayv1.ConditionReady)()).To(HavePrefix("True/"))
		c.Kill(t, fake)
		g.Eventually(says(rayv1.ConditionNameCollision)).Should(Equal("/: "))
		g.Eventually(func() []string { return c.EventReasons(t, cluster) }).Should(ContainElement("NameCollision"))
	})
}

// bind gives a Pod a node, as the scheduler would.
func bind(t *testing.T, g Gomega, c harness.Cluster, pod *corev1.Pod) {
	t.Helper()
	g.Expect(c.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"},
	})).To(Succeed())
}

// TestAStartCostsTwoStatusWrites counts what else is written elsewhere.
func TestAStartCostsTwoStatusWrites(t *testing.T) {
	c, ns := harness.Connect(t)
	operator := c.Run(t, ns)
	cluster := harness.NewCluster(ns, "demo", replicas(3))
	NewWithT(t).Expect(c.Create(t.Context(), cluster)).To(Succeed())
	NewWithT(t).Eventually(func() []corev1.Pod { return c.Pods(t, ns, nil) }).Should(HaveLen(4))
	c.BecomesReady(t, cluster)
	operator.Settle(t)
	NewWithT(t).Expect(operator.Traffic.Count("patch", "rayclusters/status")).To(Equal(2))
}
