package raycluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/census"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// watched is a running cluster with a memory of losses.
type watched struct {
	*world
	t      *testing.T
	losses *Losses
	ledger *census.Ledger
	now    time.Time
}

// watch has a cluster of a head and two workers watched. Actor "a" lives on worker 0, "b" on worker 1, "h" on the head.
func watch(t *testing.T) *watched {
	w := &watched{world: ready(), t: t, losses: NewLosses(), now: planNow.Add(time.Minute)}
	for i, slot := range []string{"head", "a/0", "a/1"} {
		pod := w.pod(slot)
		pod.Status.PodIP = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}[i]
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2", "n3 10.0.0.3"}, "h n1 ALIVE 0", "a n2 ALIVE 0", "b n3 ALIVE 0")
	w.look()
	return w
}

// asked lets Ray answer. A node is its ID and address, and DEAD where it is; an actor is its name, node, state, and restarts.
func (w *watched) asked(session string, nodes []string, actors ...string) {
	w.t.Helper()
	answer := &dashboard.Census{}
	for _, text := range nodes {
		part := append(strings.Fields(text), "ALIVE")
		answer.Nodes = append(answer.Nodes, dashboard.Node{ID: part[0], IP: part[1], State: part[2]})
	}
	for _, text := range actors {
		part := strings.Fields(text)
		actor := dashboard.Actor{ID: part[0], Name: part[0], Node: part[1], State: dashboard.ActorState(part[2]), Restarts: dashboard.Number(part[3][0] - '0')}
		if actor.State == dashboard.ActorDead {
			actor.DeathCause = dashboard.Died("NODE_DIED")
		}
		answer.Actors = append(answer.Actors, actor)
	}
	w.ledger = w.ledger.After(answer, session, w.now)
}

// look is one pass.
func (w *watched) look() []rayv1.RayClusterRecovery {
	w.Recoveries = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
	w.Census = w.losses.Census(w.Cluster, w.ledger)
	plan := Plan(w.Snapshot, w.settings, w.now)
	w.losses.Leaving(w.Cluster, plan.Actions, w.now)
	w.pass(w.now)
	return w.Cluster.Status.Recoveries
}

func (w *watched) later(by time.Duration) { w.now = w.now.Add(by) }

// lose takes Pods away as if they had never been.
func (w *watched) lose(slots ...string) {
	for _, slot := range slots {
		w.pod(slot).DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
	}
	w.gone()
}

// headComes makes the new head ready.
func (w *watched) headComes() { w.makeReady(w.pod("head")) }

func counts(lost, restarting, restored, kept int32) *rayv1.RecoveryCounts {
	return &rayv1.RecoveryCounts{Lost: lost, Restarting: restarting, Restored: restored, Kept: kept}
}

func TestAWorkerIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		// says is what Ray says afterwards.
		nodes, actors []string
		want          *rayv1.RecoveryCounts
		state         rayv1.RecoveryState
		names         []string
	}{
		"its actor is dead for good": {[]string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, []string{"h n1 ALIVE 0", "a n2 DEAD 0", "b n3 ALIVE 0"},
			counts(1, 0, 0, 0), rayv1.RecoveryComplete, []string{"a"}},
		"its actor is on its way": {[]string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, []string{"h n1 ALIVE 0", "a n2 RESTARTING 1", "b n3 ALIVE 0"},
			counts(0, 1, 0, 0), rayv1.RecoveryObserving, nil},
		"its actor lives elsewhere": {[]string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, []string{"h n1 ALIVE 0", "a n3 ALIVE 1", "b n3 ALIVE 0"},
			counts(0, 0, 1, 0), rayv1.RecoveryComplete, nil},
		"Ray has not noticed it yet": {[]string{"n1 10.0.0.1", "n2 10.0.0.2", "n3 10.0.0.3"}, []string{"h n1 ALIVE 0", "a n2 ALIVE 0", "b n3 ALIVE 0"},
			nil, rayv1.RecoveryObserving, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.later(time.Minute)
			w.lose("a/0")
			first := w.look()
			if len(first) != 1 || first[0].State != rayv1.RecoveryObserving || first[0].Part != rayv1.LostWorker || first[0].Cause != "Deleted" || first[0].Incarnation != 1 {
				t.Fatalf("at first the status tells of %+v", first)
			}
			w.later(20 * time.Second)
			w.asked("s", tc.nodes, tc.actors...)
			got := w.look()
			if len(got) != 1 || got[0].State != tc.state {
				t.Fatalf("then the status tells of %+v", got)
			}
			if d := cmp.Diff(tc.want, got[0].Actors); d != "" {
				t.Errorf("actors (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.names, got[0].LostActors); d != "" {
				t.Errorf("names (-want +got):\n%s", d)
			}
		})
	}
}

func TestAHeadIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		session string
		actors  []string
		want    *rayv1.RecoveryCounts
	}{
		"with all that Ray knew":     {"s2", nil, counts(3, 0, 0, 0)},
		"and its state was kept":     {"s", []string{"h n4 ALIVE 1", "a n2 ALIVE 0", "b n3 ALIVE 0"}, counts(0, 0, 1, 2)},
		"and what was on it is dead": {"s", []string{"h n1 DEAD 0", "a n2 ALIVE 0", "b n3 ALIVE 0"}, counts(1, 0, 0, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.later(time.Minute)
			w.lose("head")
			w.look()
			w.later(5 * time.Second)
			w.headComes()
			w.asked(tc.session, []string{"n4 10.0.0.4", "n2 10.0.0.2", "n3 10.0.0.3"}, tc.actors...)
			if early := w.look(); early[0].State != rayv1.RecoveryObserving {
				t.Errorf("before the workers can have come back the verdict is %+v", early[0])
			}
			w.later(20 * time.Second)
			w.asked(tc.session, []string{"n4 10.0.0.4", "n2 10.0.0.2", "n3 10.0.0.3"}, tc.actors...)
			got := w.look()[0]
			if d := cmp.Diff(tc.want, got.Actors); d != "" || got.State != rayv1.RecoveryComplete || got.Part != rayv1.LostHead {
				t.Errorf("the status tells of %+v; actors (-want +got):\n%s", got, d)
			}
		})
	}
}

// TestTheNextHead: what Ray says counts only when it has noticed that the old head is gone, and a container that starts so
// quickly that its Pod is never seen unready is a new head as well.
func TestTheNextHead(t *testing.T) {
	all := []string{"n1 10.0.0.1", "n2 10.0.0.2", "n3 10.0.0.3"}
	t.Run("Ray takes the old one for alive", func(t *testing.T) {
		w := watch(t)
		w.later(time.Minute)
		w.lose("head")
		w.look()
		w.headComes()
		w.look()
		w.later(30 * time.Second)
		w.asked("s", append(all, "n4 10.0.0.4"), "h n1 ALIVE 0", "a n2 ALIVE 0", "b n3 ALIVE 0")
		if got := w.look()[0]; got.State != rayv1.RecoveryObserving || got.Actors != nil {
			t.Errorf("the status tells of %+v", got)
		}
	})
	t.Run("its container starts anew at once", func(t *testing.T) {
		w := watch(t)
		w.later(time.Minute)
		w.pod("head").Status.ContainerStatuses[0].RestartCount = 1
		w.look()
		w.later(5 * time.Second)
		w.asked("s2", []string{"n4 10.0.0.1"})
		if got := w.look()[0]; got.State != rayv1.RecoveryObserving {
			t.Errorf("before the workers can have come back the status tells of %+v", got)
		}
		w.later(10 * time.Second)
		w.asked("s2", []string{"n4 10.0.0.1"})
		if got := w.look()[0]; got.State != rayv1.RecoveryComplete || got.Part != rayv1.LostHeadContainer || got.Actors.Lost != 3 {
			t.Errorf("the status tells of %+v", got)
		}
	})
}

