package raycluster

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// terms is a Gate that is in one term after another.
type terms struct{ number int64 }

func (g *terms) Current() (leadership.Term, bool) { return leadership.Term{Number: g.number}, true }

func (g *terms) Enter(ctx context.Context) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

// A process that leads again must not report what was refused in its earlier term; the simulation found that it did.
func TestAnotherTermBeginsWithoutTheRefusalsOfTheLast(t *testing.T) {
	scheme := clientgoscheme.Scheme
	if err := rayv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	refusing := true
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&rayv1.RayCluster{}).
		WithIndex(&corev1.Event{}, EventPodIndex, IndexEventPod).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, isPod := o.(*corev1.Pod); isPod && refusing {
				return errors.New("no room")
			}
			return api.Create(ctx, o, options...)
		}})
	for _, owned := range append(OwnedObjects(DefaultSettings()), &corev1.Pod{}) {
		builder = builder.WithIndex(owned, OwnerUIDIndex, IndexOwnerUID)
	}
	cluster := &rayv1.RayCluster{}
	cluster.Namespace, cluster.Name, cluster.UID = "ns", "demo", "uid"
	cluster.Spec.HeadGroupSpec.Template.Spec.Containers = []corev1.Container{{Name: "ray-head", Image: "img"}}
	api := builder.WithObjects(cluster).Build()
	gate := &terms{number: 3}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	r := &Reconciler{Reader: api, Gate: gate, Holds: action.NewHolds(), Streaks: NewStreaks(), Specs: NewSpecs(DefaultSettings()), Losses: NewLosses(), Census: nobody{}, Settings: DefaultSettings(), Clock: clock,
		Executor: &action.Executor{Client: api, Live: api, Gate: gate, Events: events.NewFakeRecorder(100), Made: action.NewDoubtful(clock), Parallel: 1}}
	look := func() {
		t.Helper()
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "demo"}}
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if len(r.Holds.Of("uid")) == 0 {
		t.Fatal("the refusal is remembered")
	}
	refusing, gate.number = false, 5
	look()
	if held := r.Holds.Of("uid"); len(held) != 0 {
		t.Errorf("the new term still knows of %v", held)
	}
	pods := &corev1.PodList{}
	if err := api.List(t.Context(), pods); err != nil || len(pods.Items) != 1 {
		t.Errorf("%d Pods (%v); the head is made at once, and not when the refusal of the last term is over", len(pods.Items), err)
	}
}

// nobody answers no question.
type nobody struct{}

func (nobody) Track(poll.Target)                             {}
func (nobody) Forget(poll.Key)                               {}
func (nobody) Want(poll.Key, poll.Want)                      {}
func (nobody) Observation(poll.Key) (poll.Observation, bool) { return poll.Observation{}, false }
