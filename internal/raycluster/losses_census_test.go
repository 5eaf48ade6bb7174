package raycluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// replaced lets another leader take over, which has not asked Ray yet.
func (w *watched) replaced() {
	w.losses, w.ledger = NewLosses(), nil
	w.later(30 * time.Second)
}

// TestALossThatNobodyWatched: a new leader finds that what the last one knew is gone, and tells what is known of it.
func TestALossThatNobodyWatched(t *testing.T) {
	restarted := func(slot string) func(*watched) {
		return func(w *watched) { w.pod(slot).Status.ContainerStatuses[0].RestartCount = 1 }
	}
	gone := func(slot string) func(*watched) { return func(w *watched) { w.lose(slot) } }
	for name, tc := range map[string]struct {
		lost    func(*watched)
		session string // of Ray afterwards
		part    rayv1.LostPart
		state   rayv1.RecoveryState
		want    *rayv1.RecoveryCounts
		says    string
	}{
		"the head's Pod, with all that Ray knew": {gone("head"), "s2", rayv1.LostHead, rayv1.RecoveryComplete, counts(3, 0, 0, 0), "none of them"},
		"the head's Pod, and its state was kept": {gone("head"), "s", rayv1.LostHead, rayv1.RecoveryUnknown, nil, "there were 3 actors, 0 placement groups and 0 jobs, now 2, 0 and 0"},
		"Ray on the head":                        {restarted("head"), "s2", rayv1.LostHeadContainer, rayv1.RecoveryComplete, counts(3, 0, 0, 0), "none of them"},
		"a worker's Pod":                         {gone("a/0"), "s", rayv1.LostWorker, rayv1.RecoveryUnknown, nil, "there were 3 actors"},
		"Ray on a worker":                        {restarted("a/0"), "s", rayv1.LostWorkerContainer, rayv1.RecoveryUnknown, nil, "there were 3 actors"},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.later(time.Minute)
			pod := w.pod(map[bool]string{true: "head", false: "a/0"}[strings.Contains(string(tc.part), "Head")]).Name
			tc.lost(w)
			w.replaced()
			if first := w.look(); len(first) != 1 || first[0].Part != tc.part || first[0].State != rayv1.RecoveryObserving || first[0].Pod != pod {
				t.Fatalf("at first the status tells of %+v", first)
			}
			w.headComes()
			w.look()
			w.later(20 * time.Second)
			w.asked(tc.session, []string{"n4 10.0.0.4"}, "a n4 ALIVE 0", "b n4 ALIVE 0")
			got := w.look()
			if len(got) != 1 || got[0].State != tc.state || !strings.Contains(got[0].Message, tc.says) {
				t.Fatalf("then the status tells of %+v", got)
			}
			if d := cmp.Diff(tc.want, got[0].Actors); d != "" {
				t.Errorf("actors (-want +got):\n%s", d)
			}
			w.replaced()
			if again := w.look(); cmp.Diff(got, again) != "" {
				t.Errorf("the leader after that tells of %+v", again)
			}
		})
	}
}

// TestALossIsHandedOn: a leader that is replaced while it asks Ray what a loss took leaves the numbers from before it.
func TestALossIsHandedOn(t *testing.T) {
	w := watch(t)
	w.later(time.Minute)
	w.lose("head")
	w.look()
	w.headComes()
	w.later(time.Second)
	w.asked("s2", []string{"n4 10.0.0.4"})
	w.look()
	w.replaced()
	w.look()
	w.later(20 * time.Second)
	w.asked("s2", []string{"n4 10.0.0.4"})
	if got := w.look(); len(got) != 1 || got[0].State != rayv1.RecoveryComplete || got[0].Actors.Lost != 3 {
		t.Errorf("the status tells of %+v", got)
	}
}

// TestRayIsSilentAfterwards ends the report all the same, with what is known.
func TestRayIsSilentAfterwards(t *testing.T) {
	w := watch(t)
	w.lose("head")
	w.replaced()
	w.look()
	w.later(recoveryLimit + time.Second)
	if got := w.look()[0]; got.State != rayv1.RecoveryUnknown || !strings.Contains(got.Message, "there were 3 actors") || !strings.Contains(got.Message, "Ray did not say") {
		t.Errorf("the status tells of %+v", got)
	}
}

