package action

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/leadership"
)

// caughtUp asks an executor whether the caches show everything of an owner.
func caughtUp(t *testing.T, e *Executor, owner client.Object, shown ...types.UID) bool {
	t.Helper()
	seen, err := e.AllSeen(t.Context(), owner, shown)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func ownerNamed(uid types.UID) *corev1.Pod {
	owner := &corev1.Pod{}
	owner.Namespace, owner.Name, owner.UID, owner.ResourceVersion = "ns", "owner", uid, "1"
	return owner
}

func TestMadeWaitsForTheCache(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	api := fake.NewClientBuilder().Build()
	e := &Executor{Client: api, Live: api, Made: NewMade(clock)}
	owner := ownerNamed("owner")
	for _, uid := range []types.UID{"p1", "p2"} {
		pod := owned("owner", "1")
		pod.Name, pod.UID = string(uid), uid
		e.Made.created(pod)
	}
	if caughtUp(t, e, owner, "p1") {
		t.Error("p2 is not in the cache yet")
	}
	if !caughtUp(t, e, ownerNamed("other")) {
		t.Error("another owner has nothing to wait for")
	}
	if !caughtUp(t, e, owner, "p2") {
		t.Error("p1 was seen before, p2 is there now")
	}

	late := owned("owner", "2")
	late.UID = "p3"
	if err := api.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	e.Made.created(late)
	clock.SetTime(clock.Now().Add(unseenLimit + time.Second))
	if caughtUp(t, e, owner) {
		t.Error("the Pod is there, however late the cache is")
	}
	if err := api.Delete(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if caughtUp(t, e, owner) {
		t.Error("the API server is not asked all the time")
	}
	clock.SetTime(clock.Now().Add(unseenLimit + time.Second))
	if !caughtUp(t, e, owner) {
		t.Error("what was deleted before the cache showed it must not block its owner for ever")
	}
}

func TestMadeIsForgottenWhereNobodyAsks(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	made := NewMade(clock)
	made.created(owned("owner", "1"))
	made.wrote(ownerNamed("owner"))
	clock.SetTime(clock.Now().Add(abandonedLimit + time.Second))
	made.created(owned("other", "1"))
	if len(made.unseen) != 1 || len(made.changes) != 0 {
		t.Errorf("%d owners and %d statuses are remembered, want only the last owner", len(made.unseen), len(made.changes))
	}
	made.ForgetAll()
	if len(made.unseen) != 0 {
		t.Error("a new term remembers nothing")
	}
}

func TestDoubtfulRemembersOnlyWhatIsInDoubt(t *testing.T) {
	made := NewDoubtful(clocktesting.NewFakePassiveClock(time.Now()))
	made.created(owned("owner", "1"))
	made.wrote(ownerNamed("owner"))
	if all, _ := made.allSeen("owner", nil); !all || made.changeOf("owner") != nil {
		t.Error("the client waits for writes that were answered")
	}
	made.await(owned("owner", "1"))
	if all, _ := made.allSeen("owner", nil); all {
		t.Error("the client does not know of a create whose answer was lost")
	}
	var none *Made
	none.created(&corev1.Pod{})
	none.await(&corev1.Pod{})
	none.awaitChange(&corev1.Pod{})
	none.ForgetAll()
	if all, _ := none.allSeen("owner", nil); !all {
		t.Error("without a memory there is nothing to wait for")
	}
}

// lossy carries out every write, and loses the answer to it; reads fail while blind is set.
func lossy(blind *bool) client.WithWatch {
	lost := apierrors.NewTimeoutError("the answer is lost", 1)
	return interceptor.NewClient(fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if object.GetUID() == "" {
				object.SetUID("made by the API server")
			}
			if err := api.Create(ctx, object, options...); err != nil {
				return err
			}
			return lost
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			if *blind {
				return apierrors.NewInternalError(lost)
			}
			return api.Get(ctx, key, into, options...)
		},
		SubResourcePatch: func(ctx context.Context, api client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := api.SubResource(sub).Patch(ctx, object, patch, options...); err != nil {
				return err
			}
			return lost
		},
	})
}

func TestALostAnswerIsFollowedByALook(t *testing.T) {
	blind := true
	api := lossy(&blind)
	e := &Executor{Client: api, Live: api, Gate: leadership.Alone{}, Made: NewDoubtful(clocktesting.NewFakePassiveClock(time.Now()))}
	owner := ownerNamed("owner")

	if err := e.do(t.Context(), Create{Object: owned("owner", "1")}); err == nil {
		t.Fatal("nobody knows whether the Pod was made, as the look failed too")
	}
	if _, err := e.AllSeen(t.Context(), owner, nil); err == nil {
		t.Error("no plan may be made before somebody has looked")
	}
	blind = false
	if caughtUp(t, e, owner) {
		t.Error("the Pod is there, and the cache does not show it")
	}
	live := owned("owner", "1")
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if !caughtUp(t, e, owner, live.UID) {
		t.Error("the cache shows the Pod")
	}
}

func TestALostAnswerToAStatusWriteIsFollowedByALook(t *testing.T) {
	blind := false
	api := lossy(&blind)
	e := &Executor{Client: api, Live: api, Gate: leadership.Alone{}, Made: NewDoubtful(clocktesting.NewFakePassiveClock(time.Now()))}
	base := ownerNamed("owner")
	base.ResourceVersion = ""
	if err := api.Create(t.Context(), base); err == nil {
		t.Fatal("the answer was to be lost")
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(base), base); err != nil {
		t.Fatal(err)
	}
	wanted := base.DeepCopy()
	wanted.Status.Phase = corev1.PodRunning
	if _, err := e.Run(t.Context(), base, Plan{Status: &StatusWrite{Object: wanted, Base: base}}); err == nil {
		t.Fatal("the answer was to be lost")
	}
	if caughtUp(t, e, base) {
		t.Error("the status was written, and the cache does not show it")
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(base), base); err != nil {
		t.Fatal(err)
	}
	if !caughtUp(t, e, base) {
		t.Error("the cache shows the status")
	}
}
