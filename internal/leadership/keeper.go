package leadership

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// drainLimit bounds how long a stopping leader waits for its last writes before it lets the lease go.
const drainLimit = 5 * time.Second

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
	// Barrier runs after the lease is won and before the term becomes valid; the term starts only when it returns
	// nil. It is the place of the server-side fence (design.md section 3). Optional.
	Barrier func(ctx context.Context, term Term) error
	// OnTerm is called each time a term has become valid, or valid again after its deadline had passed, so that
	// everything gets planned once. Optional.
	OnTerm func(term Term)
	// Log receives one line for each term that starts or ends.
	Log logr.Logger
}

// Keeper stands for election again and again and is the Gate of the terms that it wins.
type Keeper struct {
	options Options

	mu       sync.Mutex
	term     Term
	valid    bool
	ended    context.Context // done when the present term ends
	end      context.CancelFunc
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
	return &Keeper{options: options}, nil
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
	if !k.valid || !time.Now().Before(k.term.Deadline) || !MayGoOn(ctx, k.term) {
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
	elector.Run(election)
	return nil
}

func (k *Keeper) lock() resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: k.options.Namespace, Name: k.options.Name},
		Client:     k.options.Leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: k.options.Identity},
	}
}

// open runs the barrier and then makes the term valid.
func (k *Keeper) open(process, held context.Context) {
	k.mu.Lock()
	term := k.term
	k.mu.Unlock()
	if k.options.Barrier != nil {
		if err := k.options.Barrier(held, term); err != nil {
			k.options.Log.Error(err, "The term does not start: its barrier was not passed", "term", term.Number)
			return
		}
	}
	k.mu.Lock()
	if held.Err() != nil || process.Err() != nil {
		k.mu.Unlock()
		return
	}
	k.valid = true
	k.ended, k.end = context.WithCancel(context.Background())
	term = k.term
	k.mu.Unlock()
	k.options.Log.Info("The term starts", "term", term.Number, "identity", k.options.Identity)
	if k.options.OnTerm != nil {
		k.options.OnTerm(term)
	}
}

// close ends the term and cancels the writes that are under way.
func (k *Keeper) close() {
	k.refuse()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end != nil {
		k.end()
	}
}

// refuse ends the term for new writes; those under way go on.
func (k *Keeper) refuse() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.valid {
		k.options.Log.Info("The term ends", "term", k.term.Number, "identity", k.options.Identity)
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
// planned again as at the start of a term.
func (k *Keeper) renewed(sent time.Time, transitions int) {
	k.mu.Lock()
	lapsed := k.valid && !time.Now().Before(k.term.Deadline)
	k.term = Term{Number: int64(transitions), Deadline: sent.Add(k.options.RenewDeadline)}
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
