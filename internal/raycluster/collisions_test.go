package raycluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// eventsOf plans, applies and returns the reasons of the events.
func (w *world) eventsOf(now time.Time) []string {
	var reasons []string
	for _, event := range Plan(w.Snapshot, w.settings, now).Events {
		reasons = append(reasons, event.Type+" "+event.Reason)
	}
	w.pass(now)
	return reasons
}

func stranger(name string, owner *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		Labels: map[string]string{rayv1.LabelCluster: "demo", rayv1.LabelNodeType: rayv1.NodeTypeHead}}}
	if owner != nil {
		owner.Controller = ptr.To(true)
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}

func TestAForeignHeadIsToldOnceAndDoesNothing(t *testing.T) {
	w := ready()
	w.Strangers = []*corev1.Pod{stranger("fake", nil)}
	if got := w.eventsOf(planNow.Add(time.Minute)); len(got) != 1 || got[0] != "Warning NameCollision" {
		t.Errorf("events are %v", got)
	}
	if got := w.condition(rayv1.ConditionNameCollision); got != "True/NameCollision" || !strings.Contains(w.message(rayv1.ConditionNameCollision), "Pod fake carries") {
		t.Errorf("condition is %s: %s", got, w.message(rayv1.ConditionNameCollision))
	}
	if got := w.condition(rayv1.ConditionReady); got != "True/AllPodsReady" {
		t.Errorf("a foreign Pod is in nobody's way: Ready is %s", got)
	}
	if got := w.eventsOf(planNow.Add(2 * time.Minute)); len(got) > 0 {
		t.Errorf("told again: %v", got)
	}
	w.Strangers = nil
	w.pass(planNow.Add(3 * time.Minute))
	if got := w.condition(rayv1.ConditionNameCollision); got != "absent" {
		t.Errorf("the Pod is gone, the condition is %s", got)
	}
}

func TestPodsOfAnEarlierClusterAreMentionedWhileTheyExist(t *testing.T) {
	w := demo()
	old := &metav1.OwnerReference{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: "u-0"}
	w.Strangers = []*corev1.Pod{stranger("old-1", old), stranger("old-2", old)}
	if got := w.eventsOf(planNow); len(got) > 0 {
		t.Errorf("they go by themselves and need no warning: %v", got)
	}
	if message := w.message(rayv1.ConditionNameCollision); strings.Count(message, "is left from an earlier RayCluster of this name (uid u-0)") != 2 {
		t.Errorf("message is %q", message)
	}
	if got := w.condition(rayv1.ConditionStalled); got != "False/PodsNotReady" {
		t.Errorf("they do not keep the cluster from starting: Stalled is %s", got)
	}
}

func TestManyStrangersAreCounted(t *testing.T) {
	w := ready()
	for i := range 8 {
		w.Strangers = append(w.Strangers, stranger(fmt.Sprintf("fake-%d", i), nil))
	}
	if got := w.eventsOf(planNow.Add(time.Minute)); len(got) != 6 {
		t.Errorf("want five Pods by name and one event about the rest, got %v", got)
	}
	if message := w.message(rayv1.ConditionNameCollision); !strings.HasSuffix(message, "3 more Pods carry the label of this cluster") {
		t.Errorf("message is %q", message)
	}
}

func TestAForeignServiceIsACollision(t *testing.T) {
	w := demo()
	foreign := &corev1.Service{TypeMeta: metav1.TypeMeta{Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "demo-head-svc", UID: "f"}}
	w.Named["Service/demo-head-svc"] = foreign
	if got := w.eventsOf(planNow); len(got) != 1 || got[0] != "Warning FailedToCreateService" {
		t.Errorf("events are %v", got)
	}
	if got := w.condition(rayv1.ConditionStalled); got != "True/NameCollision" {
		t.Errorf("workers would look for the head at somebody else's: Stalled is %s", got)
	}
	if got := w.eventsOf(planNow.Add(time.Minute)); len(got) > 0 {
		t.Errorf("told again: %v", got)
	}
}
