package leadership

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	// drainLimit bounds how long a stopping leader waits for its last writes before it lets the lease go.
	drainLimit = 5 * time.Second
	// checkPeriod is how often a leader looks whether it is still the holder, or whether the fence can be had by now.
	checkPeriod = time.Minute
)

// Options of a Keeper. Every field is required unless its comment says otherwise.
type Options struct {
	// Leases is a client of its own, so that renewing is never queued behind the operator's other requests.
	Leases coordinationv1client.LeasesGetter
	// Namespace and Name say which Lease is held.
	Namespace, Name string
	// Identity names this process. It must be unique among the replicas.
	Identity string
	// LeaseDuration is how long a standby waits after the last renewal that it saw before it takes over.
	LeaseDuration time.Duration
	// RenewDeadline is how long after the last successful renewal this process may still write. It must be shorter
	// than LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two tries to acquire or renew.
	RetryPeriod time.Duration
	// Fence moves to this replica after the lease is won and before the term becomes valid. Optional.
	Fence *Fence
	// CatchUp runs after the fence has moved; the term becomes valid when it returns nil. It waits until the caches
	// show what earlier leaders wrote, see Caches. Optional.
	CatchUp func(ctx context.Context) error
	// OnTerm is called each time a term has become valid, or valid again after its deadline had passed, so that
	// everything gets planned once. Optional.
	OnTerm func(term Term)
	// Events receives what an administrator must notice, as events about the Lease. Optional.
	Events events.EventRecorder
	// Metrics of this replica. Optional.
	Metrics *Metrics
	// Log receives one line for each term that starts or ends.
	Log logr.Logger
}

// Keeper stands for election again and again and is the Gate of the terms that it wins.
type Keeper struct {
	options Options

	mu       sync.Mutex
	term     Term
	handOver int64 // what the Lease counts
	valid    bool
	ended    context.Context // done when the present term ends
	end      context.CancelFunc
	stand    context.CancelFunc // ends the present standing for election
	failed   bool               // the last term did not start
	checking bool
	underWay sync.WaitGroup
}

var _ Gate = (*Keeper)(nil)

// New returns a Keeper, or an error that names the option that cannot work.
func New(options Options) (*Keeper, error) {
	switch {
	case options.Leases == nil:
		return nil, fmt.Errorf("leader election: a client for Leases is needed")
	case options.Namespace == "":
		return nil, fmt.Errorf("leader election: the namespace of the Lease is not known; set --leader-election-namespace")
	case options.Identity == "":
		return nil, fmt.Errorf("leader election: an identity is needed")
	case options.RenewDeadline >= options.LeaseDuration:
		return nil, fmt.Errorf("leader election: the renew deadline (%s) must be shorter than the lease duration (%s)",
			options.RenewDeadline, options.LeaseDuration)
	}
	if options.Metrics == nil {
		options.Metrics = NewMetrics()
	}
	return &Keeper{options: options, end: func() {}, stand: func() {}}, nil
}

// Current returns the term if it is valid now.
func (k *Keeper) Current() (Term, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.valid || !time.Now().Before(k.term.Deadline) {
		return Term{}, false
	}
	return k.term, true
}

// Enter admits one write, see Gate.
func (k *Keeper) Enter(ctx context.Context) (context.Context, func(), error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.valid || !time.Now().Before(k.term.Deadline) || !begunIn(ctx, k.term) {
		k.options.Metrics.refusedBy(byTerm)
		return nil, nil, ErrNoTerm
	}
	k.underWay.Add(1)
	write, cancel := context.WithDeadline(ctx, k.term.Deadline)
	stop := context.AfterFunc(k.ended, cancel)
	done := func() {
		stop()
		cancel()
		k.underWay.Done()
	}
	return write, sync.OnceFunc(done), nil
}

// NeedLeaderElection says that the Keeper runs on every replica: it is the election.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start stands for election until ctx ends. When ctx ends while a term is held, no new write is admitted, those
// under way are waited for (at most five seconds), and only then is the lease released for the next leader.
func (k *Keeper) Start(ctx context.Context) error {
	election, stopElection := context.WithCancel(context.WithoutCancel(ctx))
	defer stopElection()
	go func() {
		select {
		case <-ctx.Done():
			k.refuse()
			k.drain()
			stopElection()
		case <-election.Done():
		}
	}()
	for election.Err() == nil {
		if err := k.standOnce(ctx, election); err != nil {
			return err
		}
	}
	return nil
}

