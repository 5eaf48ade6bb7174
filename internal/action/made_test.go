package action

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMadeWaitsForTheCache(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	made := NewMade(clock)
	for _, uid := range []types.UID{"p1", "p2"} {
		pod := owned("owner", "1")
		pod.UID = uid
		made.add(pod)
	}
	if made.AllSeen("owner", []types.UID{"p1"}) {
		t.Error("p2 is not in the cache yet")
	}
	if !made.AllSeen("other", nil) {
		t.Error("another owner has nothing to wait for")
	}
	if !made.AllSeen("owner", []types.UID{"p2"}) {
		t.Error("p1 was seen before, p2 is there now")
	}
	lost := owned("owner", "2")
	lost.UID = "p3"
	made.add(lost)
	clock.SetTime(clock.Now().Add(unseenLimit + time.Second))
	if !made.AllSeen("owner", nil) {
		t.Error("what never shows up must not block its owner for ever")
	}
	var none *Made
	none.add(&corev1.Pod{})
	if !none.AllSeen("owner", nil) {
		t.Error("without a memory the client itself waits")
	}
}
