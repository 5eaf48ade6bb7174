package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// scenario is a story: what a user makes first, and what happens afterwards, each time after the world has settled.
// Every scenario is run without a fault, with a crash at every write, and under the seeds.
type scenario struct {
	name    string
	objects func() []object
	changes []change
	// outcomes are how the Ray jobs end, in the order in which they are started; SUCCEEDED by default.
	outcomes []dashboard.JobStatus
	// anyTime means that the end does not depend on when the changes are made.
	anyTime bool
	// balanced are the roles of which only the difference of creates and deletes is compared. A replica of several hosts
	// of which a crash left only some is made anew, because nobody can tell it from one that has lost a host.
	balanced []string
	// submitters are the mishaps of submitter Pods, in the order in which they start; none by default.
	submitters []mishap
	// rush means that under faults the changes are made at any time, and anyEnd that the end depends on when; then only what
	// must hold in every history is judged.
	rush, anyEnd bool
	// timed means that the spec has limits that count from a time which another operator may have written down, so that the
	// clocks of the operators must not be far apart.
	timed bool
	// race means that it depends on the faults how far a job comes before its time is over. Only the ends of RayJobs are
	// compared then.
	race bool
	// lingers means that it is chance whether a submitter has ended by itself when it is to be deleted.
	lingers bool
	// chance are the creates and deletes that are not compared, because it is chance whether they are needed.
	chance []string
	// insists means that the operator tries again and again what is refused as long as something stands in the way.
	insists bool
	// ofJobs and ofServices are true where RayJobs or RayServices matter, and what is done for clusters does not.
	ofJobs, ofServices bool
	// calm means that only single incidents are tried: under many faults the operator rightly gives up to wait for Ray.
	calm bool
	// usesHTTP is true where the operator itself sends to Ray.
	usesHTTP bool
	// requests is how long the longest requests to a RayService take; a few seconds by default.
	requests time.Duration
	// proxyTime is how long the proxies of Serve take to come up.
	proxyTime time.Duration
	// stuck means that at some time what is asked for cannot be done, and the operator says so.
	stuck bool
	// inPlace means that a cluster whose spec has changed goes on serving.
	inPlace bool
}

// isMidway tells whether some change is made in the midst of things.
func (s *scenario) isMidway() bool {
	return slices.ContainsFunc(s.changes, func(c change) bool { return c.midway != nil })
}

// isAbout tells whether the scenario is about the objects of a controller.
func (s *scenario) isAbout(controller int) bool {
	switch {
	case s.ofJobs:
		return controller == jobController
	case s.ofServices:
		return controller == serviceController
	default:
		return true
	}
}

// skew is how far a clock may jump.
func (s *scenario) skew() time.Duration {
	if s.timed {
		return 20 * time.Second
	}
	return time.Hour
}

// change is something that a user, Ray's autoscaler or fate does.
type change struct {
	what string
	make func(w *world)
	// when tells whether the change can be made before the world has settled; nil means at any time.
	when func(w *world) bool
	// midway changes are made as soon as that is true, in the midst of things. If it never is, they are made afterwards.
	midway func(w *world) bool
	// harms means that no operator can keep what serves from being disturbed by it.
	harms bool
}

// unwatchedScenario is one whose losses only the next operator can tell of.
const unwatchedScenario = "a cluster loses its head while no operator runs"