// standOnce waits for the lease, holds it for one term and returns when the term is over.
func (k *Keeper) standOnce(ctx, election context.Context) error {
	standing, stop := context.WithCancel(election)
	defer stop()
	k.mu.Lock()
	k.stand, k.failed = stop, false
	k.mu.Unlock()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            &renewalLock{Interface: k.lock(), renewed: k.renewed},
		LeaseDuration:   k.options.LeaseDuration,
		RenewDeadline:   k.options.RenewDeadline,
		RetryPeriod:     k.options.RetryPeriod,
		ReleaseOnCancel: true,
		Name:            k.options.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) { k.open(ctx, held) },
			OnStoppedLeading: k.close,
		},
	})
	if err != nil {
		return fmt.Errorf("set up the election for Lease %s/%s: %w", k.options.Namespace, k.options.Name, err)
	}
	elector.Run(standing)
	k.mu.Lock()
	failed := k.failed
	k.mu.Unlock()
	if failed {
		// Another replica may do better; without it, the same would be tried at once.
		select {
		case <-election.Done():
		case <-time.After(wait.Jitter(k.options.RetryPeriod, 1)):
		}
	}
	return nil
}

func (k *Keeper) lock() resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: k.options.Namespace, Name: k.options.Name},
		Client:     k.options.Leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: k.options.Identity},
	}
}

// open takes over: it moves the fence, lets the caches catch up, and then makes the term valid.
func (k *Keeper) open(process, held context.Context) {
	won := time.Now()
	standing, err := k.takeOver(held)
	if err != nil {
		if held.Err() == nil {
			k.options.Log.Error(err, "The term does not start")
			k.tell(held, corev1.EventTypeWarning, "TermNotStarted", "The take-over failed: "+err.Error())
			k.mu.Lock()
			k.failed = true
			k.stand()
			k.mu.Unlock()
		}
		return
	}
	k.mu.Lock()
	if held.Err() != nil || process.Err() != nil {
		k.mu.Unlock()
		return
	}
	k.valid = true
	k.term.Number = standing.Term
	k.term.serial++
	k.ended, k.end = context.WithCancel(context.Background())
	term := k.term
	k.mu.Unlock()
	took := time.Since(won)
	k.options.Metrics.began(standing, took.Seconds())
	k.options.Log.Info("The term starts", "term", term.Number, "identity", k.options.Identity, "took", took,
		"fenced", standing.Fenced, "reason", standing.Reason)
	if k.options.OnTerm != nil {
		k.options.OnTerm(term)
	}
	k.announce(held, standing, took)
	k.watch(held, standing)
}

func (k *Keeper) takeOver(held context.Context) (Standing, error) {
	k.mu.Lock()
	handOver := k.handOver
	k.mu.Unlock()
	standing := Standing{Term: handOver + 1, Reason: ReasonOff, Message: "fencing is off"}
	if k.options.Fence != nil {
		var err error
		if standing, err = k.options.Fence.Move(held, handOver); err != nil {
			return Standing{}, err
		}
	}
	if k.options.CatchUp != nil {
		if err := k.options.CatchUp(held); err != nil {
			return Standing{}, fmt.Errorf("let the caches catch up: %w", err)
		}
	}
	return standing, nil
}

// close ends the term and cancels the writes that are under way.
func (k *Keeper) close() {
	k.refuse()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.end()
}

// refuse ends the term for new writes; those under way go on.
func (k *Keeper) refuse() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.valid {
		k.options.Log.Info("The term ends", "term", k.term.Number, "identity", k.options.Identity)
		k.options.Metrics.ended()
	}
	k.valid = false
}

// drain waits for the writes under way, so that the lease is released only after the last one has returned.
func (k *Keeper) drain() {
	returned := make(chan struct{})
	go func() { k.underWay.Wait(); close(returned) }()
	select {
	case <-returned:
	case <-time.After(drainLimit):
		k.close()
		k.options.Log.Info("Writes are still under way after the drain limit; they are cancelled", "limit", drainLimit)
	}
}

// renewed moves the deadline: a renewal counts from the moment its request was sent, never from its answer. When the
// deadline had passed meanwhile, writes were refused although nobody else took the lease; what was refused is then
// planned again as at the start of a term. A Lease that had to be made anew during a term ends it: someone has deleted it,
// and nobody knows who held another one meanwhile.
func (k *Keeper) renewed(sent time.Time, transitions int, made bool) {
	k.mu.Lock()
	if k.valid && made {
		defer k.resign()
	}
	lapsed := k.valid && !time.Now().Before(k.term.Deadline)
	k.handOver = int64(transitions)
	k.term.Deadline = sent.Add(k.options.RenewDeadline)
	term := k.term
	k.mu.Unlock()
	if !lapsed {
		return
	}
	k.options.Log.Info("The term goes on: the lease was renewed after the deadline, and nobody else took it", "term", term.Number)
	if k.options.OnTerm != nil {
		go k.options.OnTerm(term)
	}
}
