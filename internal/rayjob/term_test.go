package rayjob

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// asked is an Asker that was last asked, and answered, at one moment.
type asked time.Time

func (asked) Track(poll.Target) {}
func (asked) Forget(poll.Key)   {}

func (a asked) Observation(poll.Key) (poll.Observation, bool) {
	return poll.Observation{Asked: time.Time(a), Answered: time.Time(a), JobFound: poll.Missing}, true
}

// An answer from before the term may say that Ray does not know a job which another leader has meanwhile submitted and
// recorded as running; the simulation saw the job counted as lost.
func TestAnswersFromBeforeTheTermAreNotLookedAt(t *testing.T) {
	began := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		asked time.Time
		want  bool
	}{
		"before the term":   {began.Add(-time.Second), false},
		"within the term":   {began.Add(time.Second), true},
		"when it was begun": {began, true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{rayv1.AddToScheme, corev1.AddToScheme, batchv1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"}}
			clock := clocktesting.NewFakePassiveClock(began)
			r := &Reconciler{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(job).Build(), Poller: asked(c.asked), Holds: action.NewHolds(), Memory: NewMemory(),
				Executor: &action.Executor{Ray: action.NewRay(action.RayOptions{Gate: leadership.Alone{}, Clock: clock})}}
			snapshot, err := r.observe(context.Background(), types.NamespacedName{Namespace: "ns", Name: "train"}, began)
			if err != nil {
				t.Fatal(err)
			}
			if got := snapshot.Answer != nil; got != c.want {
				t.Errorf("the answer is looked at: %t, want %t", got, c.want)
			}
		})
	}
}
