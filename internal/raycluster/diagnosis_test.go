package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

func TestARefusedPodHasItsFindingInTheConditions(t *testing.T) {
	w := demo()
	w.pass(planNow)
	w.Holds = map[string]action.Hold{"a": {Reason: "FailedToCreateWorkerPod", Message: "exceeded quota: q", Count: 1, Until: planNow.Add(time.Minute)}}
	if got := w.eventsOf(planNow); len(got) > 0 {
		t.Errorf("the executor has told of it already: %v", got)
	}
	for _, kind := range []string{rayv1.ConditionTroubled, rayv1.ConditionStalled, rayv1.ConditionPodsHealthy, rayv1.ConditionReplicaFailure} {
		if got := diagnose.HintIn(w.message(kind)); got != "quota-exceeded" {
			t.Errorf("%s has the id %q: %s", kind, got, w.message(kind))
		}
	}
	w.Holds = nil
	if got := w.eventsOf(planNow.Add(time.Minute)); !slices.Equal(got, []string{"Normal TroubleGone"}) || w.condition(rayv1.ConditionTroubled) != "absent" {
		t.Errorf("told is %v and the condition is %s when the quota has room", got, w.condition(rayv1.ConditionTroubled))
	}
}

// TestAHealthyClusterHasNoFinding is about clusters of any age, size and edit.
func TestAHealthyClusterHasNoFinding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := demo()
		group := &w.Cluster.Spec.WorkerGroupSpecs[0]
		*group.Replicas = rapid.Int32Range(0, 4).Draw(t, "replicas")
		on := rapid.Bool().Draw(t, "autoscaler")
		w.Cluster.Spec.EnableInTreeAutoscaling = &on
		w.Cluster.CreationTimestamp = metav1.NewTime(planNow)
		for range 4 {
			w.pass(planNow)
		}
		w.makeReady(w.Pods...)
		at := planNow.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "age in seconds")) * time.Second)
		w.pass(at)
		if got := w.condition(rayv1.ConditionTroubled); got != "absent" {
			t.Fatalf("the condition is %s: %s", got, w.message(rayv1.ConditionTroubled))
		}
	})
}

// TestTheOrderOfPodsChangesNoCondition keeps the status from being written for nothing: caches list in any order.
func TestTheOrderOfPodsChangesNoCondition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := demo()
		*w.Cluster.Spec.WorkerGroupSpecs[0].Replicas = 4
		for range 4 {
			w.pass(planNow)
		}
		for _, slot := range []string{"a/0", "a/1", "a/2", "a/3", "head"} {
			if trouble := rapid.SampledFrom([]string{"", "ImagePullBackOff", "CreateContainerConfigError", "Odd"}).Draw(t, slot); trouble != "" {
				w.waits(slot, trouble, "not found")
			}
		}
		conditions := func() []metav1.Condition {
			plan := Plan(w.Snapshot, w.settings, planNow.Add(time.Minute))
			if plan.Status == nil {
				return w.Cluster.Status.Conditions
			}
			return plan.Status.Object.(*rayv1.RayCluster).Status.Conditions
		}
		before := conditions()
		w.Pods = rapid.Permutation(w.Pods).Draw(t, "order")
		if diff := cmp.Diff(before, conditions()); diff != "" {
			t.Fatalf("another order, other conditions:\n%s", diff)
		}
	})
}

// BenchmarkDiagnosis is the judgement of a cluster of 1,000 workers, of which all or none are in trouble.
func BenchmarkDiagnosis(b *testing.B) {
	for _, trouble := range []string{"", "ImagePullBackOff"} {
		b.Run(strings.TrimSpace("trouble "+trouble), func(b *testing.B) {
			w := ready()
			worker := w.pod("a/0")
			for i := range 1000 {
				pod := worker.DeepCopy()
				pod.Name += string(rune('a'+i%26)) + string(rune('a'+i/26))
				w.Pods = append(w.Pods, pod)
			}
			if trouble != "" {
				for _, pod := range w.Pods {
					pod.Status.ContainerStatuses = nil
				}
				w.waits("a/0", trouble, "not found")
				for _, pod := range w.Pods {
					pod.Status = w.pod("a/0").Status
				}
			}
			for b.Loop() {
				diagnose.Own((&planner{snapshot: w.Snapshot, now: planNow.Add(time.Hour)}).facts(w.Cluster))
			}
		})
	}
}
