package leadership

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

// leading starts a keeper behind the fence of s. The Lease that the fence looks at is always the keeper's.
func leading(t *testing.T, s *server, change ...func(*Options)) (*Keeper, *Metrics, *atomic.Int64) {
	t.Helper()
	o := options(t, fake.NewClientset(), "a")
	o.Fence, o.Metrics = s.fence(), NewMetrics()
	terms := &atomic.Int64{}
	o.OnTerm = func(Term) { terms.Add(1) }
	for _, c := range change {
		c(&o)
	}
	k, _, _ := start(t, o)
	return k, o.Metrics, terms
}

func TestAFencedWriteEndsTheTerm(t *testing.T) {
	s := newServer(t, leaseOf("a"))
	recorder := events.NewFakeRecorder(100)
	k, measured, terms := leading(t, s, func(o *Options) { o.Events = recorder })
	eventually(t, "the first term", func() bool { return terms.Load() == 1 })
	told(t, recorder, "Normal TermStarted")
	write, done, err := k.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	other := s.holder(t)
	other.Spec.Term, other.Spec.PodUID = other.Spec.Term+1, "uid-b"
	if err := s.Update(t.Context(), &other); err != nil {
		t.Fatal(err)
	}

	k.Fenced()
	eventually(t, "the write under way to be cancelled", func() bool { return write.Err() != nil })
	eventually(t, "a new term", func() bool { term, ok := k.Current(); return ok && term.Number == other.Spec.Term+1 })
	if got := s.holder(t).Spec; got.PodUID != "uid-a" {
		t.Errorf("holder %+v", got)
	}
	if got := testutil.ToFloat64(measured.refused.WithLabelValues(byFence)); got != 1 {
		t.Errorf("%v refusals were counted", got)
	}
	told(t, recorder, "Warning Fenced")
	told(t, recorder, "Normal TermStarted")
}

