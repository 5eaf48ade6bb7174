package action

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func leaving() *corev1.Pod {
	pod := owned("u1", "1")
	pod.UID, pod.Finalizers, pod.DeletionTimestamp = "p1", []string{"a/b"}, ptr.To(metav1.NewTime(time.Unix(1e9, 0)))
	return pod
}

func TestFinalizersAreAllThatIsWritten(t *testing.T) {
	var patch string
	e, _ := executor([]client.Object{leaving()}, interceptor.Funcs{Patch: func(ctx context.Context, api client.WithWatch, object client.Object, p client.Patch, options ...client.PatchOption) error {
		data, err := p.Data(object)
		if err != nil {
			return err
		}
		patch = string(data)
		return api.Patch(ctx, object, p, options...)
	}})
	seen := &corev1.Pod{}
	if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(leaving()), seen); err != nil {
		t.Fatal(err)
	}
	if err := e.do(t.Context(), Finalizers{Object: seen, Want: []string{"a/b", "c/d"}}); err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"finalizers":["a/b","c/d"],"resourceVersion":"` + seen.ResourceVersion + `"}}`; patch != want {
		t.Errorf("the patch is %s, want %s", patch, want)
	}
	if err := e.do(t.Context(), Finalizers{Object: seen, Want: nil}); !apierrors.IsConflict(err) {
		t.Errorf("decided on a state that is over, the write ends in %v, want a conflict", err)
	}
}

// TestWhatIsGoneIsNotPlannedAgain: a cache that still shows an object whose last finalizer was taken has nothing done for it.
func TestWhatIsGoneIsNotPlannedAgain(t *testing.T) {
	for name, lost := range map[string]bool{"the answer came": false, "the answer was lost": true} {
		t.Run(name, func(t *testing.T) {
			e, _ := executor([]client.Object{leaving()}, interceptor.Funcs{Patch: func(ctx context.Context, api client.WithWatch, object client.Object, p client.Patch, options ...client.PatchOption) error {
				err := api.Patch(ctx, object, p, options...)
				if err == nil && lost {
					return apierrors.NewTimeoutError("the answer was lost", 1)
				}
				return err
			}})
			e.Made = NewDoubtful(clocktesting.NewFakePassiveClock(time.Now()))
			seen := &corev1.Pod{}
			if err := e.Client.Get(t.Context(), client.ObjectKeyFromObject(leaving()), seen); err != nil {
				t.Fatal(err)
			}
			if err := e.do(t.Context(), Finalizers{Object: seen}); (err != nil) != lost {
				t.Fatalf("the write ended in %v", err)
			}
			if caughtUp(t, e, seen) {
				t.Error("a plan may be made from a cache that still shows it")
			}
		})
	}
}
