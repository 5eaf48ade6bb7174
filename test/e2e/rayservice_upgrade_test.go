//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// upgrades is the RayService of testdata/rayservice-echo.yaml under load, as its versions follow one another.
type upgrades struct {
	*load
	name    string
	version int
	word    string
}

// upgrading is the RayService of testdata/rayservice-echo.yaml when it serves, under load.
func upgrading(t *testing.T) *upgrades {
	t.Helper()
	s := serve(t)
	s.apply(t, "testdata/rayservice-echo.yaml")
	s.serves("echo", 2)
	return &upgrades{load: s.load(fmt.Sprintf("http://echo-serve-svc.%s.svc.cluster.local:8000/", s.namespace)), name: "echo", version: 1, word: "hello"}
}

// TestRayServiceUpgradeFailsNoRequest: not one request fails while a service is upgraded again and again, while the leading
// operator is killed at every step of it, and while the config changes in place.
func TestRayServiceUpgradeFailsNoRequest(t *testing.T) {
	u := upgrading(t)
	defer u.report()
	for i := range 5 {
		u.strictPhase(fmt.Sprintf("upgrade %d", i+1))
		u.upgrade(nil)
	}
	for _, step := range steps() {
		u.strictPhase("the leader is killed: " + step.name)
		u.upgrade(&step)
	}
	u.strictPhase("config: another user_config")
	u.configure(`word: hello`, `word: hi`, "hi")
	u.strictPhase("config: other resources, so other replicas")
	u.configure(`num_cpus: 0.1`, `num_cpus: 0.2`, "hi")
	u.strictPhase("after the last change")
}

// TestRayServiceLosesWorkers measures what becomes of requests when workers come and go. Those that a killed Pod was busy
// with are lost, whoever manages it.
func TestRayServiceLosesWorkers(t *testing.T) {
	u := upgrading(t)
	defer u.report()
	u.strictPhase("one more worker")
	u.workers(2)
	u.settled()
	u.strictPhase("one worker less")
	u.workers(1)
	u.settled()
	u.strictPhase("a serving Pod is deleted")
	u.lose()
	u.settled()
	u.phase("a serving Pod is killed")
	u.lose(client.GracePeriodSeconds(0))
	u.settled()
}

// step is a moment in an upgrade.
type step struct {
	name string
	// reached is true from that moment on.
	reached func(u *upgrades, g Gomega, before, now *rayv1.RayService) bool
}

func steps() []step {
	return []step{
		{"the cluster is made", func(u *upgrades, g Gomega, _, now *rayv1.RayService) bool {
			return u.cluster(g, now.Status.PendingServiceStatus.RayClusterName) != nil
		}},
		{"the config is applied", func(u *upgrades, g Gomega, _, now *rayv1.RayService) bool {
			cluster := u.cluster(g, now.Status.PendingServiceStatus.RayClusterName)
			return cluster != nil && cluster.Annotations[rayv1.AnnotationServeConfig] != ""
		}},
		{"an endpoint is ready", func(_ *upgrades, _ Gomega, _, now *rayv1.RayService) bool {
			return now.Status.PendingServiceStatus.ReadyServeEndpoints > 0
		}},
		{"the traffic has just moved", func(u *upgrades, g Gomega, before, _ *rayv1.RayService) bool {
			return u.selected(g) != before.Status.ActiveServiceStatus.RayClusterName
		}},
		{"the old cluster drains", func(u *upgrades, g Gomega, before, _ *rayv1.RayService) bool {
			cluster := u.cluster(g, before.Status.ActiveServiceStatus.RayClusterName)
			return cluster != nil && cluster.Annotations[rayv1.AnnotationRetiredAt] != ""
		}},
	}
}