// told waits for an event that begins like this.
func told(t *testing.T, recorder *events.FakeRecorder, want string) {
	t.Helper()
	select {
	case got := <-recorder.Events:
		if !strings.HasPrefix(got, want) {
			t.Errorf("event %q, want %s", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("event %s never came", want)
	}
}

func TestARefusalByAServerThatLagsIsNotTheEnd(t *testing.T) {
	s := newServer(t, leaseOf("a"))
	k, _, terms := leading(t, s)
	eventually(t, "the first term", func() bool { return terms.Load() == 1 })
	term, _ := k.Current()
	k.Fenced()
	k.Fenced()
	eventually(t, "everything to be planned again", func() bool { return terms.Load() == 2 })
	if now, ok := k.Current(); !ok || now.Number != term.Number {
		t.Errorf("term %d became %d (%t)", term.Number, now.Number, ok)
	}
}

func TestATakeOverThatFailsIsTriedAgain(t *testing.T) {
	s := newServer(t, leaseOf("a"))
	var tries atomic.Int64
	k, _, terms := leading(t, s, func(o *Options) {
		o.CatchUp = func(context.Context) error {
			if tries.Add(1) < 3 {
				return errors.New("not yet")
			}
			return nil
		}
	})
	eventually(t, "the term", func() bool { return valid(k) && terms.Load() == 1 })
	if tries.Load() != 3 {
		t.Errorf("tried %d times", tries.Load())
	}
}

func TestALeaseMadeAnewBeginsANewTerm(t *testing.T) {
	client := fake.NewClientset()
	var terms atomic.Int64
	o := options(t, client, "a")
	o.OnTerm = func(Term) { terms.Add(1) }
	k, _, _ := start(t, o)
	eventually(t, "the first term", func() bool { return terms.Load() == 1 })
	if err := client.CoordinationV1().Leases("ns").Delete(t.Context(), "lease", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next term", func() bool { return terms.Load() == 2 && valid(k) })
}

func TestAPlanDoesNotOutliveItsTerm(t *testing.T) {
	s := newServer(t, leaseOf("a"))
	k, measured, terms := leading(t, s)
	if _, ok := Begin(t.Context(), k); ok {
		t.Error("a plan began without a term")
	}
	eventually(t, "the first term", func() bool { return terms.Load() == 1 })
	plan, ok := Begin(t.Context(), k)
	if !ok {
		t.Fatal("no plan can begin")
	}
	_, done, err := k.Enter(plan)
	if err != nil {
		t.Fatal(err)
	}
	done()
	k.resign()
	eventually(t, "the next term", func() bool { return terms.Load() == 2 && valid(k) })
	if _, _, err := k.Enter(plan); !errors.Is(err, ErrNoTerm) {
		t.Errorf("a plan of an earlier term was let through: %v", err)
	}
	if got := testutil.ToFloat64(measured.refused.WithLabelValues(byTerm)); got != 1 {
		t.Errorf("%v refusals were counted", got)
	}
	if _, ok := Begin(t.Context(), Alone{}); !ok {
		t.Error("without an election there is always a term")
	}
}

func TestMetricsTellTheTerm(t *testing.T) {
	registry, m := prometheus.NewRegistry(), NewMetrics()
	if err := m.Register(registry); err != nil {
		t.Fatal(err)
	}
	m.began(Standing{Term: 7, Reason: ReasonPolicyMissing}, 0.5)
	for what, got := range map[string]bool{
		"term":      testutil.ToFloat64(m.term) == 7,
		"take-over": testutil.ToFloat64(m.takeOver) == 0.5,
		"unfenced":  testutil.ToFloat64(m.unfenced.WithLabelValues(ReasonPolicyMissing)) == 1,
	} {
		if !got {
			t.Errorf("%s is wrong", what)
		}
	}
	m.ended()
	if got := testutil.ToFloat64(m.term); got != 0 {
		t.Errorf("a replica without a term shows term %v", got)
	}
	if got := testutil.CollectAndCount(m.unfenced); got != 0 {
		t.Errorf("a replica without a term shows %d reasons", got)
	}
	if err := m.Register(registry); err == nil {
		t.Error("registered twice")
	}
}

// TestAnotherReplicasLeaseIsNotReleased is about a replica that was cut off and comes back just when it gives up: it
// believes to have the lease still.
func TestAnotherReplicasLeaseIsNotReleased(t *testing.T) {
	client := fake.NewClientset(leaseOf("b"))
	k, err := New(options(t, client, "a"))
	if err != nil {
		t.Fatal(err)
	}
	lock := &renewalLock{Interface: k.lock(), renewed: k.renewed}
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	release := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
	if err := lock.Update(t.Context(), release); !errors.Is(err, errNotOurs) {
		t.Errorf("release: %v", err)
	}
	if h := holder(t, client); h != "b" {
		t.Errorf("the lease is held by %q", h)
	}
	lease := leaseOf("a")
	lease.Spec.LeaseTransitions = ptr.To[int32](1)
	if _, err := client.CoordinationV1().Leases("ns").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lock.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lock.Update(t.Context(), release); err != nil {
		t.Errorf("release of our own: %v", err)
	}
}

// TestASlowAPIServerDoesNotCostTheLease answers each renewal after 8 seconds.
func TestASlowAPIServerDoesNotCostTheLease(t *testing.T) {
	t.Parallel()
	const slow = 8 * time.Second
	client := fake.NewClientset()
	var renewed, began atomic.Int64
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if renewed.Load() < 2 {
			time.Sleep(slow)
		}
		renewed.Add(1)
		return false, nil, nil
	})
	o := options(t, client, "a")
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = 15*time.Second, 10*time.Second, 2*time.Second
	o.Metrics = NewMetrics()
	o.OnTerm = func(Term) { began.Add(1) }
	start(t, o)
	eventually(t, "the term", func() bool { return began.Load() > 0 })
	eventually(t, "two renewals", func() bool { return renewed.Load() >= 2 })
	if got := testutil.ToFloat64(o.Metrics.term); got != 1 {
		t.Errorf("term %v after two slow renewals, want the first one still", got)
	}
}
