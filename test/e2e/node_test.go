//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// twoNodes are the names of two nodes: one to be lost, and one to stay, on which the cluster's DNS is. Without that no name leads
// anywhere for the five minutes that Kubernetes gives a node to come back.
func (w *world) twoNodes(t *testing.T, g Gomega) (lost, stays string) {
	t.Helper()
	dns := &corev1.PodList{}
	g.Expect(w.List(t.Context(), dns, client.InNamespace("kube-system"), client.MatchingLabels{"k8s-app": "kube-dns"})).To(Succeed())
	g.Expect(dns.Items).ToNot(BeEmpty(), "Pods of the cluster's DNS")
	stays = dns.Items[0].Spec.NodeName
	nodes := &corev1.NodeList{}
	g.Expect(w.List(t.Context(), nodes)).To(Succeed())
	i := slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.Name != stays })
	g.Expect(i).To(BeNumerically(">=", 0), "a second node")
	return nodes.Items[i].Name, stays
}

// cutOff takes the network of a node away until the test ends, or until it is given back. What runs there goes on running.
func (w *world) cutOff(t *testing.T, g Gomega, node string) (giveBack func() error) {
	t.Helper()
	localkube := func(what string) error {
		cmd := exec.Command(os.Getenv("HELIOSTAT_LOCALKUBE"), "node", what, node, "--name", os.Getenv("HELIOSTAT_CLUSTER"))
		out, err := cmd.CombinedOutput()
		t.Logf("%s %s: %s", what, node, out)
		return err
	}
	t.Cleanup(func() {
		if err := localkube("restore"); err != nil {
			t.Errorf("give node %s its network back: %v", node, err)
		}
	})
	g.Expect(localkube("cut")).To(Succeed())
	return func() error { return localkube("restore") }
}

// onNode keeps the Pods of a template on a node.
func onNode(template *corev1.PodTemplateSpec, node string) {
	template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
}

// preferring has the Pods of a template run on a node as long as that is there, and leave it as soon as it is lost.
func preferring(template *corev1.PodTemplateSpec, node string) {
	template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	for _, taint := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		template.Spec.Tolerations = append(template.Spec.Tolerations,
			corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)})
	}
}

// apart puts the head on a node of its own, so that only the head is lost with it.
func apart(c *rayv1.RayCluster, head, others string) {
	c.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1)
	preferring(&c.Spec.HeadGroupSpec.Template, head)
	onNode(&c.Spec.WorkerGroupSpecs[0].Template, others)
	c.Spec.HeadGroupSpec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](10)
}

// TestTheNodeOfAHeadIsLostWithRedis: a user who would rather have a head than be sure says for how long to wait, and no actor on a
// worker is lost.
func TestTheNodeOfAHeadIsLostWithRedis(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	lost, stays := w.twoNodes(t, g)
	w.apply(t, "../../docs/examples/raycluster-redis.yaml")
	w.gone(t, g, "durable")
	redis := &appsv1.Deployment{}
	w.get(t, g, "redis", redis)
	base := redis.DeepCopy()
	onNode(&redis.Spec.Template, stays)
	g.Expect(w.Patch(t.Context(), redis, client.MergeFrom(base))).To(Succeed())
	g.Eventually(func() string { return w.redisPod(t, g).Spec.NodeName }, podPatience, time.Second).Should(Equal(stays))
	name := w.create(t, "../../docs/examples/raycluster.yaml", func(c *rayv1.RayCluster) {
		c.Name = "lost"
		c.Annotations = map[string]string{rayv1.AnnotationStuckHeadTimeout: "30"}
		c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{RedisAddress: "redis:6379",
			RedisPassword: &rayv1.RedisCredential{Value: "change-me"}}
		apart(c, lost, stays)
	})
	cluster := w.ready(t, g, name)
	w.counts(t, g, name, 1)
	before := w.head(t, g, name)
	g.Expect(before.Spec.NodeName).To(Equal(lost))

	w.cutOff(t, g, lost)
	w.newHead(t, g, name, before.Name)
	g.Expect(w.head(t, g, name).Spec.NodeName).To(Equal(stays))
	w.ready(t, g, name)
	w.counts(t, g, name, 2)
	g.Expect(w.warnings(t, cluster)).To(ContainElement(ContainSubstring("deleted head Pod without waiting for its node")))
	// The leader may have been on that node; what the next one knows of the loss is nothing (docs/recovery.md).
}

// TestTheNodeOfAHeadIsCutOffWithAVolume: no second head is let onto the volume while the first one may be at work there, and the
// wait has its reason. When the node is back the next head goes on from the volume.
func TestTheNodeOfAHeadIsCutOffWithAVolume(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	lost, stays := w.twoNodes(t, g)
	w.volume(t, g)
	name := w.create(t, "../../docs/examples/raycluster-volume.yaml", func(c *rayv1.RayCluster) { apart(c, lost, stays) })
	w.ready(t, g, name)
	w.counts(t, g, name, 1)
	before := w.head(t, g, name)
	g.Expect(before.Spec.NodeName).To(Equal(lost))

	giveBack := w.cutOff(t, g, lost)
	g.Eventually(func() string {
		cluster := &rayv1.RayCluster{}
		w.get(t, g, name, cluster)
		stalled := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionStalled)
		if stalled == nil {
			return ""
		}
		return stalled.Reason + ": " + stalled.Message
	}, podPatience, time.Second).Should(And(HavePrefix("StuckTerminating"), ContainSubstring(lost)))
	g.Expect(w.head(t, g, name).UID).To(Equal(before.UID), "one head")

	g.Expect(giveBack()).To(Succeed())
	w.newHead(t, g, name, before.Name)
	w.ready(t, g, name)
	w.counts(t, g, name, 2)
}
