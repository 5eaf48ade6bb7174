package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// annotated puts an annotation on the cluster.
func annotated(key, value string) func(*world) {
	return func(w *world) {
		w.Cluster.Annotations = withAnnotation(w.Cluster.Annotations, key, value)
	}
}

func withAnnotation(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// budgetsOf are the least numbers of Pods that the PodDisruptionBudgets of a cluster keep, by name.
func budgetsOf(w *world) map[string]int {
	least := map[string]int{}
	for _, object := range w.Owned {
		if b, is := object.(*policyv1.PodDisruptionBudget); is {
			least[b.Name] = b.Spec.MinAvailable.IntValue()
		}
	}
	return least
}

func TestBudgetsKeepPodsFromBeingEvicted(t *testing.T) {
	protect := func(policy string) func(*world) { return annotated(rayv1.AnnotationProtectHead, policy) }
	workers := func(missing string) func(*world) { return annotated(rayv1.AnnotationMaxUnavailableWorkers, missing) }
	idle := func(w *world) { w.Idle = true }
	for name, tc := range map[string]struct {
		given *world
		when  func(*world)
		want  map[string]int
		// note is in the message of condition Valid.
		note string
	}{
		"given no annotation, nothing":                 {given: settled(), want: map[string]int{}},
		"given Always, the head":                       {given: settled(protect("Always"), idle), want: map[string]int{"demo-head": 1}},
		"given WhileJobsRun, the head while they do":   {given: settled(protect("WhileJobsRun")), want: map[string]int{"demo-head": 1}},
		"given WhileJobsRun, nothing when they do not": {given: settled(protect("WhileJobsRun")), when: idle, want: map[string]int{"demo-head": 0}},
		"given a word of no meaning, nothing":          {given: settled(protect("Sometimes")), want: map[string]int{}, note: `heliostat.io/protect-head is "Sometimes", and must be Always or WhileJobsRun`},
		"given a number, all but so many workers":      {given: settled(workers("1")), want: map[string]int{"demo-workers.a": 1}},
		"given zero, all workers":                      {given: settled(workers("0")), want: map[string]int{"demo-workers.a": 2}},
		"given more than there are, none":              {given: settled(workers("9")), want: map[string]int{"demo-workers.a": 0}},
		"given no number, nothing":                     {given: settled(workers("one")), want: map[string]int{}, note: `heliostat.io/max-unavailable-workers is "one", and must be a whole number from 0`},
		"given a negative number, nothing":             {given: settled(workers("-1")), want: map[string]int{}, note: "a whole number from 0"},
		"when the group grows, the new ones, too": {given: settled(workers("1")), when: func(w *world) {
			groupA(w.Cluster).Replicas, groupA(w.Cluster).MaxReplicas = ptr.To[int32](5), ptr.To[int32](5)
		}, want: map[string]int{"demo-workers.a": 4}},
		"when the annotation goes, nothing": {given: settled(protect("Always"), workers("1")), when: func(w *world) { w.Cluster.Annotations = nil }, want: map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.when != nil {
				tc.when(tc.given)
			}
			tc.given.pass(planNow)
			if d := cmp.Diff(tc.want, budgetsOf(tc.given)); d != "" {
				t.Errorf("budgets (-want +got):\n%s", d)
			}
			valid := meta.FindStatusCondition(tc.given.Cluster.Status.Conditions, rayv1.ConditionValid)
			if !strings.Contains(valid.Message, tc.note) {
				t.Errorf("condition Valid says %q, want %q in it", valid.Message, tc.note)
			}
			if again := tc.given.pass(planNow); slices.ContainsFunc(again, func(s string) bool { return strings.Contains(s, "demo-") }) {
				t.Errorf("a second pass does %q", again)
			}
		})
	}
}

