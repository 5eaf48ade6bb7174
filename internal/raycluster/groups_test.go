package raycluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

func groupOfDemo(w *world) *rayv1.WorkerGroupSpec { return &w.Cluster.Spec.WorkerGroupSpecs[0] }

func hosts(hosts, replicas int32) func(*world) {
	return func(w *world) { groupOfDemo(w).NumOfHosts, groupOfDemo(w).Replicas = hosts, &replicas }
}

func (w *world) terminate(slots ...string) {
	for _, slot := range slots {
		w.pod(slot).DeletionTimestamp = ptr.To(metav1.NewTime(planNow))
	}
}

// TestPlanOfReplicas goes through several passes, half a minute apart; between two of them what terminates is gone.
func TestPlanOfReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		given func() *world
		when  func(*world)
		want  [][]string
	}{
		"a failed host takes its replica with it, which comes back at the same index": {
			given: func() *world { return ready(hosts(2, 1)) },
			when:  func(w *world) { w.pod("a/0.0").Status.Phase = corev1.PodFailed },
			want:  [][]string{{"delete a/0.0", "delete a/0.1"}, {"create a/0.0", "create a/0.1"}, nil},
		},
		"a replica that worked and lost a host is recycled": {
			given: func() *world { return ready(hosts(2, 2)) },
			when:  func(w *world) { w.terminate("a/1.1"); w.gone() },
			want:  [][]string{{"delete a/1.0"}, {"create a/1.0", "create a/1.1"}, nil},
		},
		"a replica that never worked is completed": {
			given: func() *world { w := demo(hosts(2, 1)); w.pass(planNow); return w },
			when:  func(w *world) { w.terminate("a/0.1"); w.gone() },
			want:  [][]string{{"create a/0.1"}, nil},
		},
		"a replica whose host is refused is completed, though the others work": {
			given: func() *world { return ready(hosts(2, 1)) },
			when: func(w *world) {
				w.terminate("a/0.1")
				w.gone()
				w.Holds = map[string]action.Hold{"a": {Reason: "FailedToCreateWorkerPod", Until: planNow}}
			},
			want: [][]string{{"create a/0.1"}, nil},
		},
		"Pods without indices are adopted in full sets, and the rest is recycled": {
			given: func() *world { return ready(hosts(2, 2)) },
			when: func(w *world) {
				for _, pod := range w.Pods[1:4] {
					delete(pod.Labels, rayv1.LabelWorkerGroupReplicaIndex)
					delete(pod.Labels, rayv1.LabelReplicaHostIndex)
				}
				w.Pods = w.Pods[:4]
			},
			want: [][]string{{"delete a/", "create a/1.0", "create a/1.1"}, nil},
		},
		"replicas are rebuilt one at a time for a lower numOfHosts": {
			given: func() *world { return ready(hosts(2, 2)) },
			when:  func(w *world) { groupOfDemo(w).NumOfHosts = 1 },
			want:  [][]string{{"delete a/1.0", "delete a/1.1", "create a/2"}, nil},
		},
		"replicas are rebuilt one at a time for a higher numOfHosts": {
			given: func() *world { return ready(hosts(2, 2)) },
			when:  func(w *world) { groupOfDemo(w).NumOfHosts = 3 },
			want: [][]string{{"apply demo-headless", "delete a/1.0", "delete a/1.1"},
				{"create a/1.0", "create a/1.1", "create a/1.2"}, nil},
		},
		"of two Pods for one host the one that is worth more stays": {
			given: func() *world { return ready(hosts(2, 1)) },
			when: func(w *world) {
				second := w.pod("a/0.1").DeepCopy()
				second.Name, second.UID, second.Status = "demo-a-worker-zzzzz", "second", corev1.PodStatus{Phase: corev1.PodPending}
				w.Pods = append(w.Pods, second)
			},
			want: [][]string{{"delete a/0.1"}, nil},
		},
		"a whole replica goes when there are too many": {
			given: func() *world { return ready(hosts(2, 2)) },
			when:  func(w *world) { groupOfDemo(w).Replicas = ptr.To[int32](1) },
			want:  [][]string{{"delete a/1.0", "delete a/1.1"}, nil},
		},
		"a suspended group goes, whatever decides on its size": {
			given: func() *world { return ready() },
			when:  func(w *world) { groupOfDemo(w).Suspend = ptr.To(true) },
			want:  [][]string{{"delete a/0", "delete a/1"}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tc.given()
			tc.when(w)
			var got [][]string
			for i := range tc.want {
				got = append(got, w.pass(planNow.Add(time.Duration(i+1)*30*time.Second)))
				w.gone()
				w.Holds = nil
			}
			for i := range got {
				got[i] = withoutHeadless(got[i])
			}
			for i := range tc.want {
				tc.want[i] = withoutHeadless(tc.want[i])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("actions of each pass (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutHeadless leaves the Services out, which follow numOfHosts by rules of their own.
func withoutHeadless(did []string) []string {
	var rest []string
	for _, what := range did {
		if !strings.Contains(what, "demo-headless") {
			rest = append(rest, what)
		}
	}
	return rest
}

func TestAReplicaWaitsForItsPlaceOnlyForATime(t *testing.T) {
	w := ready(hosts(2, 1))
	w.terminate("a/0.0", "a/0.1")
	if did := w.pass(planNow.Add(29 * time.Second)); len(did) > 0 {
		t.Errorf("while the old replica terminates in time the plan does %v, want nothing", did)
	}
	want := []string{"create a/1.0", "create a/1.1"}
	if diff := cmp.Diff(want, w.pass(planNow.Add(overdueAfter))); diff != "" {
		t.Errorf("when the old replica is overdue (-want +got):\n%s", diff)
	}
}

func TestRecreate(t *testing.T) {
	recreate := func(w *world) {
		w.Cluster.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
	}
	newImage := func(w *world) { w.Cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image = "img:2" }
	for name, tc := range map[string]struct {
		given []func(*world)
		when  func(*world)
		want  []string
	}{
		"a new image of the head replaces all Pods, and workers wait for the old head": {
			given: []func(*world){recreate}, when: newImage, want: []string{"delete head", "delete a/0", "delete a/1"},
		},
		"a head that is gone already does not hide that the workers are outdated": {
			given: []func(*world){recreate},
			when:  func(w *world) { newImage(w); w.terminate("head"); w.gone() },
			want:  []string{"create head", "delete a/0", "delete a/1", "create a/2", "create a/3"},
		},
		"a new image of the workers leaves the head alone": {
			given: []func(*world){recreate},
			when:  func(w *world) { groupOfDemo(w).Template.Spec.Containers[0].Image = "img:2" },
			want:  []string{"delete a/0", "delete a/1", "create a/2", "create a/3"},
		},
		"without the strategy nothing changes": {when: newImage},
		"what needs no restart changes nothing": {
			given: []func(*world){recreate},
			when: func(w *world) {
				w.Cluster.Spec.Suspend = ptr.To(false)
				groupOfDemo(w).Template.Spec.Tolerations = []corev1.Toleration{{Key: "x"}}
				groupOfDemo(w).MaxReplicas = ptr.To[int32](9)
			},
		},
		"Pods of another operator are not compared": {
			given: []func(*world){recreate},
			when: func(w *world) {
				newImage(w)
				for _, pod := range w.Pods {
					pod.Annotations[rayv1.AnnotationRecreateHash] = "SOMEOTHERHASH"
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(tc.given...)
			tc.when(w)
			if diff := cmp.Diff(tc.want, w.pass(planNow.Add(time.Minute))); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodsUpToDate(t *testing.T) {
	w := ready()
	w.Cluster.Spec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Image = "img:2"
	w.pass(planNow.Add(time.Minute))
	c := meta.FindStatusCondition(w.Cluster.Status.Conditions, rayv1.ConditionPodsUpToDate)
	if c == nil || c.Reason != rayv1.ReasonSpecChanged || !strings.HasSuffix(c.Message, "2 of group a") {
		t.Errorf("after a change that nobody follows the condition is %+v", c)
	}
	w.terminate("a/0", "a/1")
	w.gone()
	w.pass(planNow.Add(2 * time.Minute))
	w.pass(planNow.Add(3 * time.Minute))
	if !meta.IsStatusConditionTrue(w.Cluster.Status.Conditions, rayv1.ConditionPodsUpToDate) {
		t.Errorf("when the old Pods are gone the conditions are %+v", w.Cluster.Status.Conditions)
	}
}

func TestASpecThatMakesNoSenseLeavesTheClusterWhole(t *testing.T) {
	w := ready()
	w.LastValid = w.Cluster.Spec.DeepCopy()
	group := groupOfDemo(w)
	group.MinReplicas, group.Replicas = ptr.To[int32](9), ptr.To[int32](1)
	group.Template.Spec.Containers[0].Image = "img:2"
	w.pod("a/0").Status.Phase = corev1.PodFailed
	w.terminate("head")
	w.gone()
	want := []string{"create demo-last-valid", "create head", "delete a/0"}
	if diff := cmp.Diff(want, w.pass(planNow.Add(time.Minute))); diff != "" {
		t.Errorf("actions on the last spec that made sense, with the present number of replicas (-want +got):\n%s", diff)
	}
	groupOfDemo(w).Replicas = ptr.To[int32](2)
	w.gone()
	w.pass(planNow.Add(time.Minute))
	if image := w.pod("a/0").Spec.Containers[0].Image; image == "img:2" {
		t.Errorf("a worker is made with %s of the spec that makes no sense", image)
	}
}

func TestTheLastValidSpecOutlivesTheOperator(t *testing.T) {
	w := ready()
	w.LastValid = w.Cluster.Spec.DeepCopy()
	groupOfDemo(w).MinReplicas = ptr.To[int32](9)
	w.pass(planNow.Add(time.Minute))
	stored := w.storedSpec()
	if diff := cmp.Diff(w.LastValid, stored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the spec as the next leader finds it (-want +got):\n%s", diff)
	}
	groupOfDemo(w).MinReplicas = ptr.To[int32](0)
	if diff := cmp.Diff([]string{"delete demo-last-valid"}, w.pass(planNow.Add(2*time.Minute))); diff != "" {
		t.Errorf("when the spec makes sense again (-want +got):\n%s", diff)
	}
}

func TestStreaks(t *testing.T) {
	at := func(seconds int) time.Time { return planNow.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		ends []int // seconds at which a Pod of the group, ten seconds old, is seen to have ended
		want int
	}{
		"none":                       {},
		"one":                        {ends: []int{0}, want: 1},
		"several at once are one":    {ends: []int{0, 1, 4}, want: 1},
		"one after the other":        {ends: []int{0, 10, 30}, want: 3},
		"a quiet time ends a streak": {ends: []int{0, 10, 700}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			streaks := NewStreaks()
			got := map[string]Streak{}
			for _, second := range tc.ends {
				got = streaks.Note(&rayv1.RayCluster{}, []*corev1.Pod{endedPod(fmt.Sprint(second), at(second-10))}, at(second))
			}
			if got["a"].Count != tc.want {
				t.Errorf("the streak counts %d, want %d", got["a"].Count, tc.want)
			}
		})
	}
}

func endedPod(uid string, made time.Time) *corev1.Pod {
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	pod.SetUID(types.UID(uid))
	pod.CreationTimestamp, pod.Labels = metav1.NewTime(made), map[string]string{rayv1.LabelGroup: "a"}
	return pod
}

func TestPodsThatGoOnEndingAreReplacedEverMoreSlowly(t *testing.T) {
	w := ready()
	w.pod("a/0").Status.Phase = corev1.PodFailed
	w.Streaks = map[string]Streak{"a": {Count: 4, Last: planNow}}
	if did := w.pass(planNow.Add(39 * time.Second)); len(did) > 0 {
		t.Errorf("39 seconds after the fourth end in a row the plan does %v, want nothing", did)
	}
	want := []string{"delete a/0", "create a/2"}
	if diff := cmp.Diff(want, w.pass(planNow.Add(40*time.Second))); diff != "" {
		t.Errorf("after 40 seconds (-want +got):\n%s", diff)
	}
}

func TestBudget(t *testing.T) {
	many := func(w *world) {
		groupOfDemo(w).Replicas, groupOfDemo(w).MaxReplicas = ptr.To[int32](1000), ptr.To[int32](1000)
	}
	autoscaled := func(w *world) { w.Cluster.Spec.EnableInTreeAutoscaling = ptr.To(true) }
	count := func(w *world, at time.Duration) int {
		created := 0
		for _, what := range w.pass(planNow.Add(at)) {
			if strings.HasPrefix(what, "create a/") {
				created++
			}
		}
		return created
	}
	t.Run("one pass makes a part, and another follows", func(t *testing.T) {
		w := demo(many)
		if plan := Plan(w.Snapshot, w.settings, planNow); plan.LookAgain != nextStep {
			t.Errorf("look again in %s, want %s", plan.LookAgain, nextStep)
		}
		if got := count(w, 0); got != podsPerPass {
			t.Errorf("one pass makes %d, want %d", got, podsPerPass)
		}
	})
	t.Run("with the autoscaler, no more than a number of Pods are pending at once", func(t *testing.T) {
		w := demo(many, autoscaled)
		got := []int{count(w, 0), count(w, time.Second), count(w, 2*time.Second)}
		if diff := cmp.Diff([]int{podsPerPass, pendingLimit - podsPerPass, 0}, got); diff != "" {
			t.Errorf("made in three passes (-want +got):\n%s", diff)
		}
		w.Streaks = map[string]Streak{"a": {Count: 2, Last: planNow}}
		w.makeReady(w.Pods...)
		got = []int{count(w, 3*time.Second), count(w, 4*time.Second)}
		if diff := cmp.Diff([]int{pendingLimit / 4, 0}, got); diff != "" {
			t.Errorf("made after two early ends (-want +got):\n%s", diff)
		}
	})
}
