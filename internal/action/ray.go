package action

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Outcome is what became of the last request of a kind for an object.
type Outcome struct {
	// BaseURL is the dashboard that was sent to.
	BaseURL string
	// ID is what was sent: the submission id of a job, or the hash of a Serve config.
	ID string
	// At is when the answer came.
	At time.Time
	// Err is nil when Ray did what was asked, or had done it already.
	Err error
}

// RayOptions of the workers that send to Ray.
type RayOptions struct {
	Gate leadership.Gate
	HTTP *http.Client
	// Tokens finds the token in a Secret. It is needed where clusters ask for one.
	Tokens func(secret types.NamespacedName) dashboard.TokenSource
	Clock  clock.PassiveClock
	Log    logr.Logger
	// Settled is called after each request with the kind and the name of the object that it was for, so that this is
	// looked at again at once.
	Settled func(kind string, name types.NamespacedName)
	// Workers is how many requests about jobs may be under way at once, and how many with Serve configs beside them.
	Workers int
}

// Ray sends submissions, stops and Serve configs to Ray dashboards in the background, so that no reconcile waits for one.
// Two requests for the same object are never under way together.
type Ray struct {
	options RayOptions
	// jobs and serve are what waits for a worker. They are apart because the first Serve config of a cluster can take Ray a
	// minute, for which no submission should wait.
	jobs, serve chan rayCall

	mu       sync.Mutex
	pending  map[types.UID]bool
	outcomes map[types.UID]map[string]Outcome // by object and kind of request
}

// rayCall is one request for the object of that kind.
type rayCall struct {
	object client.Object
	kind   string
	to     string
	id     string
	send   func(ctx context.Context) error
	what   string
}

// errBusy says that all workers and the queue before them are taken. The planner asks again later.
var errBusy = errors.New("too many requests to Ray are waiting")

// The kinds of requests to Ray.
const (
	kindSubmit   = "submit"
	kindStop     = "stop"
	kindPutServe = "put-serve"
)

// The kinds of objects that requests are for.
const (
	rayJob     = "RayJob"
	rayCluster = "RayCluster"
)

// queueLength is how many requests may wait for a worker, in each queue.
const queueLength = 1024

// NewRay returns the workers; they run from Start on.
func NewRay(options RayOptions) *Ray {
	return &Ray{
		options:  options,
		jobs:     make(chan rayCall, queueLength),
		serve:    make(chan rayCall, queueLength),
		pending:  map[types.UID]bool{},
		outcomes: map[types.UID]map[string]Outcome{},
	}
}

// NeedLeaderElection says that the workers run on every replica; the gate admits each request.
func (r *Ray) NeedLeaderElection() bool { return false }

// Start runs the workers until ctx ends.
func (r *Ray) Start(ctx context.Context) error {
	var wg sync.WaitGroup
	for range max(r.options.Workers, 1) {
		wg.Go(func() { r.drain(ctx, r.jobs) })
		wg.Go(func() { r.drain(ctx, r.serve) })
	}
	wg.Wait()
	return nil
}

// drain carries out what comes in, until ctx ends.
func (r *Ray) drain(ctx context.Context, queue <-chan rayCall) {
	for {
		select {
		case <-ctx.Done():
			return
		case call := <-queue:
			r.carryOut(ctx, call)
		}
	}
}

// Outcomes returns what became of the last submission and of the last stop for a job, nil when none has ended yet, and
// whether a request for the job waits or is under way.
func (r *Ray) Outcomes(job types.UID) (submitted, stopped *Outcome, sending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last(job, kindSubmit), r.last(job, kindStop), r.pending[job]
}

// ServeOutcome returns what became of the last Serve config that was sent to a RayCluster, nil when none has ended yet, and
// whether one waits or is under way. The ID of the outcome is the Hash of the PutServe.
func (r *Ray) ServeOutcome(cluster types.UID) (last *Outcome, sending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last(cluster, kindPutServe), r.pending[cluster]
}

// last returns the outcome of the last request of the kind, or nil. The lock is held.
func (r *Ray) last(object types.UID, what string) *Outcome {
	outcome, ok := r.outcomes[object][what]
	if !ok {
		return nil
	}
	return &outcome
}

// Forget drops what is known about a job or a cluster that is gone.
func (r *Ray) Forget(object types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outcomes, object)
}

