package action

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestMadeWaitsForTheCache(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	api := fake.NewClientBuilder().Build()
	e := &Executor{Client: api, Live: api, Made: NewMade(clock)}
	expect := func(owner types.UID, shown []types.UID, want bool, why string) {
		t.Helper()
		got, err := e.AllSeen(t.Context(), owner, shown)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Error(why)
		}
	}
	for _, uid := range []types.UID{"p1", "p2"} {
		pod := owned("owner", "1")
		pod.UID = uid
		e.Made.add(pod)
	}
	expect("owner", []types.UID{"p1"}, false, "p2 is not in the cache yet")
	expect("other", nil, true, "another owner has nothing to wait for")
	expect("owner", []types.UID{"p2"}, true, "p1 was seen before, p2 is there now")

	late := owned("owner", "2")
	late.UID = "p3"
	if err := api.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	e.Made.add(late)
	clock.SetTime(clock.Now().Add(unseenLimit + time.Second))
	expect("owner", nil, false, "the Pod is there, however late the cache is")
	if err := api.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	expect("owner", nil, false, "the API server is not asked all the time")
	clock.SetTime(clock.Now().Add(unseenLimit + time.Second))
	expect("owner", nil, true, "what was deleted before the cache showed it must not block its owner for ever")
}

func TestMadeIsForgottenWhereNobodyAsks(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	made := NewMade(clock)
	made.add(owned("owner", "1"))
	clock.SetTime(clock.Now().Add(abandonedLimit + time.Second))
	made.add(owned("other", "1"))
	if len(made.unseen) != 1 {
		t.Errorf("%d owners are remembered, want only the last", len(made.unseen))
	}
}

func TestDoubtfulRemembersOnlyWhatIsInDoubt(t *testing.T) {
	made := NewDoubtful(clocktesting.NewFakePassiveClock(time.Now()))
	made.add(owned("owner", "1"))
	if all, _ := made.allSeen("owner", nil); !all {
		t.Error("the client waits for creates that were answered")
	}
	made.found(owned("owner", "1"))
	if all, _ := made.allSeen("owner", nil); all {
		t.Error("the client does not know of a create whose answer was lost")
	}
	var none *Made
	none.add(&corev1.Pod{})
	none.found(&corev1.Pod{})
	if all, _ := none.allSeen("owner", nil); !all {
		t.Error("without a memory there is nothing to wait for")
	}
}