// TestWhatTheLastLeaderTookAwayIsNoLoss: it is struck from the census before it is deleted.
func TestWhatTheLastLeaderTookAwayIsNoLoss(t *testing.T) {
	w := watch(t)
	w.Cluster.Spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](0)
	w.Recoveries, w.Census = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now), w.losses.Census(w.Cluster, w.ledger)
	plan := Plan(w.Snapshot, w.settings, w.now)
	deleted := 0
	for _, a := range plan.Actions {
		if d, is := a.(action.Delete); is && groupOf(d.Object.(*corev1.Pod)) == "a" {
			deleted++
		}
	}
	if deleted != 2 || plan.Status == nil {
		t.Fatalf("%d workers are deleted, with the status %+v", deleted, plan.Status)
	}
	w.Cluster.Status = plan.Status.Object.(*rayv1.RayCluster).Status
	if got := w.Cluster.Status.LastCensus; len(got.Workers) != 0 || got.Head == nil {
		t.Fatalf("the census is %+v", got)
	}
	w.lose("a/0", "a/1")
	w.replaced()
	if got := w.look(); len(got) != 0 {
		t.Errorf("the status tells of %+v", got)
	}
}

// TestNumbersAreWrittenRarely: they are taken along, and have a write of their own once in a minute at most.
func TestNumbersAreWrittenRarely(t *testing.T) {
	w := watch(t)
	all := []string{"n1 10.0.0.1", "n2 10.0.0.2", "n3 10.0.0.3"}
	writes, actors := 0, []string{}
	const minutes = 5
	for i := range minutes * 6 {
		w.later(10 * time.Second)
		actors = append(actors, fmt.Sprintf("x%d n2 ALIVE 0", i))
		w.asked("s", all, actors...)
		w.Recoveries, w.Census = w.losses.Note(w.Cluster, w.Pods, w.ledger, w.now), w.losses.Census(w.Cluster, w.ledger)
		if plan := Plan(w.Snapshot, w.settings, w.now); plan.Status != nil {
			writes++
			w.Cluster.Status = plan.Status.Object.(*rayv1.RayCluster).Status
		}
	}
	if writes == 0 || writes > minutes+1 {
		t.Errorf("%d writes in %d minutes", writes, minutes)
	}
	w.lose("a/0")
	if got := w.look(); len(got) != 1 || w.Cluster.Status.LastCensus.Actors != 3+minutes*6-3 {
		t.Errorf("with another write the census is %+v", w.Cluster.Status.LastCensus)
	}
}

// TestWorkersInTheCensus: what stands there is short, whoever made the Pod, and is read back as it was.
func TestWorkersInTheCensus(t *testing.T) {
	const prefix = "demo-a-worker-"
	for text, m := range map[string]member{
		"bcdfg":           {name: prefix + "bcdfg"},
		"bcdfg:3":         {name: prefix + "bcdfg", restarts: 3},
		"other-worker":    {name: "other-worker"},
		"other-worker:12": {name: "other-worker", restarts: 12},
		prefix + "a-b":    {name: prefix + "a-b"},
	} {
		if got := workerText(prefix, m); got != text {
			t.Errorf("%s stands there as %q, want %q", m.name, got, text)
		}
		if name, restarts := workerNamed(prefix, text); name != m.name || restarts != m.restarts {
			t.Errorf("%q is read as %s with %d restarts", text, name, restarts)
		}
	}
}

// TestTheCensusIsBounded, however many workers there are.
func TestTheCensusIsBounded(t *testing.T) {
	k := recall(ready().Cluster, nil, planNow)
	for i := range 2 * maxKnownWorkers {
		name := fmt.Sprintf("demo-a-worker-%05d", i)
		k.pods[types.UID(name)] = member{name: name, group: "a"}
	}
	if got := k.namesOf(ready().Cluster); len(got.Workers["a"]) != maxKnownWorkers {
		t.Errorf("%d workers are named", len(got.Workers["a"]))
	}
}
