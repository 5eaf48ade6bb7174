//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestAutoscaler runs Ray's own autoscaler, unmodified, in both of its versions: workers follow detached actors up and
// down, within limits that are changed meanwhile.
func TestAutoscaler(t *testing.T) {
	for _, version := range []rayv1.AutoscalerVersion{rayv1.AutoscalerVersionV1, rayv1.AutoscalerVersionV2} {
		t.Run(string(version), func(t *testing.T) {
			g := NewWithT(t)
			w := connect(t)
			e := elastic{world: w, t: t, g: g}
			e.name = w.create(t, "../../docs/examples/raycluster-autoscaler.yaml", func(cluster *rayv1.RayCluster) {
				cluster.Spec.AutoscalerOptions.Version = &version
			})
			w.ready(t, g, e.name)
			e.workers(0, "nothing is waiting")

			e.actor("first")
			e.workers(1, "one actor needs a worker")
			e.crash()
			e.actor("second")
			e.workers(2, "two actors need two workers, after a crash of the autoscaler")
			e.rayInHeadNeverStopped()

			e.limit(0, 1)
			e.workers(1, "maxReplicas is lowered")
			e.limit(0, 2)
			e.workers(2, "maxReplicas is raised, and the actor that lost its worker waits")

			e.kill("first")
			e.kill("second")
			e.workers(0, "the workers are idle")
			e.limit(1, 2)
			e.workers(1, "minReplicas is raised")
			e.nobodyElseScales()
		})
	}
}

// TestAutoscalerIdleTimeouts: with version v2, each group has an idle time of its own.
func TestAutoscalerIdleTimeouts(t *testing.T) {
	g := NewWithT(t)
	w := connect(t)
	e := elastic{world: w, t: t, g: g}
	e.name = w.create(t, "../../docs/examples/raycluster-autoscaler.yaml", func(cluster *rayv1.RayCluster) {
		groups := cluster.Spec.WorkerGroupSpecs
		patient := *groups[0].DeepCopy()
		patient.GroupName, patient.MaxReplicas = "patient", ptr.To[int32](1)
		patient.Resources = map[string]string{"patience": "1", "CPU": "1"}
		groups[0].IdleTimeoutSeconds, patient.IdleTimeoutSeconds = ptr.To[int32](5), ptr.To[int32](3600)
		cluster.Spec.WorkerGroupSpecs = append(groups, patient)
	})
	w.ready(t, g, e.name)
	e.actor("hasty")
	e.workers(1, "one actor needs a worker")
	e.run(`Actor.options(name="patient", lifetime="detached", resources={"patience": 1}).remote()`)
	e.workers(2, "another one needs a worker of the other group")
	e.kill("hasty")
	e.kill("patient")
	e.workers(1, "the worker with the short idle time goes")
	g.Expect(w.pods(t, client.MatchingLabels{rayv1.LabelGroup: "patient"})).To(HaveLen(1), "the patient worker stays")
}

// elastic is a RayCluster that Ray's autoscaler scales.
type elastic struct {
	*world
	t    *testing.T
	g    Gomega
	name string
}

// run runs Python in the head, connected to Ray.
func (e elastic) run(script string) {
	e.t.Helper()
	const connected = `
import ray
ray.init(address="auto", namespace="e2e", log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=1, max_restarts=-1)
class Actor:
    pass

`
	out, err := e.exec(e.t.Context(), e.head(e.t, e.g, e.name), "python", "-c", connected+script)
	e.g.Expect(err).ToNot(HaveOccurred(), out)
}

func (e elastic) actor(name string) {
	e.t.Helper()
	e.run(fmt.Sprintf("Actor.options(name=%q, lifetime=\"detached\").remote()", name))
}

func (e elastic) kill(name string) {
	e.t.Helper()
	e.run(fmt.Sprintf("ray.kill(ray.get_actor(%q))", name))
}

// crash ends the process of the autoscaler beside the head.
func (e elastic) crash() {
	e.t.Helper()
	const script = `
import os, signal
for pid in filter(str.isdigit, os.listdir("/proc")):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        words = f.read().split(b"\0")
    if int(pid) != os.getpid() and b"kuberay-autoscaler" in words:
        print("interrupting", pid, words)
        os.kill(int(pid), signal.SIGINT)
`
	out, err := e.execIn(e.t.Context(), e.head(e.t, e.g, e.name), "autoscaler", "python", "-c", script)
	e.g.Expect(err).ToNot(HaveOccurred(), out)
	e.g.Expect(out).To(ContainSubstring("interrupting"))
}

func (e elastic) rayInHeadNeverStopped() {
	e.t.Helper()
	for _, status := range e.head(e.t, e.g, e.name).Status.ContainerStatuses {
		if status.Name != "autoscaler" {
			e.g.Expect(status.RestartCount).To(BeZero(), "container %s", status.Name)
		}
	}
}

// workers waits until Ray and Kubernetes agree on the number of workers.
func (e elastic) workers(want int, why string) {
	e.t.Helper()
	since := time.Now()
	e.g.Eventually(func() int {
		return len(e.pods(e.t, client.MatchingLabels{rayv1.LabelCluster: e.name, rayv1.LabelNodeType: rayv1.NodeTypeWorker}))
	}, podPatience, time.Second).Should(Equal(want), "%s: %d workers", why, want)
	e.ready(e.t, e.g, e.name)
	e.g.Eventually(func() string { return e.activeNodes(e.t, e.g, e.name) }, podPatience, 2*time.Second).
		Should(ContainSubstring("alive %d", want+1), "%s: Ray sees the head and %d workers", why, want)
	e.t.Logf("%s: %d workers after %s", why, want, time.Since(since).Round(time.Second))
}

func (e elastic) limit(least, most int32) {
	e.t.Helper()
	const path = "/spec/workerGroupSpecs/0/"
	patch := fmt.Sprintf(`[{"op":"replace","path":%q,"value":%d},{"op":"replace","path":%q,"value":%d}]`,
		path+"minReplicas", least, path+"maxReplicas", most)
	cluster := &rayv1.RayCluster{ObjectMeta: objectMeta(e.namespace, e.name)}
	e.g.Expect(e.Patch(e.t.Context(), cluster, client.RawPatch(types.JSONPatchType, []byte(patch)))).To(Succeed())
}

// nobodyElseScales looks at who owns the fields of the RayCluster: the operator has none outside the status.
func (e elastic) nobodyElseScales() {
	e.t.Helper()
	cluster := &rayv1.RayCluster{}
	e.get(e.t, e.g, e.name, cluster)
	for _, fields := range cluster.ManagedFields {
		if fields.Manager == "heliostat" {
			e.g.Expect(fields.Subresource).To(Equal("status"), "the operator writes nothing but the status")
		}
	}
}
