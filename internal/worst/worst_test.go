package worst_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/diagnose"
	"github.com/heliostat-io/heliostat/internal/worst"
)

const refused = `pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0`

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// world is a RayCluster "demo" of which the last pass has left the conditions.
type world struct {
	cluster *rayv1.RayCluster
	pods    []*corev1.Pod
	holds   map[string]action.Hold
	events  []action.Event
	awaited *rayv1.RayCluster
}

func demo() *world {
	return &world{cluster: &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo", Generation: 1}}}
}

// pulls adds a worker whose image is not found.
func (w *world) pulls(name string) {
	w.pods = append(w.pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{
			rayv1.LabelCluster: "demo", rayv1.LabelNodeType: rayv1.NodeTypeWorker, rayv1.LabelGroup: "a"}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "ray-worker",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}},
	})
}

func (w *world) set(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.cluster.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
}

// pass returns the events of one pass, each as type, reason and the id of the finding.
func (w *world) pass() []string {
	events, _ := worst.Object{Facts: &diagnose.Snapshot{Now: now, Clusters: []*rayv1.RayCluster{w.cluster}, Pods: w.pods},
		Conditions: &w.cluster.Status.Conditions, Generation: 1, Now: now, Awaited: w.awaited, Holds: w.holds, Events: w.events}.Lift()
	w.events = nil
	var told []string
	for _, e := range events {
		told = append(told, strings.TrimSpace(e.Type+" "+e.Reason+" "+diagnose.HintIn(e.Note)))
	}
	return told
}

func (w *world) message(kind string) string {
	if c := meta.FindStatusCondition(w.cluster.Status.Conditions, kind); c != nil {
		return c.Message
	}
	return "absent"
}

func TestTheWorstFindingIsToldOnce(t *testing.T) {
	found := []string{"Warning ImagePullBackOff image-not-found"}
	for name, tc := range map[string]struct {
		given, when func(*world)
		want        []string
		object, id  string
	}{
		"given nothing is wrong, nothing is told": {when: func(*world) {}, object: "absent"},
		"when a Pod's image is not found, one event says so": {when: func(w *world) { w.pulls("w-1") }, want: found,
			object: "Pod w-1: ", id: "image-not-found"},
		"while it stays, nothing is told": {given: func(w *world) { w.pulls("w-1") }, when: func(*world) {},
			object: "Pod w-1: ", id: "image-not-found"},
		"when another Pod has the same, the one stays that was told": {given: func(w *world) { w.pulls("w-1") },
			when: func(w *world) { w.pulls("w-0") }, object: "Pod w-1: ", id: "image-not-found"},
		"when that goes and the other one stays, it is another finding": {given: func(w *world) { w.pulls("w-1") },
			when: func(w *world) { w.pods = nil; w.pulls("w-0") }, want: found, object: "Pod w-0: ", id: "image-not-found"},
		"when the cause goes, the condition goes and an event says so": {given: func(w *world) { w.pulls("w-1") },
			when: func(w *world) { w.pods = nil }, want: []string{"Normal TroubleGone"}, object: "absent"},
		"when the pass tells of it anyhow, that event has the id": {
			when: func(w *world) {
				w.set(rayv1.ConditionValid, metav1.ConditionFalse, rayv1.ReasonSpecInvalid, "spec.a: no")
				w.events = []action.Event{*action.Warning("InvalidRayClusterSpec", "Validate", "spec.a: no")}
			},
			want: []string{"Warning InvalidRayClusterSpec spec-invalid"}, object: "RayCluster demo: ", id: "spec-invalid"},
		"when a write was refused, the executor has told of it": {
			when: func(w *world) {
				w.set(rayv1.ConditionReplicaFailure, metav1.ConditionTrue, rayv1.ReasonFailedCreateWorkerPod, "group a: "+refused)
				w.holds = map[string]action.Hold{"a": {Reason: "FailedToCreateWorkerPod", Message: refused}}
			},
			object: "RayCluster demo: ", id: "quota-exceeded"},
		"given a cluster that is waited for, its trouble is told": {
			when:   func(w *world) { w.awaited = troubled("demo-x") },
			want:   []string{"Warning OOMKilled oom-killed"},
			object: "RayCluster demo-x: Pod h: ", id: "oom-killed"},
		"and it is not worse than what blocks the object itself": {
			when: func(w *world) { w.awaited = troubled("demo-x"); w.pulls("w-1") }, want: found, object: "Pod w-1: ", id: "image-not-found"},
	} {
		t.Run(name, func(t *testing.T) {
			w := demo()
			if tc.given != nil {
				tc.given(w)
				w.pass()
			}
			tc.when(w)
			if diff := cmp.Diff(tc.want, w.pass()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if got := w.message(rayv1.ConditionTroubled); !strings.HasPrefix(got, tc.object) || diagnose.HintIn(got) != tc.id {
				t.Errorf("the condition says %q, want %q and the id %q", got, tc.object, tc.id)
			}
			before := w.message(rayv1.ConditionTroubled)
			if again := w.pass(); len(again) > 0 || w.message(rayv1.ConditionTroubled) != before {
				t.Errorf("a second pass over the same tells %v, and %q", again, w.message(rayv1.ConditionTroubled))
			}
		})
	}
}

// troubled is a RayCluster whose head was killed.
func troubled(name string) *rayv1.RayCluster {
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	cluster.Status.Conditions = []metav1.Condition{{Type: rayv1.ConditionTroubled, Status: metav1.ConditionTrue, Reason: "OOMKilled",
		Message: "Pod h: killed. [finding oom-killed: Raise it]"}}
	return cluster
}

func TestConditionsThatSpeakOfAFindingHaveItsHint(t *testing.T) {
	w := demo()
	w.pulls("w-1")
	w.set(rayv1.ConditionReplicaFailure, metav1.ConditionTrue, rayv1.ReasonFailedCreateHeadPod, "head: "+refused)
	w.set(rayv1.ConditionStalled, metav1.ConditionTrue, "ImagePullBackOff", "group a: Pod w-1: ImagePullBackOff: container ray-worker: not found")
	w.set(rayv1.ConditionPodsHealthy, metav1.ConditionFalse, "ImagePullBackOff",
		"group a: Pod w-1: ImagePullBackOff: container ray-worker: not found\ngroup b: Pod w-2: Odd: of which no rule knows")
	w.set(rayv1.ConditionReady, metav1.ConditionFalse, "PodsNotReady", "2 Pods are wanted")
	w.pass()
	for kind, want := range map[string]string{rayv1.ConditionReplicaFailure: "quota-exceeded", rayv1.ConditionStalled: "image-not-found", rayv1.ConditionReady: ""} {
		if got := diagnose.HintIn(w.message(kind)); got != want {
			t.Errorf("%s has the id %q, want %q: %s", kind, got, want, w.message(kind))
		}
	}
	first, second, _ := strings.Cut(w.message(rayv1.ConditionPodsHealthy), "\n")
	if diagnose.HintIn(first) != "image-not-found" || diagnose.HintIn(second) != "" {
		t.Errorf("each line has its own id, or none: %q and %q", first, second)
	}
}
