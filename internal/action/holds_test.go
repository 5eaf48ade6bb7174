package action

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/internal/leadership"
)

func TestHoldsBackOffForTheirGroupOnly(t *testing.T) {
	holds, now := NewHolds(), time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	refused := Create{Object: &corev1.Pod{}, Group: "a", Failed: Warning("FailedToCreateWorkerPod", "Create", "cannot create")}
	plan := Plan{Actions: []Action{refused, Create{Object: &corev1.Pod{}, Group: "b"}}}
	failed := Result{Failures: []Failure{{Action: refused, Err: errors.New("exceeded quota")}}}

	var waits []string
	for range 8 {
		wait := holds.Record("uid", plan, failed, now)
		waits = append(waits, fmt.Sprint(wait))
		now = now.Add(wait)
	}
	want := []string{"1s", "2s", "4s", "8s", "16s", "32s", "1m0s", "1m0s"}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	held := holds.Of("uid")
	if len(held) != 1 || held["a"].Message != "exceeded quota" || held["a"].Reason != "FailedToCreateWorkerPod" {
		t.Errorf("only group a is held, with the API server's text: %+v", held)
	}
	if wait := holds.Record("uid", plan, Result{}, now); wait == 0 || len(holds.Of("uid")) != 0 {
		t.Errorf("a success must free the group and ask for one more pass: %s, %+v", wait, holds.Of("uid"))
	}
}

func TestHoldsForgetWhatIsNotTriedAnyMore(t *testing.T) {
	holds, now := NewHolds(), time.Now()
	a := Create{Object: &corev1.Pod{}, Group: "a"}
	holds.Record("uid", Plan{Actions: []Action{a}}, Result{Failures: []Failure{{Action: a, Err: errors.New("no")}}}, now)
	holds.Record("uid", Plan{}, Result{}, now.Add(500*time.Millisecond))
	if len(holds.Of("uid")) != 1 {
		t.Error("a group is held until its time is over, although the plan leaves it out meanwhile")
	}
	holds.Record("uid", Plan{}, Result{}, now.Add(2*time.Second)) // the group was removed from the spec
	if len(holds.Of("uid")) != 0 {
		t.Error("what nobody asks for any more must not be held for ever")
	}
}

func TestLosingTheTermIsNoFailureOfTheWrite(t *testing.T) {
	holds := NewHolds()
	a := Create{Object: &corev1.Pod{}, Group: "a"}
	wait := holds.Record("uid", Plan{Actions: []Action{a}}, Result{Failures: []Failure{{Action: a, Err: leadership.ErrNoTerm}}}, time.Now())
	if wait != 0 || len(holds.Of("uid")) != 0 {
		t.Errorf("the next leader must not wait: %s, %+v", wait, holds.Of("uid"))
	}
}

// The conditions carry the text of a hold, and are written when it changes.
func TestTheTextOfAHoldStaysTheSameWhileTheTroubleDoes(t *testing.T) {
	texts := map[string]bool{}
	for name, named := range map[string]string{
		"demo-a-worker-bcdfg": "demo-a-worker-bcdfg",
		"demo-a-worker-zzzzz": "demo-a-worker-zzzzz",
		"demo-a-worker-rest2": "demo-a-worker-first", // of a group, the rest is given up with the words about the first
	} {
		pod := &corev1.Pod{}
		pod.Name = name
		refused := Create{Object: pod, Group: "a"}
		holds := NewHolds()
		holds.Record("uid", Plan{}, Result{Failures: []Failure{{Action: refused, Err: fmt.Errorf("pods %q is forbidden: exceeded quota", named)}}}, time.Now())
		texts[holds.Of("uid")["a"].Message] = true
	}
	if !texts[`pods "demo-a-worker-..." is forbidden: exceeded quota`] || len(texts) != 1 {
		t.Errorf("three tries leave the texts %v", texts)
	}
}

// A process that leads again must not report what was refused in its earlier term; the simulation found that it did.
func TestAnotherTermKnowsOfNoRefusals(t *testing.T) {
	holds := NewHolds()
	a := Create{Object: owned("owner", "1"), Group: "workers"}
	holds.Record("uid", Plan{Actions: []Action{a}}, Result{Failures: []Failure{{Action: a, Err: ErrCollision}}}, time.Now())
	if len(holds.Of("uid")) != 1 {
		t.Fatal("the refusal is remembered")
	}
	holds.ForgetAll()
	if len(holds.Of("uid")) != 0 {
		t.Error("the refusal is still remembered")
	}
}

func TestWhatWasToldBefore(t *testing.T) {
	for name, test := range map[string]struct {
		given map[string]Hold
		want  map[string]bool
	}{
		"given no failures, nothing was told":         {nil, map[string]bool{}},
		"given refused creates, their keys were told": {map[string]Hold{"a": {Count: 1}, "b": {Count: 7}}, map[string]bool{"a": true, "b": true}},
		"given a failed delete, the next one is told": {map[string]Hold{"": {Count: 1}, "a": {Count: 1}}, map[string]bool{"a": true}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Told(test.given)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}
