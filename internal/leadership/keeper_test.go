package leadership

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// patience bounds what a busy machine may delay.
const patience = 30 * time.Second

func options(t *testing.T, client *fake.Clientset, identity string) Options {
	return Options{Leases: client.CoordinationV1(), Namespace: "ns", Name: "lease", Identity: identity,
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond, Log: testr.New(t)}
}

// start runs a keeper until the test ends or stop is called; ended is closed when Start has returned.
func start(t *testing.T, o Options) (k *Keeper, stop context.CancelFunc, ended chan struct{}) {
	t.Helper()
	k, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := k.Start(ctx); err != nil {
			t.Errorf("Start: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return k, stop, ended
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

func valid(k *Keeper) bool { _, ok := k.Current(); return ok }

func holder(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("ns").Get(context.Background(), "lease", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func TestNoWriteWithoutATerm(t *testing.T) {
	k, err := New(options(t, fake.NewClientset(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Enter(context.Background()); !errors.Is(err, ErrNoTerm) {
		t.Errorf("a replica that never won was let through: %v", err)
	}
}

func TestAWriteEndsWithTheTermsDeadline(t *testing.T) {
	client := fake.NewClientset()
	k, _, _ := start(t, options(t, client, "a"))
	eventually(t, "the term", func() bool { return valid(k) })
	term, _ := k.Current()
	write, done, err := k.Enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	deadline, ok := write.Deadline()
	if !ok || deadline.Before(term.Deadline) || time.Until(deadline) > 2*time.Second {
		t.Errorf("the write may take until %v; the term ends at %v at first", deadline, term.Deadline)
	}
}

// unreachable makes every renewal fail while the returned switch is on.
func unreachable(client *fake.Clientset) *atomic.Bool {
	gone := &atomic.Bool{}
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return gone.Load(), nil, errors.New("the API server is gone")
	})
	return gone
}

// A lease that someone else takes is tried on a real API server, in test/integration.
func TestLosingTheLeaseCancelsWritesAndTheReplicaStandsAgain(t *testing.T) {
	client := fake.NewClientset()
	gone := unreachable(client)
	o := options(t, client, "a")
	var terms atomic.Int64
	o.OnTerm = func(Term) { terms.Add(1) }
	k, _, ended := start(t, o)
	eventually(t, "the first term", func() bool { return terms.Load() == 1 })
	write, done, err := k.Enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer done()

	gone.Store(true)
	eventually(t, "the write under way to be cancelled", func() bool { return write.Err() != nil })
	eventually(t, "the term to be over", func() bool { return !valid(k) })
	gone.Store(false)
	eventually(t, "everything to be planned again", func() bool { return terms.Load() == 2 && valid(k) })
	select {
	case <-ended:
		t.Error("the process ended with its term")
	default:
	}
}

func TestAnAPIServerThatDoesNotAnswerEndsTheTermInTime(t *testing.T) {
	client := fake.NewClientset()
	gone := unreachable(client)
	k, _, _ := start(t, options(t, client, "a"))
	eventually(t, "the term", func() bool { return valid(k) })
	gone.Store(true)
	last, _ := k.Current()
	eventually(t, "the term to end by its own clock", func() bool { return !valid(k) })
	if time.Now().Before(last.Deadline) {
		t.Error("the term ended before its deadline, although nobody took the lease")
	}
}

func TestTheLeaseIsReleasedOnlyAfterTheLastWrite(t *testing.T) {
	client := fake.NewClientset()
	k, stop, ended := start(t, options(t, client, "a"))
	eventually(t, "the term", func() bool { return valid(k) })
	write, done, err := k.Enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	stop()
	eventually(t, "new writes to be refused", func() bool { return !valid(k) })
	if write.Err() != nil {
		t.Error("the write under way was cancelled although there was time for it")
	}
	if h := holder(t, client); h != "a" {
		t.Errorf("the lease was given to %q while a write was under way", h)
	}
	done()
	<-ended
	if h := holder(t, client); h != "" {
		t.Errorf("the lease is still held by %q after the process has ended", h)
	}
}

func TestTheCachesCatchUpBeforeTheTerm(t *testing.T) {
	client := fake.NewClientset()
	o := options(t, client, "a")
	pass := make(chan error)
	o.CatchUp = func(context.Context) error { return <-pass }
	began := make(chan Term, 1)
	o.OnTerm = func(term Term) { began <- term }
	k, _, _ := start(t, o)
	eventually(t, "the lease", func() bool { return holder(t, client) == "a" })
	if valid(k) {
		t.Error("the term is valid before the caches have caught up")
	}
	pass <- nil
	select {
	case <-began:
	case <-time.After(patience):
		t.Fatal("the term never began")
	}
	eventually(t, "the term", func() bool { return valid(k) })
}

func TestOptionsThatCannotWorkAreNamed(t *testing.T) {
	o := options(t, fake.NewClientset(), "a")
	o.RenewDeadline = o.LeaseDuration
	if _, err := New(o); err == nil {
		t.Error("a renew deadline as long as the lease lets two leaders write")
	}
	o = options(t, fake.NewClientset(), "a")
	o.Namespace = ""
	if _, err := New(o); err == nil {
		t.Error("without a namespace there is no Lease")
	}
}
