package rayservice

import (
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// serveConfig sets the config of Serve.
func serveConfig(text string) edit { return func(s *rayv1.RayService) { s.Spec.ServeConfigV2 = text } }

// configTruthCases are about configs that cannot be used, and about what Serve has instead of what it was sent.
func configTruthCases() []Case {
	return []Case{
		{Row: 77, Kind: better, Weak: []string{"RS-W13"}, Theirs: "an empty object is PUT every 2 s",
			Given: "an empty serveConfigV2", When: "Serve is asked again and again", Then: "no PUT; ConfigApplied False with ConfigInvalid",
			How: "a config is looked at before it is sent", Run: func(e *env) {
				service := e.given(serveConfig(""))
				e.Expect(e.have(service, "ConfigApplied", metav1.ConditionFalse, "ConfigInvalid")).To(ContainSubstring("no applications"))
				ray := e.ray(e.pending(service).Name)
				e.asked(ray, 5)
				e.rest()
				e.Expect(ray.Requests(fakedashboard.EndpointPutServe)).To(BeZero())
				e.have(service, "Stalled", metav1.ConditionTrue, "ConfigInvalid")
			}},
		{Row: 78, Kind: better, Weak: []string{"RS-W13"}, Theirs: "it stays until the next change, or until the operator is started anew",
			Given: "a ready service", When: "somebody else changes the config in Serve", Then: "ConfigApplied False with ConfigDrifted, then the config of the spec is PUT again",
			How: "the report of Serve is compared, not what was sent", Run: func(e *env) {
				service := e.ready()
				ray := e.ray(e.active(service).Name)
				seen := e.record()
				ray.DeployServe(`{"applications": [{"name": "app", "import_path": "other:graph", "route_prefix": "/"}]}`)
				e.soon(func() any { return ray.ServePuts() }).Should(Equal(2))
				e.asked(ray, 2)
				e.serves(service)
				e.Expect(ray.ServePuts()).To(Equal(2))
				e.Expect(seen.conditions("ConfigApplied")).To(ContainElement(is(metav1.ConditionFalse, "ConfigDrifted")))
				e.have(service, "ConfigApplied", metav1.ConditionTrue, "ConfigApplied")
			}},
		{Row: 79, Kind: better, Weak: []string{"RS-W14"}, Theirs: "events only; nothing is looked after any more",
			Given: "a ready service", When: "serveConfigV2 becomes invalid", Then: "a condition names the generation and the field; the last good config goes on serving, also when Serve loses it; the status is kept up",
			How: "the last good config is recorded on the RayCluster", Run: keepsTheLastGoodConfig},
		{Row: 80, Kind: better, Weak: []string{"RS-W15"}, Theirs: "the first cluster stays for ever",
			Given: "type None, a first cluster whose image cannot be pulled", When: "the image is corrected", Then: "another cluster serves, the first one goes",
			How: "before anything serves, every strategy replaces the cluster", Run: repairsTheFirstCluster},
	}
}

func keepsTheLastGoodConfig(e *env) {
	service := e.ready()
	ray := e.ray(e.active(service).Name)
	good := ray.LastServePut()
	e.changeSeen(service, serveConfig(strings.Replace(harness.SampleServeConfig, "import_path: app.main:graph", "import_path: [1]", 1)))
	e.Expect(e.have(service, "ConfigApplied", metav1.ConditionFalse, "ConfigInvalid")).To(ContainSubstring("import_path"))
	e.Expect(condition(service, "ConfigApplied").ObservedGeneration).To(Equal(service.Generation))
	e.said(service, corev1.EventTypeWarning, "FailedToUpdateServeApplications")
	e.Expect(condition(service, "Ready").Status).To(Equal(metav1.ConditionTrue))
	ray.Restart()
	e.soon(func() any { return ray.ServePuts() }).Should(Equal(2))
	e.Expect(ray.LastServePut()).To(MatchJSON(good))
	e.soon(func() any { return ray.ServeApplications() }).Should(Equal([]string{"app"}))
	e.loseEndpoints(service)
}

func repairsTheFirstCluster(e *env) {
	e.noKubelet = true
	service := e.given(strategy(rayv1.RayServiceUpgradeNone), deletionDelay(0), noWorkers)
	first := e.pending(service)
	e.SetPod(e.t, e.head(first.Name), harness.Waiting("ray-head", "ImagePullBackOff", "no such image"))
	e.have(service, "Stalled", metav1.ConditionTrue, "ImagePullBackOff")
	e.noKubelet = false
	e.change(service, image("img:2"))
	e.serves(service)
	e.Expect(e.active(service).Name).ToNot(Equal(first.Name))
	e.gone(first)
}

// keepCases are about clusters that must stay, or stay as they are.
func keepCases() []Case {
	return []Case{
		{Row: 81, Kind: better, Weak: []string{"RS-W16"}, Theirs: "it is deleted",
			Given: "a RayCluster with the labels of a RayService that does not own it", When: "the service is upgraded", Then: "it stays as it is", How: "the owner counts, not the labels", Run: leavesStrangersAlone},
		{Row: 82, Kind: better, Weak: []string{"RS-W16"}, Theirs: "the delay begins anew",
			Given: "an old cluster within its deletion delay", When: "the operator is started anew", Then: "the old cluster goes when the delay is over, counted from its retirement", How: "the time stands on the RayCluster", Run: func(e *env) {
				service := e.ready(deletionDelay(15))
				before := e.active(service)
				e.keep(before)
				e.change(service, image("img:2"))
				at := e.retired(before)
				e.operator.Stop()
				e.start()
				e.rest()
				e.Expect(e.retired(before)).To(Equal(at))
				e.keptFor(15*time.Second, at, before)
			}},
		{Row: 83, Kind: better, Weak: []string{"RS-W17"}, Theirs: "the RayCluster keeps the old number",
			Given: "a ready service", When: "maxReplicas is changed", Then: "the RayCluster gets it; all Pods stay", How: "what a cluster takes over in place is passed on", Run: func(e *env) {
				service := e.ready(autoscaled)
				cluster := e.active(service)
				pods := harness.Names(e.allPods(cluster.Name))
				e.changeSeen(service, func(s *rayv1.RayService) { s.Spec.RayClusterConfig.WorkerGroupSpecs[0].MaxReplicas = ptr.To[int32](9) })
				e.soon(func() any {
					e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
					return *cluster.Spec.WorkerGroupSpecs[0].MaxReplicas
				}).Should(Equal(int32(9)))
				e.rest()
				e.Expect(harness.Names(e.allPods(cluster.Name))).To(Equal(pods))
				e.Expect(e.clusters()).To(HaveLen(1))
			}},
		{Row: 84, Kind: better, Weak: []string{"RS-W17"}, Theirs: "the number goes back to that of the spec, and workers die; the annotation is lost",
			Given: "a cluster that the autoscaler made larger, with an annotation of somebody else", When: "a worker group is appended", Then: "the first group keeps its number and its Pods, the annotation stays",
			How: "only what the spec says and no one else decides is changed", Run: keepsWhatTheAutoscalerChose},
		{Row: 85, Kind: better, Weak: []string{"RS-W18"}, Theirs: "a third cluster",
			Given: "an upgrade", When: "the change is taken back", Then: "the new cluster is given up, no third one is made", How: "the active cluster is what the spec asks for", Run: func(e *env) {
				service, before, next := e.upgrading(deletionDelay(0))
				e.change(service, image("img:1"))
				e.have(service, "UpgradeInProgress", metav1.ConditionFalse, "NoPendingCluster")
				e.gone(next)
				e.rest()
				e.Expect(e.clusters()).To(HaveLen(1))
				e.Expect(e.active(service).UID).To(Equal(before.UID))
				e.Expect(e.operator.Traffic.Count("create", "rayclusters")).To(Equal(2))
				e.Expect(e.leadsTo("llm-serve-svc")).To(Equal(before.Name))
			}},
	}
}

func leavesStrangersAlone(e *env) {
	stranger := harness.NewCluster(e.ns, "stranger", func(c *rayv1.RayCluster) {
		c.Labels = map[string]string{rayv1.LabelOriginatedFromName: name, rayv1.LabelOriginatedFromKind: "RayService"}
		c.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue)
	})
	e.make(stranger)
	service := e.ready(deletionDelay(0))
	before := e.active(service)
	e.change(service, image("img:2"))
	e.gone(before)
	e.rest()
	version := stranger.ResourceVersion
	e.Expect(e.read(stranger, stranger.Name)).To(Succeed())
	e.Expect(stranger.ResourceVersion).To(Equal(version))
	e.change(service, suspended(true))
	e.have(service, "Suspended", metav1.ConditionTrue, "SuspendComplete")
	e.Expect(e.isGone(stranger)).To(BeFalse())
}

func keepsWhatTheAutoscalerChose(e *env) {
	service := e.ready(autoscaled)
	cluster := e.active(service)
	e.Edit(e.t, cluster, func(c *rayv1.RayCluster) {
		*c.Spec.WorkerGroupSpecs[0].Replicas = 3
		c.Annotations["example.com/note"] = "mine"
	})
	e.soon(func() any { return e.allPods(cluster.Name) }).Should(HaveLen(4))
	pods := harness.Names(e.allPods(cluster.Name))
	e.changeSeen(service, group("b"))
	e.soon(func() any { return e.allPods(cluster.Name) }).Should(HaveLen(5))
	e.rest()
	e.Expect(harness.Names(e.allPods(cluster.Name))).To(ContainElements(pods))
	e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
	e.Expect(*cluster.Spec.WorkerGroupSpecs[0].Replicas).To(Equal(int32(3)))
	e.Expect(cluster.Annotations).To(HaveKeyWithValue("example.com/note", "mine"))
	e.Expect(e.clusters()).To(HaveLen(1))
}