func clusterScenarios() []scenario {
	plain := func(edits ...func(*rayv1.RayCluster)) func() []object {
		return func() []object { return []object{demoCluster(edits...)} }
	}
	return append(redisScenarios(plain), []scenario{
		{name: "a cluster grows and shrinks", anyTime: true, objects: plain(),
			changes: []change{scale(3), scale(1)}},
		{name: "a cluster loses its head, then its workers", objects: plain(),
			changes: []change{lose(rayv1.HeadGroupName), lose("a")}},
		{name: unwatchedScenario, objects: plain(), changes: []change{unwatched(lose(rayv1.HeadGroupName)), unwatched(restartHeads()), unwatched(lose("a"))}},
		{name: "a cluster is suspended and resumed", anyTime: true, objects: plain(),
			changes: []change{
				edit("suspend", func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(true) }),
				edit("resume", func(c *rayv1.RayCluster) { c.Spec.Suspend = nil })}},
		{name: "replicas of several hosts lose one, and one goes", objects: plain(func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].NumOfHosts = 2 }),
			balanced: []string{"Pod demo/a"},
			changes:  []change{loseOne("a"), scale(1)}},
		{name: "a cluster is recreated for a new image", anyTime: true, objects: plain(func(c *rayv1.RayCluster) {
			c.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
		}),
			changes: []change{edit("new image", func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image = "img:2"
				c.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Image = "img:2"
			})}},
		{name: "Ray's autoscaler scales a cluster, and is switched off", objects: plain(autoscaled),
			changes: []change{scale(3), {what: "the autoscaler names a victim", make: nameVictim},
				edit("autoscaler off", func(c *rayv1.RayCluster) { c.Spec.EnableInTreeAutoscaling = nil })}},
		{name: "a cluster with a token loses it", anyTime: true, objects: plain(func(c *rayv1.RayCluster) {
			c.Spec.RayVersion, c.Spec.AuthOptions = "2.52.0", &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
		}),
			changes: []change{{what: "the Secret is deleted", make: func(w *world) { w.removeAll("Secret", func(object) bool { return true }) }}}},
		{name: "a cluster is deleted and made anew under its name", anyTime: true, objects: plain(),
			changes: []change{{what: "delete", make: func(w *world) { w.removeAll("RayCluster", func(object) bool { return true }) }},
				{what: "make anew", make: func(w *world) {
					if w.server.Get("RayCluster", named("demo")) == nil {
						w.must(w.server.Add(demoCluster()))
					}
				}}}},
		{name: "a cluster is replaced at once under its name", objects: plain(),
			changes: []change{{what: "replace", make: func(w *world) {
				w.removeAll("RayCluster", func(object) bool { return true })
				w.must(w.server.Add(demoCluster()))
			}}}},
		{name: "a protected cluster grows, and is protected no more", anyTime: true, objects: plain(withAnnotations(map[string]string{
			rayv1.AnnotationProtectHead: rayv1.ProtectHeadWhileJobsRun, rayv1.AnnotationMaxUnavailableWorkers: "1"})),
			changes: []change{scale(3), edit("protected no more", func(c *rayv1.RayCluster) { c.Annotations = nil })}},
		{name: "the node of a head that goes is cut off", timed: true, objects: plain(withAnnotations(map[string]string{rayv1.AnnotationStuckHeadTimeout: "30"})),
			changes: []change{{what: "the head's node is cut off", make: cutOffHeads}}},
	}...)
}

func withAnnotations(annotations map[string]string) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) { c.Annotations = annotations }
}

// cutOffHeads has heads deleted whose nodes do not say any more what becomes of them.
func cutOffHeads(w *world) {
	for _, head := range w.heads() {
		w.cutOff[head.UID] = true
		w.must(w.server.Remove("user", head, false))
	}
}

func template(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "img:1"}}}}
}

func demoSpec() rayv1.RayClusterSpec {
	return rayv1.RayClusterSpec{
		HeadGroupSpec: rayv1.HeadGroupSpec{Template: template("ray-head")},
		WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "a", Replicas: ptr.To[int32](2), MinReplicas: ptr.To[int32](0),
			MaxReplicas: ptr.To[int32](8), NumOfHosts: 1, Template: template("ray-worker")}},
	}
}

func demoCluster(edits ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "demo"}, Spec: demoSpec()}
	for _, edit := range edits {
		edit(cluster)
	}
	return cluster
}

func autoscaled(c *rayv1.RayCluster) {
	c.Spec.EnableInTreeAutoscaling = ptr.To(true)
	for _, t := range []*corev1.PodTemplateSpec{&c.Spec.HeadGroupSpec.Template, &c.Spec.WorkerGroupSpecs[0].Template} {
		t.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": oneCPU()}
	}
}

func named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// edit changes the cluster.
func edit(what string, change func(*rayv1.RayCluster)) scenarioChange {
	return scenarioChange{what: what, make: func(w *world) {
		if live := w.server.Get("RayCluster", named("demo")); live != nil {
			w.must(w.server.Change("user", live, "", func(o object) { change(o.(*rayv1.RayCluster)) }))
		}
	}}
}

type scenarioChange = change

func scale(replicas int32) change {
	return edit("scale", func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Replicas = &replicas })
}

// lose makes all Pods of a group vanish, as when nodes are removed.
func lose(group string) change {
	return change{what: "all Pods of " + group + " are lost", make: func(w *world) {
		w.removeAll("Pod", func(o object) bool { return o.GetLabels()[rayv1.LabelGroup] == group })
	}}
}

// loseOne makes the first Pod of a group vanish.
func loseOne(group string) change {
	return change{what: "a Pod of " + group + " is lost", make: func(w *world) {
		first := true
		w.removeAll("Pod", func(o object) bool {
			hit := first && o.GetLabels()[rayv1.LabelGroup] == group
			first = first && !hit
			return hit
		})
	}}
}

func (w *world) removeAll(kind string, which func(object) bool) {
	for _, stored := range w.server.List(kind) {
		if which(stored) {
			w.must(w.server.Remove("user", stored, true))
		}
	}
}

// nameVictim is how Ray's autoscaler scales down: one worker by name, and one replica less.
func nameVictim(w *world) {
	for _, stored := range w.server.List("Pod") {
		if stored.GetLabels()[rayv1.LabelGroup] != "a" || stored.GetDeletionTimestamp() != nil {
			continue
		}
		edit("", func(c *rayv1.RayCluster) {
			group := &c.Spec.WorkerGroupSpecs[0]
			group.ScaleStrategy.WorkersToDelete = []string{stored.GetName()}
			group.Replicas = ptr.To(*group.Replicas - 1)
		}).make(w)
		return
	}
}
