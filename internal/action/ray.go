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

// Outcome is what became of the last request of a kind for a job.
type Outcome struct {
	// BaseURL is the dashboard that was sent to.
	BaseURL string
	// SubmissionID is the id that was sent for.
	SubmissionID string
	// At is when the answer came.
	At time.Time
	// Err is nil when Ray did what was asked, or had done it already.
	Err error
}

// RayOptions of the workers that send to Ray.
type RayOptions struct {
	Gate leadership.Gate
	HTTP *http.Client
	// Tokens finds the token in a Secret. It is needed where jobs run on clusters that ask for one.
	Tokens func(secret types.NamespacedName) dashboard.TokenSource
	Clock  clock.PassiveClock
	Log    logr.Logger
	// Settled is called after each request, so that the job is looked at again at once.
	Settled func(job types.NamespacedName)
	// Workers is how many requests may be under way at once.
	Workers int
}

// Ray sends submissions and stops to Ray dashboards in the background, so that no reconcile waits for one. Two
// requests for the same job are never under way together.
type Ray struct {
	options RayOptions
	work    chan rayCall

	mu       sync.Mutex
	pending  map[types.UID]bool
	outcomes map[types.UID]map[string]Outcome // by job and kind of request
}

type rayCall struct {
	job  client.Object
	to   string
	id   string
	send func(ctx context.Context) error
	what string
}

// errBusy says that all workers and the queue before them are taken. The planner asks again later.
var errBusy = errors.New("too many requests to Ray are waiting")

// The kinds of requests to Ray.
const (
	kindSubmit = "submit"
	kindStop   = "stop"
)

// queueLength is how many requests may wait for a worker.
const queueLength = 1024

// NewRay returns the workers; they run from Start on.
func NewRay(options RayOptions) *Ray {
	return &Ray{
		options:  options,
		work:     make(chan rayCall, queueLength),
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
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case call := <-r.work:
					r.carryOut(ctx, call)
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// Outcomes returns what became of the last submission and of the last stop for a job, nil when none has ended yet, and
// whether a request for the job waits or is under way.
func (r *Ray) Outcomes(job types.UID) (submitted, stopped *Outcome, sending bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if outcome, ok := r.outcomes[job][kindSubmit]; ok {
		submitted = &outcome
	}
	if outcome, ok := r.outcomes[job][kindStop]; ok {
		stopped = &outcome
	}
	return submitted, stopped, r.pending[job]
}

// Forget drops what is known about a job that is gone.
func (r *Ray) Forget(job types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outcomes, job)
}

func (r *Ray) submit(a Submit) error {
	return r.enqueue(rayCall{job: a.Job, to: a.BaseURL, id: a.Request.SubmissionID, what: kindSubmit, send: func(ctx context.Context) error {
		head := r.client(a.Job, a.BaseURL, a.Secret)
		if err := inSession(ctx, head, a.Session); err != nil {
			return err
		}
		_, err := head.SubmitJob(ctx, a.Request)
		if errors.Is(err, dashboard.ErrAlreadyExists) {
			return nil
		}
		return err
	}})
}

// inSession returns nil if the head is in the session, or if that does not matter. Between the plan and the request the
// head may have been replaced, and the new one knows nothing of the submission that the old one took.
func inSession(ctx context.Context, head *dashboard.Client, session string) error {
	if session == "" {
		return nil
	}
	version, err := head.Version(ctx)
	if err != nil {
		return fmt.Errorf("look at the session of the head before submitting: %w", err)
	}
	if version.Session != session {
		return fmt.Errorf("the head was replaced: it is in session %s instead of %s, and is not given the job", version.Session, session)
	}
	return nil
}

func (r *Ray) stop(a Stop) error {
	return r.enqueue(rayCall{job: a.Job, to: a.BaseURL, id: a.SubmissionID, what: kindStop, send: func(ctx context.Context) error {
		_, err := r.client(a.Job, a.BaseURL, a.Secret).StopJob(ctx, a.SubmissionID)
		if errors.Is(err, dashboard.ErrNotFound) {
			return nil
		}
		return err
	}})
}

func (r *Ray) client(job client.Object, baseURL, secret string) *dashboard.Client {
	var token dashboard.TokenSource
	if secret != "" {
		token = r.options.Tokens(types.NamespacedName{Namespace: job.GetNamespace(), Name: secret})
	}
	return dashboard.New(baseURL, dashboard.WithHTTPClient(r.options.HTTP), dashboard.WithToken(token))
}

func (r *Ray) enqueue(call rayCall) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[call.job.GetUID()] || r.taken(call) {
		return nil
	}
	select {
	case r.work <- call:
		r.pending[call.job.GetUID()] = true
		return nil
	default:
		return errBusy
	}
}

// taken tells whether Ray has taken this very submission. A plan may have been made before that was known; if it were sent
// again, a head that was replaced meanwhile would take it a second time.
func (r *Ray) taken(call rayCall) bool {
	last, ok := r.outcomes[call.job.GetUID()][kindSubmit]
	return call.what == kindSubmit && ok && last.BaseURL == call.to && last.SubmissionID == call.id && last.Err == nil
}

func (r *Ray) carryOut(ctx context.Context, call rayCall) {
	err := r.send(ctx, call)
	job := client.ObjectKeyFromObject(call.job)
	log := r.options.Log.WithValues("action", call.what, "object", "RayJob "+job.String(), "submissionID", call.id)
	if err != nil {
		log.Info("Request to Ray failed", "error", err.Error())
	} else {
		log.Info("Request to Ray done")
	}
	r.mu.Lock()
	delete(r.pending, call.job.GetUID())
	uid := call.job.GetUID()
	if r.outcomes[uid] == nil {
		r.outcomes[uid] = map[string]Outcome{}
	}
	r.outcomes[uid][call.what] = Outcome{BaseURL: call.to, SubmissionID: call.id, At: r.options.Clock.Now(), Err: err}
	r.mu.Unlock()
	if r.options.Settled != nil {
		r.options.Settled(job)
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
