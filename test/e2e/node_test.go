//go:build e2e

package e2e

import (
	"context"
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

// localkube does something to the machines of the cluster, and says so.
func localkube(t *testing.T, args ...string) error {
	t.Helper()
	cmd := exec.Command(os.Getenv("HELIOSTAT_LOCALKUBE"), append(args, "--name", os.Getenv("HELIOSTAT_CLUSTER"))...)
	out, err := cmd.CombinedOutput()
	t.Logf("localkube %v: %s", args, out)
	return err
}

// takenAway does something to the cluster and has it undone when the test ends, or when undo is called. To undo it twice does no harm.
func takenAway(t *testing.T, g Gomega, what []string, back []string) (undo func() error) {
	t.Helper()
	undone := false
	undo = func() error {
		if undone {
			return nil
		}
		err := localkube(t, back...)
		undone = err == nil
		return err
	}
	t.Cleanup(func() {
		if err := undo(); err != nil {
			t.Errorf("localkube %v: %v", back, err)
		}
	})
	g.Expect(localkube(t, what...)).To(Succeed())
	return undo
}

// cutOff takes the network of a node away until the test ends, or until it is given back. What runs there goes on running.
func (w *world) cutOff(t *testing.T, g Gomega, node string) (giveBack func() error) {
	t.Helper()
	return takenAway(t, g, []string{"node", "cut", node}, []string{"node", "restore", node})
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
	w.volume(t, g, "first")
	name := w.create(t, "../../docs/examples/raycluster-volume.yaml", func(c *rayv1.RayCluster) { apart(c, lost, stays) })
	w.ready(t, g, name)
	w.counts(t, g, name, 1)
	before := w.head(t, g, name)
	g.Expect(before.Spec.NodeName).To(Equal(lost))

	giveBack := w.cutOff(t, g, lost)
	w.stuckOn(t, g, name, lost)
	g.Expect(w.head(t, g, name).UID).To(Equal(before.UID), "one head")

	g.Expect(giveBack()).To(Succeed())
	w.newHead(t, g, name, before.Name)
	w.ready(t, g, name)
	w.counts(t, g, name, 2)
}

// stuckOn waits until a cluster says that its head cannot be known to have ended, because its node does not answer.
func (w *world) stuckOn(t *testing.T, g Gomega, name, node string) {
	t.Helper()
	g.Eventually(func() string {
		cluster := &rayv1.RayCluster{}
		w.get(t, g, name, cluster)
		stalled := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionStalled)
		if stalled == nil {
			return ""
		}
		return stalled.Reason + ": " + stalled.Message
	}, podPatience, time.Second).Should(And(HavePrefix("StuckTerminating"), ContainSubstring(node)), "RayCluster %s", name)
}

// outOfService says for the user that a node is off, and not only silent, until the test ends.
func (w *world) outOfService(t *testing.T, g Gomega, name string) {
	t.Helper()
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	change := func(ctx context.Context, edit func([]corev1.Taint) []corev1.Taint) error {
		node := &corev1.Node{}
		if err := w.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		base := node.DeepCopy()
		node.Spec.Taints = edit(node.Spec.Taints)
		return w.Patch(ctx, node, client.StrategicMergeFrom(base))
	}
	t.Cleanup(func() {
		err := change(context.Background(), func(taints []corev1.Taint) []corev1.Taint {
			return slices.DeleteFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
		})
		if err != nil {
			t.Errorf("take node %s back into service: %v", name, err)
		}
	})
	g.Expect(change(t.Context(), func(taints []corev1.Taint) []corev1.Taint { return append(taints, taint) })).To(Succeed())
}

// TestTheNodeOfHeadsIsOff: a node ends without a word, with the heads of two clusters. Once Kubernetes is told that it is off, both
// get a new one elsewhere: that with its state on a volume goes on from there, the other one begins anew and says what was lost.
func TestTheNodeOfHeadsIsOff(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	off, stays := w.twoNodes(t, g)
	w.volume(t, g, "first")
	stored := w.create(t, "../../docs/examples/raycluster-volume.yaml", func(c *rayv1.RayCluster) { apart(c, off, stays) })
	plain := w.create(t, "../../docs/examples/raycluster.yaml", func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadWhileJobsRun}
		apart(c, off, stays)
	})
	before := map[string]*corev1.Pod{}
	for _, name := range []string{stored, plain} {
		w.ready(t, g, name)
		before[name] = w.head(t, g, name)
		g.Expect(before[name].Spec.NodeName).To(Equal(off))
	}
	w.counts(t, g, stored, 1)
	w.actorsAreKnown(t, g, plain)

	switchOn := takenAway(t, g, []string{"node", "off", off}, []string{"node", "on", off})
	for name := range before {
		w.stuckOn(t, g, name, off)
		g.Expect(w.head(t, g, name).UID).To(Equal(before[name].UID), "one head")
	}
	w.outOfService(t, g, off)
	for name := range before {
		w.newHead(t, g, name, before[name].Name)
		w.ready(t, g, name)
		g.Expect(w.head(t, g, name).Spec.NodeName).To(Equal(stays))
	}
	w.counts(t, g, stored, 2)
	told := w.recovery(t, g, plain, podPatience, rayv1.LostHead, func(r rayv1.RayClusterRecovery) bool { return r.State != rayv1.RecoveryObserving })
	g.Expect(told.Pod).To(Equal(before[plain].Name))
	g.Expect(switchOn()).To(Succeed())
}