// TestALossIsNoticedLate: no pass need have come between the answer that first tells of a node and its loss, and the
// next life may be there already.
func TestALossIsNoticedLate(t *testing.T) {
	w := watch(t)
	w.ledger = nil
	w.asked("s", []string{"n1 10.0.0.1"})
	w.look()
	w.later(10 * time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2"}, "a n2 ALIVE 0")
	w.later(time.Minute)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n5 10.0.0.2"}, "a n5 ALIVE 1")
	w.pod("a/0").Status.ContainerStatuses[0].RestartCount = 1
	w.look()
	w.later(10 * time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n5 10.0.0.2"}, "a n5 ALIVE 1")
	if got := w.look()[0]; got.State != rayv1.RecoveryComplete || got.Actors.Restored != 1 {
		t.Errorf("the status tells of %+v", got)
	}
	w.later(time.Minute)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n5 10.0.0.2"}, "a n5 ALIVE 1")
	w.lose("a/0")
	w.look()
	w.later(10 * time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n5 10.0.0.2 DEAD"}, "a n5 DEAD 1")
	if got := w.look(); len(got) != 2 || got[0].State != rayv1.RecoveryComplete || got[0].Actors.Lost != 1 || got[1].Actors.Restored != 1 {
		t.Errorf("after the next life the status tells of %+v", got)
	}
}

// TestWorkersThatFollowTheirHead: the containers that start anew because the head was lost are no losses of their own, early or
// late; a worker that is taken away meanwhile is.
func TestWorkersThatFollowTheirHead(t *testing.T) {
	follow := func(w *watched, slot string) { w.pod(slot).Status.ContainerStatuses[0].RestartCount++ }
	w := watch(t)
	w.later(time.Minute)
	w.lose("head")
	follow(w, "a/0")
	w.look()
	w.headComes()
	w.look()
	w.later(30 * time.Second)
	w.asked("s2", []string{"n4 10.0.0.4", "n5 10.0.0.2"})
	if got := w.look(); len(got) != 1 || got[0].State != rayv1.RecoveryComplete || got[0].Actors.Lost != 3 {
		t.Fatalf("the status tells of %+v", got)
	}
	follow(w, "a/1")
	if got := w.look(); len(got) != 1 {
		t.Errorf("after a late one the status tells of %+v", got)
	}
	w.later(30 * time.Second)
	w.asked("s2", []string{"n4 10.0.0.4", "n5 10.0.0.2", "n6 10.0.0.3"}, "c n6 ALIVE 0")
	w.look()
	follow(w, "a/1")
	if got := w.look(); len(got) != 2 || got[0].Part != rayv1.LostWorkerContainer {
		t.Errorf("after one that starts anew by itself the status tells of %+v", got)
	}

	w = watch(t)
	w.later(time.Minute)
	w.lose("head", "a/0")
	if got := w.look(); len(got) != 2 {
		t.Errorf("of a head and a worker that are taken away the status tells %+v", got)
	}
}

func TestWhatIsNoLoss(t *testing.T) {
	for name, when := range map[string]func(*watched){
		"the operator scales down": func(w *watched) {
			w.Cluster.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1)
			w.look()
			w.gone()
		},
		"the cluster is suspended": func(w *watched) {
			w.Cluster.Spec.Suspend = ptr.To(true)
			w.look()
			w.gone()
		},
		"a worker that never was ready goes": func(w *watched) {
			w.Cluster.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](3)
			w.look()
			w.lose("a/2")
		},
		"nothing happens": func(*watched) {},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			when(w)
			if got := w.look(); len(got) > 0 {
				t.Errorf("the status tells of %+v", got)
			}
		})
	}
}

