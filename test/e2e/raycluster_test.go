//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestRayClusterLifeCycle: a lost head, a suspend and a changed spec, each on the same cluster with real Ray.
func TestRayClusterLifeCycle(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.create(t, "../../docs/examples/raycluster.yaml", func(cluster *rayv1.RayCluster) {
		cluster.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
	})
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)
	plan, _ := w.kubectlRay(t, "plan", name)
	g.Expect(plan).To(ContainSubstring("Planned with the settings of Deployment heliostat-system/"), "the operator that was installed")

	lost := w.head(t, g, name)
	workers := w.podUIDs(t, name)
	delete(workers, lost.Name)
	g.Expect(w.Delete(t.Context(), lost, client.GracePeriodSeconds(0))).To(Succeed())
	w.newHead(t, g, name, lost.Name)
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)
	for worker, uid := range workers {
		g.Expect(w.podUIDs(t, name)).To(HaveKeyWithValue(worker, uid), "the operator leaves the workers of a lost head alone")
	}

	w.edit(t, g, name, func(cluster *rayv1.RayCluster) { cluster.Spec.Suspend = ptr.To(true) })
	w.condition(t, g, name, rayv1.ConditionRayClusterSuspended)
	g.Expect(w.podUIDs(t, name)).To(BeEmpty(), "a suspended cluster has no Pods")
	w.edit(t, g, name, func(cluster *rayv1.RayCluster) { cluster.Spec.Suspend = nil })
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)

	before := w.podUIDs(t, name)
	w.edit(t, g, name, func(cluster *rayv1.RayCluster) {
		container := &cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0]
		container.Env = append(container.Env, corev1.EnvVar{Name: "RELEASE", Value: "2"})
	})
	g.Eventually(func() map[string]string { return w.podUIDs(t, name) }, podPatience, time.Second).Should(And(HaveLen(3),
		WithTransform(func(now map[string]string) int { return common(before, now) }, BeZero())), "all Pods are new ones")
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)
}

// TestReplicaOfSeveralHosts: a replica that loses a host is made anew as a whole, in its place.
func TestReplicaOfSeveralHosts(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	name := w.create(t, "../../docs/examples/raycluster-multihost.yaml", func(cluster *rayv1.RayCluster) {
		cluster.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1) // two cores have room for one
	})
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)
	hosts := client.MatchingLabels{rayv1.LabelCluster: name, rayv1.LabelWorkerGroupReplicaIndex: "0"}
	before := w.podUIDs(t, name)
	lost := w.pods(t, hosts)[0]
	g.Expect(w.Delete(t.Context(), &lost, client.GracePeriodSeconds(0))).To(Succeed())
	g.Eventually(func() map[string]string { return w.podUIDs(t, name) }, podPatience, time.Second).Should(And(HaveLen(3),
		WithTransform(func(now map[string]string) int { return common(before, now) }, Equal(1))), "both hosts are new ones, the head is not")
	w.ready(t, g, name)
	w.allJoined(t, g, name, 3)
	g.Expect(w.pods(t, hosts)).To(HaveLen(2), "the new replica has the index of the old one")
}

func common(a, b map[string]string) int {
	count := 0
	for name := range a {
		if _, ok := b[name]; ok {
			count++
		}
	}
	return count
}

// allJoined waits until exactly that many nodes of Ray are alive.
func (w *world) allJoined(t *testing.T, g Gomega, name string, nodes int) {
	t.Helper()
	g.Eventually(func() string { return w.activeNodes(t, g, name) }, podPatience, 5*time.Second).
		Should(ContainSubstring("alive %d", nodes), "nodes of RayCluster %s", name)
}

// create makes the RayCluster of a manifest after a change, and returns its name.
func (w *world) create(t *testing.T, path string, change func(*rayv1.RayCluster)) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &rayv1.RayCluster{}
	if err := yaml.UnmarshalStrict(text, cluster); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	cluster.Namespace = w.namespace
	change(cluster)
	if err := w.Create(t.Context(), cluster); err != nil {
		t.Fatalf("create RayCluster %s of %s: %v", cluster.Name, path, err)
	}
	return cluster.Name
}

// newHead waits until the cluster has one head, which is another one than before.
func (w *world) newHead(t *testing.T, g Gomega, cluster, before string) {
	t.Helper()
	g.Eventually(func() []string {
		var names []string
		for _, pod := range w.pods(t, client.MatchingLabels{rayv1.LabelCluster: cluster, rayv1.LabelNodeType: rayv1.NodeTypeHead}) {
			names = append(names, pod.Name)
		}
		return names
	}, podPatience, time.Second).Should(And(HaveLen(1), Not(ContainElement(before))), "a new head")
}

func (w *world) edit(t *testing.T, g Gomega, name string, change func(*rayv1.RayCluster)) {
	t.Helper()
	cluster := &rayv1.RayCluster{}
	w.get(t, g, name, cluster)
	base := cluster.DeepCopy()
	change(cluster)
	g.Expect(w.Patch(t.Context(), cluster, client.MergeFrom(base))).To(Succeed())
}

// condition waits until a condition of a RayCluster is True.
func (w *world) condition(t *testing.T, g Gomega, name, kind string) {
	t.Helper()
	cluster := &rayv1.RayCluster{}
	g.Eventually(func() bool {
		w.get(t, g, name, cluster)
		return meta.IsStatusConditionTrue(cluster.Status.Conditions, kind)
	}, podPatience, time.Second).Should(BeTrue(), "condition %s of RayCluster %s", kind, name)
}