func TestAHeadThatIsStuckIsLetGoWhenTheUserSaysSo(t *testing.T) {
	timeout := annotated(rayv1.AnnotationStuckHeadTimeout, "60")
	terminating := func(w *world) {
		head := w.pod("head")
		head.DeletionTimestamp, head.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(planNow)), ptr.To[int64](30)
	}
	for name, tc := range map[string]struct {
		given []func(*world)
		when  func(*world, *corev1.Pod)
		after time.Duration
		want  bool
		note  string
	}{
		"after the time that was set": {given: []func(*world){timeout}, after: time.Minute, want: true},
		"also while the cluster is being suspended": {given: []func(*world){timeout}, when: func(w *world, _ *corev1.Pod) {
			w.Cluster.Spec.Suspend = ptr.To(true)
			w.pass(planNow)
		}, after: time.Minute, want: true},
		"not before":              {given: []func(*world){timeout}, after: 59 * time.Second},
		"never where none is set": {after: 24 * time.Hour},
		"not where the time is too short to mean that": {given: []func(*world){annotated(rayv1.AnnotationStuckHeadTimeout, "5")}, after: time.Hour, note: "a whole number from 30"},
		"not twice":             {given: []func(*world){timeout}, when: func(_ *world, p *corev1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](0) }, after: time.Hour},
		"not when it has ended": {given: []func(*world){timeout}, when: func(_ *world, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, after: time.Hour},
		"not with the state on a volume": {given: []func(*world){timeout, func(w *world) { w.settings.EmbeddedStorage = true; onVolume()(w.Cluster) }}, after: time.Hour,
			note: "two heads on it would destroy it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(tc.given...)
			terminating(w)
			if tc.when != nil {
				tc.when(w, w.Pods[slices.IndexFunc(w.Pods, func(p *corev1.Pod) bool { return groupOf(p) == rayv1.HeadGroupName })])
			}
			plan := Plan(w.Snapshot, w.settings, planNow.Add(tc.after))
			got := slices.ContainsFunc(plan.Actions, func(a action.Action) bool {
				d, is := a.(action.Delete)
				return is && d.Now && groupOf(d.Object.(*corev1.Pod)) == rayv1.HeadGroupName
			})
			if got != tc.want {
				t.Errorf("deleted without waiting: %t, want %t", got, tc.want)
			}
			if slices.ContainsFunc(plan.Actions, func(a action.Action) bool { c, is := a.(action.Create); return is && c.Group == rayv1.HeadGroupName }) {
				t.Error("a second head is made beside it")
			}
			if tc.note == "" {
				return
			}
			valid := meta.FindStatusCondition(plan.Status.Object.(*rayv1.RayCluster).Status.Conditions, rayv1.ConditionValid)
			if !strings.Contains(valid.Message, tc.note) {
				t.Errorf("condition Valid says %q, want %q in it", valid.Message, tc.note)
			}
		})
	}
}

func TestAWorkerDrainsForAsLongAsItsPodMay(t *testing.T) {
	const variable = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"
	for name, tc := range map[string]struct {
		seconds *int64
		serving bool
		want    string
	}{
		"Ray's own time where the user says nothing":     {},
		"all but the time for Ray's shutdown":            {seconds: ptr.To[int64](300), want: "290"},
		"not at all where there is no time":              {seconds: ptr.To[int64](5), want: "0"},
		"half a minute in a cluster that serves":         {serving: true, want: "30"},
		"in a cluster that serves, what the user allows": {serving: true, seconds: ptr.To[int64](300), want: "290"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Template.Spec.TerminationGracePeriodSeconds = tc.seconds
				if tc.serving {
					c.Labels = map[string]string{rayv1.LabelOriginatedFromKind: rayv1.KindRayService}
				}
			})
			if got := envOf(workerOf(cluster).Spec.Containers[0])[variable]; got != tc.want {
				t.Errorf("%s is %q, want %q", variable, got, tc.want)
			}
		})
	}
}

func TestAWorkerOfAnOlderRayIsDrainedByItsPod(t *testing.T) {
	for name, tc := range map[string]struct {
		given    func(*rayv1.RayCluster)
		settings Settings
		want     []string
	}{
		"a hook before the end":                {want: []string{"/bin/bash", "-c", "--"}},
		"in the shell in which Ray is started": {settings: Settings{LoginShell: true}, want: []string{"/bin/bash", "-cl", "--"}},
		"none where Ray is run by other means": {given: func(c *rayv1.RayCluster) {
			c.Annotations = map[string]string{rayv1.AnnotationOverwriteContainerCommand: "true"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(func(c *rayv1.RayCluster) { c.Spec.RayVersion = "2.46.0" })
			if tc.given != nil {
				tc.given(cluster)
			}
			worker := WorkerPod(cluster, groupA(cluster), tc.settings, PodSlot{Group: "a"})
			var got []string
			if hooks := worker.Spec.Containers[0].Lifecycle; hooks != nil {
				command := hooks.PreStop.Exec.Command
				got = command[:len(command)-1]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the hook runs in (-want +got):\n%s", diff)
			}
		})
	}
}