func TestTheCauseOfALoss(t *testing.T) {
	terminated := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}
	for name, tc := range map[string]struct {
		slot string
		when func(*corev1.Pod)
		part rayv1.LostPart
		want string
	}{
		"somebody deletes it": {"a/0", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(planNow)) }, rayv1.LostWorker, "Deleted"},
		"it is evicted": {"a/0", func(p *corev1.Pod) {
			p.DeletionTimestamp = ptr.To(metav1.NewTime(planNow))
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
		}, rayv1.LostWorker, "EvictionByEvictionAPI"},
		"the kubelet evicts it": {"a/0", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }, rayv1.LostWorker, "Evicted"},
		"Ray starts anew in it": {"a/0", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].LastTerminationState = 1, terminated
		}, rayv1.LostWorkerContainer, "OOMKilled (exit code 137)"},
		"Ray starts anew on the head": {"head", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].LastTerminationState = 1, terminated
		}, rayv1.LostHeadContainer, "OOMKilled (exit code 137)"},
		"Ray ends in it for good": {"a/0", func(p *corev1.Pod) {
			p.Spec.RestartPolicy, p.Status.ContainerStatuses[0].State = corev1.RestartPolicyNever, terminated
		}, rayv1.LostWorker, "OOMKilled (exit code 137)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.later(time.Minute)
			tc.when(w.pod(tc.slot))
			got := w.look()
			if len(got) != 1 || got[0].Cause != tc.want || got[0].Part != tc.part {
				t.Fatalf("the status tells of %+v", got)
			}
			w.later(time.Second)
			if again := w.look(); len(again) != 1 {
				t.Errorf("a second look tells of %+v", again)
			}
		})
	}
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	t.Run("Ray does not answer", func(t *testing.T) {
		w := watch(t)
		w.lose("a/0")
		w.look()
		w.later(recoveryLimit + time.Second)
		if got := w.look()[0]; got.State != rayv1.RecoveryUnknown || got.Actors != nil || !strings.Contains(got.Message, "Ray did not say") {
			t.Errorf("the status tells of %+v", got)
		}
	})
	t.Run("the operator is replaced", func(t *testing.T) {
		w := watch(t)
		w.lose("a/0")
		w.look()
		w.losses = NewLosses()
		w.look()
		w.later(time.Minute)
		w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "a n2 DEAD 0")
		if got := w.look(); len(got) != 1 || got[0].State != rayv1.RecoveryUnknown || !strings.Contains(got[0].Message, "replaced") {
			t.Errorf("the status tells of %+v", got)
		}
	})
	t.Run("Ray names only some of its actors", func(t *testing.T) {
		w := watch(t)
		w.lose("a/0")
		w.look()
		w.later(time.Minute)
		w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "a n2 DEAD 0")
		w.ledger.More = 7
		if got := w.look()[0]; !strings.Contains(got.Message, "7 more") {
			t.Errorf("the status tells of %+v", got)
		}
	})
}

func TestWhatWasBeforeIsNotKnown(t *testing.T) {
	dead := []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}
	for name, tc := range map[string]struct {
		before func(*watched) // the loss of worker 0
		after  func(*watched)
	}{
		"Ray had never been asked": {func(w *watched) { w.losses, w.ledger, w.Cluster.Status.LastCensus = NewLosses(), nil, nil; w.look() }, func(w *watched) { w.asked("s", dead) }},
		"Ray had not told of the node": {func(w *watched) {
			w.losses, w.ledger = NewLosses(), nil
			w.asked("s", []string{"n1 10.0.0.1"}, "h n1 ALIVE 0")
			w.look()
		}, func(w *watched) { w.asked("s", dead) }},
		"Ray is asked from the beginning": {func(*watched) {}, func(w *watched) { w.later(time.Second); w.ledger = nil; w.asked("s", dead) }},
		"Ray is not asked any more":       {func(*watched) {}, func(w *watched) { w.ledger = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			tc.before(w)
			w.later(time.Minute)
			w.lose("a/0")
			w.look()
			w.later(time.Minute)
			tc.after(w)
			if got := w.look(); len(got) != 1 || got[0].State != rayv1.RecoveryUnknown || got[0].Actors != nil || !strings.Contains(got[0].Message, "before the loss") {
				t.Errorf("the status tells of %+v", got)
			}
		})
	}
}
