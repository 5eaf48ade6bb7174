package poll

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Options are the settings of a Poller. The zero value of each stands for its default.
type Options struct {
	// Interval is the time from an answer to the next question about the same target; 3 seconds.
	Interval time.Duration
	// Concurrency is how many dashboards are visited at the same time; 32. A quarter is kept for those known to be well.
	// With less than 2, a dead dashboard delays the others.
	Concurrency int
	// Timeout is the limit of one request; 5 seconds.
	Timeout time.Duration
	// MaxBackoff is the longest time between two questions to a dashboard that fails; 30 seconds.
	MaxBackoff time.Duration
	// Clock is the real one by default. Time-outs of requests always follow the real one.
	Clock clock.WithTicker
	// Random spreads the retries of dashboards that failed together; by default it follows from the time of New. It is used
	// by one goroutine at a time.
	Random rand.Source
	// HTTPClient carries the requests; dashboard.NewHTTPClient by default.
	HTTPClient *http.Client
	// Tokens finds the token in a Secret that a target names. By default no token is sent.
	Tokens func(secret types.NamespacedName) dashboard.TokenSource
	// Notify is told the owner of a target whose observation changed. It is called from many goroutines and must return
	// at once, as putting a key into a work queue does. It may call the Poller. By default nobody is told.
	Notify func(Key)
	// Registerer takes the metrics when the Poller starts; without one they are not published.
	Registerer prometheus.Registerer
}

// withDefaults fills in what is not set.
func (o Options) withDefaults() Options {
	if o.Interval <= 0 {
		o.Interval = 3 * time.Second
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 32
	}
	if o.Timeout <= 0 {
		o.Timeout = dashboard.DefaultReadTimeout
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Random == nil {
		o.Random = rand.NewPCG(uint64(o.Clock.Now().UnixNano()), 0)
	}
	if o.HTTPClient == nil {
		o.HTTPClient = dashboard.NewHTTPClient()
	}
	if o.Tokens == nil {
		o.Tokens = func(types.NamespacedName) dashboard.TokenSource { return nil }
	}
	if o.Notify == nil {
		o.Notify = func(Key) {}
	}
	return o
}

// Poller asks dashboards in the background. Its methods never wait for the network and may be called at any time, before
// Start and after it has returned as well.
type Poller struct {
	options Options
	metrics metrics
	// wake tells the dispatching loop that there may be something to do.
	wake chan struct{}

	mu       sync.Mutex
	started  bool
	targets  map[Key]*target
	hosts    map[address]*host
	schedule schedule
	random   *rand.Rand
}

// New returns a Poller that asks nothing until Start is called.
func New(options Options) *Poller {
	options = options.withDefaults()
	return &Poller{
		options:  options,
		metrics:  newMetrics(),
		wake:     make(chan struct{}, 1),
		targets:  map[Key]*target{},
		hosts:    map[address]*host{},
		schedule: schedule{limit: options.Concurrency},
		random:   rand.New(options.Random), //nolint:gosec // spreads load, protects nothing
	}
}

// NeedLeaderElection returns false: a standby replica observes as well, so that it knows everything when it takes over.
func (p *Poller) NeedLeaderElection() bool { return false }

// Start asks until ctx ends and all requests have ended with it. It can be called once. It fails if the metrics cannot be
// registered.
func (p *Poller) Start(ctx context.Context) error {
	p.mu.Lock()
	again := p.started
	p.started = true
	p.mu.Unlock()
	if again {
		return errors.New("starting the dashboard poller: it was started before")
	}
	if err := p.metrics.register(p.options.Registerer); err != nil {
		return err
	}
	defer p.options.HTTPClient.CloseIdleConnections()
	var visits sync.WaitGroup
	defer visits.Wait()

	for ctx.Err() == nil {
		p.dispatch(ctx, &visits)
		p.sleep(ctx)
	}
	return nil
}

// dispatch starts all visits that are due and within the limit.
func (p *Poller) dispatch(ctx context.Context, visits *sync.WaitGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		h := p.schedule.take(p.options.Clock.Now())
		if h == nil {
			return
		}
		visits.Go(func() {
			p.visit(ctx, h)
			p.rouse()
		})
	}
}

// sleep returns when the next visit is due, when something changed, or when ctx ends.
func (p *Poller) sleep(ctx context.Context) {
	p.mu.Lock()
	due, known := p.schedule.next()
	p.mu.Unlock()

	var expired <-chan time.Time
	if known {
		timer := p.options.Clock.NewTimer(due.Sub(p.options.Clock.Now()))
		defer timer.Stop()
		expired = timer.C()
		// A clock that is moved by hand may have been moved while the timer was made.
		if !p.options.Clock.Now().Before(due) {
			return
		}
	}
	select {
	case <-expired:
	case <-p.wake:
	case <-ctx.Done():
	}
}

// rouse ends the sleep of the dispatching loop.
func (p *Poller) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Track begins to ask for the target, at once. Asking for one that is tracked already changes nothing. A target that
// differs in any field from that of the same owner replaces it, together with its observation.
func (p *Poller) Track(wanted Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.targets[wanted.Owner]; ok {
		if old.Target == wanted {
			return
		}
		p.remove(old)
	}
	h := p.host(wanted.address())
	t := &target{Target: wanted, host: h, due: p.options.Clock.Now(), seen: Observation{Target: wanted}}
	h.targets[wanted.Owner] = t
	p.targets[wanted.Owner] = t
	p.metrics.targets.Set(float64(len(p.targets)))
	p.reschedule(h)
}

// Forget ends asking on behalf of the owner and drops what was observed. A request that is on its way is broken off.
func (p *Poller) Forget(owner Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.targets[owner]; ok {
		p.remove(t)
		p.metrics.targets.Set(float64(len(p.targets)))
	}
}

// Refresh asks for the owner's target as soon as possible, also if its dashboard is being spared after failures. If a
// request is on its way, another one follows it, since the first may have been answered before the caller's change. Calls
// in quick succession are joined. Refresh of an unknown owner does nothing.
func (p *Poller) Refresh(owner Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.targets[owner]
	if !ok {
		return
	}
	t.refresh = true
	p.reschedule(t.host)
}

// Observation returns a copy of what was last observed for the owner. It is false if the owner has no target. Until a
// target has been asked for, all but Target is empty.
func (p *Poller) Observation(owner Key) (Observation, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.targets[owner]
	if !ok {
		return Observation{}, false
	}
	return t.seen.clone(), true
}

// String names the poller in the logs of the manager that runs it.
func (p *Poller) String() string {
	return fmt.Sprintf("dashboard poller (every %s)", p.options.Interval)
}
