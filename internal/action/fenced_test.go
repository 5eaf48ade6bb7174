package action

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/heliostat-io/heliostat/internal/leadership"
)

func TestARefusalByTheFenceIsNoFailure(t *testing.T) {
	fenced := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("heliostat fence: only Pod b may write"))
	pod := owned("u1", "1")
	faults := interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return fenced },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return fenced },
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return fenced
		},
	}
	failed := Warning("FailedToDoIt", "Do", "it did not work")
	for name, plan := range map[string]Plan{
		"a create": {Actions: []Action{Create{Object: pod, Failed: failed}}},
		"a delete": {Actions: []Action{Delete{Object: pod, Failed: failed}}},
		"a status": {Status: &StatusWrite{Object: pod, Base: pod}},
	} {
		t.Run(name, func(t *testing.T) {
			e, recorder := executor([]client.Object{pod}, faults)
			told := 0
			e.Fenced = func() { told++ }
			result, err := e.Run(t.Context(), pod, plan)
			if !errors.Is(errors.Join(err, result.Err()), leadership.ErrNoTerm) {
				t.Errorf("got %v, %v; want the end of the term", err, result.Err())
			}
			if told != 1 {
				t.Errorf("leadership was told %d times", told)
			}
			if events := drain(recorder); len(events) > 0 {
				t.Errorf("users were told: %v", events)
			}
			if wait := NewHolds().Record("u1", plan, result, time.Now()); wait != 0 {
				t.Errorf("it is tried again after %s, without a term", wait)
			}
		})
	}
}

func remove(c client.Client, stored *corev1.Pod) error {
	return c.Delete(context.Background(), stored, client.Preconditions{UID: &stored.UID, ResourceVersion: &stored.ResourceVersion})
}

func TestDeleteMeansWhatWasSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		// change happens after the decision.
		change  func(c client.Client, stored *corev1.Pod) error
		wantErr error
		left    bool
	}{
		"given it is as it was, it goes": {change: func(client.Client, *corev1.Pod) error { return nil }},
		"given it has changed, it stays": {
			change: func(c client.Client, stored *corev1.Pod) error {
				stored.Labels["a"] = "b"
				return c.Update(context.Background(), stored)
			},
			wantErr: errChanged, left: true,
		},
		"given it is gone, that is success": {change: func(c client.Client, stored *corev1.Pod) error { return remove(c, stored) }},
		"given another life of it, that one stays": {
			change: func(c client.Client, stored *corev1.Pod) error {
				next := owned("u1", "2")
				next.UID = "second life"
				return errors.Join(remove(c, stored), c.Create(context.Background(), next))
			},
			left: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := owned("u1", "1")
			first.UID = "first life"
			e, recorder := executor([]client.Object{first}, interceptor.Funcs{Delete: checked})
			seen, stored := &corev1.Pod{}, &corev1.Pod{}
			key := types.NamespacedName{Namespace: "ns", Name: "p"}
			if err := errors.Join(e.Client.Get(t.Context(), key, seen), e.Client.Get(t.Context(), key, stored)); err != nil {
				t.Fatal(err)
			}
			if err := tc.change(e.Client, stored); err != nil {
				t.Fatal(err)
			}
			plan := Plan{Actions: []Action{Delete{Object: seen, Failed: Warning("FailedToDelete", "Delete", "no")}}}
			result, err := e.Run(t.Context(), seen, plan)
			if err != nil || !errors.Is(result.Err(), tc.wantErr) {
				t.Errorf("got %v, %v; want %v", err, result.Err(), tc.wantErr)
			}
			if left := e.Client.Get(t.Context(), key, &corev1.Pod{}) == nil; left != tc.left {
				t.Errorf("it is there: %t, want %t", left, tc.left)
			}
			if events := drain(recorder); len(events) > 0 {
				t.Errorf("users were told: %v", events)
			}
			if wait := NewHolds().Record("u1", plan, result, time.Now()); (wait > 0) != (tc.wantErr != nil) {
				t.Errorf("it is planned again after %s", wait)
			}
		})
	}
}

// checked deletes as the API server does: it compares both preconditions, and the UID first.
func checked(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	wanted := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
	if wanted == nil || wanted.UID == nil || wanted.ResourceVersion == nil {
		return errors.New("the delete does not say what it means")
	}
	stored := object.DeepCopyObject().(client.Object)
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), stored); err != nil {
		return err
	}
	if stored.GetUID() != *wanted.UID || stored.GetResourceVersion() != *wanted.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, object.GetName(), errors.New("precondition failed"))
	}
	return c.Delete(ctx, object)
}