func (r *Ray) submit(a Submit) error {
	call := rayCall{object: a.Job, kind: rayJob, to: a.BaseURL, id: a.Request.SubmissionID, what: kindSubmit}
	call.send = func(ctx context.Context) error {
		head := r.client(a.Job, a.BaseURL, a.Secret)
		if err := inSession(ctx, head, a.Session); err != nil {
			return err
		}
		_, err := head.SubmitJob(ctx, a.Request)
		if errors.Is(err, dashboard.ErrAlreadyExists) {
			return nil
		}
		return err
	}
	return r.enqueue(r.jobs, call)
}

// inSession returns nil if the head is in the session, or if that does not matter. Between the plan and the request the
// head may have been replaced, and the new one knows nothing of what the old one was given.
func inSession(ctx context.Context, head *dashboard.Client, session string) error {
	if session == "" {
		return nil
	}
	version, err := head.Version(ctx)
	if err != nil {
		return fmt.Errorf("look at the session of the head before sending: %w", err)
	}
	if version.Session != session {
		return fmt.Errorf("the head was replaced: it is in session %s instead of %s, and is given nothing", version.Session, session)
	}
	return nil
}

func (r *Ray) stop(a Stop) error {
	call := rayCall{object: a.Job, kind: rayJob, to: a.BaseURL, id: a.SubmissionID, what: kindStop}
	call.send = func(ctx context.Context) error {
		_, err := r.client(a.Job, a.BaseURL, a.Secret).StopJob(ctx, a.SubmissionID)
		if errors.Is(err, dashboard.ErrNotFound) {
			return nil
		}
		return err
	}
	return r.enqueue(r.jobs, call)
}

func (r *Ray) putServe(a PutServe) error {
	call := rayCall{object: a.Cluster, kind: rayCluster, to: a.BaseURL, id: a.Hash, what: kindPutServe}
	call.send = func(ctx context.Context) error {
		head := r.client(a.Cluster, a.BaseURL, a.Secret)
		if err := inSession(ctx, head, a.Session); err != nil {
			return err
		}
		return head.PutServe(ctx, a.Config)
	}
	return r.enqueue(r.serve, call)
}

func (r *Ray) client(owner client.Object, baseURL, secret string) *dashboard.Client {
	var token dashboard.TokenSource
	if secret != "" {
		token = r.options.Tokens(types.NamespacedName{Namespace: owner.GetNamespace(), Name: secret})
	}
	return dashboard.New(baseURL, dashboard.WithHTTPClient(r.options.HTTP), dashboard.WithToken(token))
}

func (r *Ray) enqueue(queue chan<- rayCall, call rayCall) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[call.object.GetUID()] || r.taken(call) {
		return nil
	}
	select {
	case queue <- call:
		r.pending[call.object.GetUID()] = true
		return nil
	default:
		return errBusy
	}
}

// taken tells whether Ray has taken this very submission. A plan may have been made before that was known; if it were sent
// again, a head that was replaced meanwhile would take it a second time. A Serve config is sent as often as a plan wants
// it, for Serve may have lost it, and does nothing with one that it has.
func (r *Ray) taken(call rayCall) bool {
	last := r.last(call.object.GetUID(), kindSubmit)
	return call.what == kindSubmit && last != nil && last.BaseURL == call.to && last.ID == call.id && last.Err == nil
}

func (r *Ray) carryOut(ctx context.Context, call rayCall) {
	err := r.send(ctx, call)
	name := client.ObjectKeyFromObject(call.object)
	log := r.options.Log.WithValues("action", call.what, "object", call.kind+" "+name.String(), "id", call.id)
	if err != nil {
		log.Info("Request to Ray failed", "error", err.Error())
	} else {
		log.Info("Request to Ray done")
	}
	r.mu.Lock()
	uid := call.object.GetUID()
	delete(r.pending, uid)
	if r.outcomes[uid] == nil {
		r.outcomes[uid] = map[string]Outcome{}
	}
	r.outcomes[uid][call.what] = Outcome{BaseURL: call.to, ID: call.id, At: r.options.Clock.Now(), Err: err}
	r.mu.Unlock()
	if r.options.Settled != nil {
		r.options.Settled(call.kind, name)
	}
}

func (r *Ray) send(ctx context.Context, call rayCall) error {
	admitted, done, err := r.options.Gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	return call.send(admitted)
}
