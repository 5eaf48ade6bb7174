package raycluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// TestAStatusThatIsNotWritten: what became of a loss is told until the status is seen to tell it.
func TestAStatusThatIsNotWritten(t *testing.T) {
	w := watch(t)
	w.later(time.Minute)
	w.lose("a/0")
	w.look()
	w.later(20 * time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "h n1 ALIVE 0", "a n2 DEAD 0", "b n3 ALIVE 0")
	for range 3 {
		w.later(time.Second)
		got := w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
		if len(got) != 1 || got[0].State != rayv1.RecoveryComplete || *got[0].DurationSeconds != 21 {
			t.Fatalf("the status is to tell of %+v", got)
		}
	}
	w.look()
	if got := w.look(); len(got) != 1 || got[0].State != rayv1.RecoveryComplete {
		t.Errorf("when it does it tells of %+v", got)
	}
}

// TestManyLossesAtOnce: those that there is no place for do not take turns in the status.
func TestManyLossesAtOnce(t *testing.T) {
	w := watch(t)
	w.Cluster.Spec.WorkerGroupSpecs[0].Replicas, w.Cluster.Spec.WorkerGroupSpecs[0].MaxReplicas = ptr.To[int32](30), ptr.To[int32](30)
	w.look()
	for _, pod := range w.Pods {
		w.makeReady(pod)
	}
	w.look()
	for _, pod := range w.Pods {
		if groupOf(pod) != rayv1.HeadGroupName {
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(w.now))
		}
	}
	first := w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
	w.Cluster.Status.Recoveries = first
	if d := cmp.Diff(first, w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)); d != "" || len(first) != maxRecoveries {
		t.Errorf("%d losses, and in the next pass (-before +after):\n%s", len(first), d)
	}
}

// TestNothingIsWrittenAtRest: while nothing is lost, and while what is lost does not change, there is nothing to write.
func TestNothingIsWrittenAtRest(t *testing.T) {
	w := watch(t)
	rest := func(when string) {
		for range 5 {
			w.later(time.Minute)
			w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "h n1 ALIVE 0", "a n2 RESTARTING 1", "b n3 ALIVE 0")
			w.Recoveries = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
			w.Census = w.losses.Census(w.Cluster, w.ledger)
			if plan := Plan(w.Snapshot, w.settings, w.now); plan.Status != nil {
				t.Errorf("%s the status is written: %s", when, plan.Status.Why)
			}
		}
	}
	rest("at rest")
	w = watch(t)
	w.later(time.Minute)
	w.lose("a/0")
	w.look()
	w.makeReady(w.pod("a/0"))
	w.later(20 * time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "h n1 ALIVE 0", "a n2 RESTARTING 1", "b n3 ALIVE 0")
	w.look()
	w.look()
	rest("while an actor is restarting")
}

func TestLongNamesOfActors(t *testing.T) {
	w := watch(t)
	long := strings.Repeat("x", 5000)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2", "n3 10.0.0.3"}, long+" n2 ALIVE 0")
	w.lose("a/0")
	w.look()
	w.later(time.Minute)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, long+" n2 DEAD 0")
	if got := w.look()[0]; len(got.LostActors) != 1 || len(got.LostActors[0]) > maxLostName {
		t.Errorf("the status tells of %+v", got)
	}
}

// TestAPodThatWasToLeaveAndStays is watched again after a while.
func TestAPodThatWasToLeaveAndStays(t *testing.T) {
	w := watch(t)
	w.losses.Leaving(w.Cluster, []action.Action{action.Delete{Object: w.pod("a/0")}}, w.now)
	w.later(leaveTime + time.Second)
	w.look()
	w.lose("a/0")
	if got := w.look(); len(got) != 1 {
		t.Errorf("the status tells of %+v", got)
	}
}

func TestTheListOfLossesIsBounded(t *testing.T) {
	w := watch(t)
	for range 3 * maxRecoveries {
		w.later(time.Minute)
		for i := range w.Pods {
			if w.Pods[i].DeletionTimestamp == nil {
				w.makeReady(w.Pods[i])
			}
		}
		w.look()
		w.lose("a/0")
		w.look()
	}
	if got := w.look(); len(got) != maxRecoveries {
		t.Errorf("the status tells of %d losses", len(got))
	}
}