// cluster is the RayCluster of that name, or nil when there is none.
func (u *upgrades) cluster(g Gomega, name string) *rayv1.RayCluster {
	if name == "" {
		return nil
	}
	cluster := &rayv1.RayCluster{}
	err := u.Get(u.t.Context(), client.ObjectKey{Namespace: u.namespace, Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil
	}
	g.Expect(err).ToNot(HaveOccurred())
	return cluster
}

// selected is the name of the cluster that the Service sends requests to.
func (u *upgrades) selected(g Gomega) string {
	service := &corev1.Service{}
	u.get(u.t, g, u.name+"-serve-svc", service)
	return service.Spec.Selector[rayv1.LabelCluster]
}

// upgrade changes the version, which takes another cluster, and waits until that one serves and the old one is gone. At the
// given step, if any, the leading operator is killed.
func (u *upgrades) upgrade(kill *step) {
	u.t.Helper()
	before, since := u.service(u.name), time.Now()
	u.version++
	u.change(u.name, func(service *rayv1.RayService) {
		setVersion(&service.Spec.RayClusterConfig, fmt.Sprintf("v%d", u.version))
	})
	if kill != nil {
		u.g.Eventually(func(g Gomega) bool { return kill.reached(u, g, before, u.service(u.name)) }, servePatience, 100*time.Millisecond).
			Should(BeTrue(), "step of the upgrade: %s", kill.name)
		u.t.Logf("%s %s after the change", kill.name, time.Since(since).Round(time.Second))
		u.killLeader()
	}
	after := u.serves(u.name, 2)
	u.t.Logf("version %d serves %s after the change", u.version, time.Since(since).Round(time.Second))
	old, next := before.Status.ActiveServiceStatus.RayClusterName, after.Status.ActiveServiceStatus.RayClusterName
	u.g.Expect(next).ToNot(Equal(old))
	u.g.Expect(u.selected(u.g)).To(Equal(next))
	u.g.Expect(after.Status.ClusterIncarnations).To(Equal(before.Status.ClusterIncarnations+1), "clusters made for one upgrade")
	u.g.Eventually(func(g Gomega) *rayv1.RayCluster { return u.cluster(g, old) }, servePatience, time.Second).Should(BeNil(), "the old cluster goes")
	u.t.Logf("the old cluster is gone %s after the change", time.Since(since).Round(time.Second))
	u.g.Expect(u.answer()).To(Equal(u.want()))
}

// answer is what the service answers now.
func (u *upgrades) answer() string {
	u.t.Helper()
	cluster := u.service(u.name).Status.ActiveServiceStatus.RayClusterName
	return u.ask(u.head(u.t, u.g, cluster), "http://"+u.name+"-serve-svc:8000/", "")
}

func (u *upgrades) want() string { return fmt.Sprintf("v%d %s", u.version, u.word) }

func setVersion(spec *rayv1.RayClusterSpec, version string) {
	set := func(template *corev1.PodTemplateSpec) {
		for i, env := range template.Spec.Containers[0].Env {
			if env.Name == "VERSION" {
				template.Spec.Containers[0].Env[i].Value = version
			}
		}
	}
	set(&spec.HeadGroupSpec.Template)
	for i := range spec.WorkerGroupSpecs {
		set(&spec.WorkerGroupSpecs[i].Template)
	}
}

// configure changes the config in place, and waits until all that answers has it.
func (u *upgrades) configure(old, replacement, word string) {
	u.t.Helper()
	before, since := u.service(u.name), time.Now()
	u.g.Expect(before.Spec.ServeConfigV2).To(ContainSubstring(old))
	u.word = word
	u.change(u.name, func(service *rayv1.RayService) {
		service.Spec.ServeConfigV2 = strings.Replace(service.Spec.ServeConfigV2, old, replacement, 1)
	})
	after := u.serves(u.name, 2)
	u.t.Logf("the config is applied %s after the change", time.Since(since).Round(time.Second))
	u.g.Expect(after.Status.ActiveServiceStatus.RayClusterName).To(Equal(before.Status.ActiveServiceStatus.RayClusterName))
	u.g.Eventually(u.answer, servePatience, time.Second).Should(Equal(u.want()))
}

// workers changes the number of workers, which no upgrade is needed for.
func (u *upgrades) workers(count int32) {
	u.t.Helper()
	before := u.service(u.name)
	u.change(u.name, func(service *rayv1.RayService) {
		service.Spec.RayClusterConfig.WorkerGroupSpecs[0].Replicas = ptr.To(count)
	})
	cluster := before.Status.ActiveServiceStatus.RayClusterName
	u.allJoined(u.t, u.g, cluster, int(count)+1)
	u.g.Eventually(func() []corev1.Pod { return u.pods(u.t, workersOf(cluster)) }, servePatience, time.Second).Should(HaveLen(int(count)))
	after := u.serves(u.name, 2)
	u.g.Expect(after.Status.ActiveServiceStatus.RayClusterName).To(Equal(cluster))
}

func workersOf(cluster string) client.MatchingLabels {
	return client.MatchingLabels{rayv1.LabelCluster: cluster, rayv1.LabelNodeType: rayv1.NodeTypeWorker}
}

// lose deletes the worker, one of two Pods that serve, and waits until both serve again.
func (u *upgrades) lose(how ...client.DeleteOption) {
	u.t.Helper()
	since := time.Now()
	cluster := u.service(u.name).Status.ActiveServiceStatus.RayClusterName
	workers := u.pods(u.t, workersOf(cluster))
	u.g.Expect(workers).To(HaveLen(1))
	lost := workers[0]
	u.g.Expect(u.Delete(u.t.Context(), &lost, how...)).To(Succeed())
	u.g.Eventually(func() []corev1.Pod { return u.pods(u.t, workersOf(cluster)) }, servePatience, time.Second).
		Should(And(HaveLen(1), Not(ContainElement(HaveField("Name", lost.Name)))), "another worker")
	u.t.Logf("Pod %s is gone %s after its deletion", lost.Name, time.Since(since).Round(time.Second))
	u.allJoined(u.t, u.g, cluster, 2)
	u.serves(u.name, 2)
	u.t.Logf("two Pods serve %s after it", time.Since(since).Round(time.Second))
}