func TestEventsOfLosses(t *testing.T) {
	w := watch(t)
	w.later(time.Minute)
	w.lose("a/0")
	w.look()
	w.later(20 * time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "h n1 ALIVE 0", "a n2 DEAD 0", "b n3 ALIVE 0")
	w.Recoveries = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
	told := func() []action.Event { return Plan(w.Snapshot, w.settings, w.now).Events }
	if got := told(); len(got) != 1 || got[0].Reason != "ActorsLost" || got[0].Type != corev1.EventTypeWarning || !strings.Contains(got[0].Note, "1 actors for good: a") {
		t.Fatalf("events are %+v", got)
	}
	w.pass(w.now)
	if got := told(); len(got) != 0 {
		t.Errorf("and again: %+v", got)
	}
}

// TestAnActorThatDoesNotComeBack ends the report after a while all the same.
func TestAnActorThatDoesNotComeBack(t *testing.T) {
	w := watch(t)
	w.later(time.Minute)
	w.lose("a/0")
	w.look()
	w.later(recoveryLimit + time.Second)
	w.asked("s", []string{"n1 10.0.0.1", "n2 10.0.0.2 DEAD", "n3 10.0.0.3"}, "h n1 ALIVE 0", "a n2 RESTARTING 1", "b n3 ALIVE 0")
	w.Recoveries = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
	events := slices.DeleteFunc(Plan(w.Snapshot, w.settings, w.now).Events, func(e action.Event) bool { return e.Action != "Recover" })
	if got := w.Recoveries[0]; got.State != rayv1.RecoveryComplete || got.Actors.Restarting != 1 {
		t.Errorf("the status tells of %+v", got)
	}
	if len(events) != 1 || !strings.Contains(events[0].Note, "1 not back after 10m0s") {
		t.Errorf("events are %+v", events)
	}
}

// A head that is lost again before Ray was asked about it has taken what was there before: that is still known.
func TestAHeadIsLostTwiceInARow(t *testing.T) {
	w := watch(t)
	w.later(time.Minute)
	w.lose("head")
	w.look()
	w.look()
	for range 2 {
		w.headComes()
		w.look()
		w.later(5 * time.Second)
		w.lose("head")
		w.look()
		w.look()
	}
	w.headComes()
	w.look()
	w.later(time.Minute)
	w.asked("s", []string{"n1 10.0.0.1 DEAD", "n4 10.0.0.4", "n2 10.0.0.2", "n3 10.0.0.3"}, "h n1 DEAD 0", "a n2 ALIVE 0", "b n3 ALIVE 0")
	for _, told := range w.look() {
		if told.State != rayv1.RecoveryComplete || told.Actors.Lost != 1 || told.Actors.Kept != 2 {
			t.Errorf("the status tells of %+v, actors %+v", told, told.Actors)
		}
	}
}

// Jobs and placement groups are counted for themselves, and named in the event.
func TestAHeadIsLostWithAJob(t *testing.T) {
	w := watch(t)
	answer := &dashboard.Census{Nodes: []dashboard.Node{{ID: "n1", IP: "10.0.0.1", State: "ALIVE"}},
		Actors: []dashboard.Actor{{ID: "j", Name: "_ray_internal_job_actor_train-x7k2m", Node: "n1", State: dashboard.ActorAlive}},
		Groups: []dashboard.PlacementGroup{{ID: "g", State: dashboard.GroupCreated, Bundles: []struct {
			Node string `json:"node_id"`
		}{{"n1"}}}}}
	w.ledger = w.ledger.After(answer, "s", w.now)
	w.later(time.Minute)
	w.lose("head")
	w.look()
	w.look()
	w.headComes()
	w.look()
	w.later(time.Minute)
	w.asked("s2", []string{"n4 10.0.0.4"})
	w.Recoveries = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now)
	plan := Plan(w.Snapshot, w.settings, w.now)
	w.pass(w.now)
	got := w.Cluster.Status.Recoveries[0]
	if got.State != rayv1.RecoveryComplete {
		t.Fatalf("the status tells of %+v", got)
	}
	if d := cmp.Diff(counts(1, 0, 0, 0), got.Jobs); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"train-x7k2m"}, got.LostJobs); d != "" {
		t.Errorf("names of jobs (-want +got):\n%s", d)
	}
	if d := cmp.Diff(counts(1, 0, 0, 0), got.PlacementGroups); d != "" {
		t.Errorf("placement groups (-want +got):\n%s", d)
	}
	var told []string
	for _, event := range plan.Events {
		told = append(told, event.Reason+": "+event.Note)
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, "1 jobs lost: train-x7k2m; placement groups: 1 lost") {
		t.Errorf("the events say %s", text)
	}
}
