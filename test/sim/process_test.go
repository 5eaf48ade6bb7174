package sim

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/rayservice"
	"github.com/heliostat-io/heliostat/internal/wake"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// errKilled ends whatever a killed process was at.
var errKilled = errors.New("the process is dead")

// process is one life of an operator: what it holds in memory dies with it.
type process struct {
	world *world
	// name tells replicas apart, uid their lives.
	name, uid string
	cache     *kube.Cache
	workers   []*worker
	ray       *worker
	sender    *action.Ray
	poller    *poller
	bells     []bell
	cancel    context.CancelFunc
	ended     []chan struct{}

	// What faults do to it.
	dead, paused, leaseCut bool
	frozen                 string // the kind whose cache stands still
	// Until deaf, its cache of the kind deafTo learns of nothing; blind means that its next read from the API server fails.
	deaf   time.Duration
	deafTo string
	blind  bool
	offset time.Duration
	// speed is how quickly its caches learn of changes, compared with other things that happen.
	speed int

	// hears means that its caches are learning of a change, and tell the handlers of events.
	hears bool

	// Its view of the election, on the monotonic clock.
	stage    stage
	term     int64
	renewed  time.Duration
	deadline time.Duration
	fencedAt int64

	// own are the resourceVersions of its last write of each kind and of each object.
	own map[string]int64
}

// bell wakes one controller.
type bell struct {
	*wake.Bell
	list func() client.ObjectList
}

// stage is how far a process has come in the election.
type stage int

const (
	standby stage = iota
	// won means that it holds the lease, and has not moved the fence yet.
	won
	// fenced means that it has moved the fence, and its caches may lag behind.
	fenced
	// leading means that its term is valid.
	leading
)

// worker is one goroutine of a process. It runs only while the scheduler waits for it.
type worker struct {
	process *process
	name    string
	queue   *queue // nil for the one that sends to Ray
	resume  chan struct{}
	// matters is true for what works for the kind of objects that the scenario is about.
	matters bool
	// busy means that it has work that is not done; parked, that it waits within that work until ready says so.
	busy, parked bool
	ready        func() bool
}

func (w *worker) world() *world { return w.process.world }

// park gives control back in the midst of work. It returns when the scheduler goes on with the worker, which is not
// before ready, or with an error when the process was killed.
func (w *worker) park(ready func() bool) error {
	if w.process.dead {
		return errKilled
	}
	w.parked, w.ready = true, ready
	w.world().control <- struct{}{}
	<-w.resume
	w.parked = false
	if w.process.dead {
		return errKilled
	}
	return nil
}

// goOn lets a parked worker run until it parks again or is done.
func (w *worker) goOn() {
	w.resume <- struct{}{}
	<-w.world().control
}

// canGoOn tells whether a worker waits for nothing but its turn.
func (w *worker) canGoOn() bool { return w.parked && (w.ready == nil || w.ready()) }

// learn lets its caches learn of changes.
func (p *process) learn(how func(kind string), kind string) {
	p.hears = true
	how(kind)
	p.hears = false
}

type workerKey struct{}

func workerOf(ctx context.Context) *worker {
	w, _ := ctx.Value(workerKey{}).(*worker)
	return w
}

// launch starts a process with empty memory and full caches.
func (w *world) launch(name string) *process {
	w.lives++
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{world: w, name: name, uid: fmt.Sprintf("%s-life-%d", name, w.lives), cache: kube.NewCache(w.server, w.lab.only),
		cancel: cancel, own: map[string]int64{}, speed: 1 + w.rng.IntN(6)}
	p.poller = newPoller(p)
	mgr := &simManager{process: p}
	p.mustSetUp(mgr)
	for i, c := range mgr.controllers {
		worker := &worker{process: p, name: fmt.Sprintf("%s/%d", name, i), matters: w.scenario.isAbout(i), resume: make(chan struct{})}
		worker.queue = newQueue(worker)
		useQueue(c, worker.queue)
		p.workers = append(p.workers, worker)
		p.run(func() { _ = c.Start(context.WithValue(ctx, workerKey{}, worker)) })
		<-w.control
	}
	p.ray = &worker{process: p, name: name + "/ray", matters: true, resume: make(chan struct{})}
	p.run(func() { p.sendToRay(context.WithValue(ctx, workerKey{}, p.ray)) })
	w.processes = append(w.processes, p)
	w.note("%s starts", p.uid)
	return p
}

func (p *process) run(main func()) {
	ended := make(chan struct{})
	p.ended = append(p.ended, ended)
	go func() { defer close(ended); main() }()
}

// useQueue makes a controller of controller-runtime work on a queue of ours. The field is public, its struct is not.
func useQueue(controller manager.Runnable, q *queue) {
	make := func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return q
	}
	reflect.ValueOf(controller).Elem().FieldByName("NewQueue").Set(reflect.ValueOf(make))
}

// The places of the controllers in the order in which mustSetUp wires them.
const (
	clusterController = iota
	jobController
	serviceController
)

// mustSetUp wires the real reconcilers as internal/operator does.
func (p *process) mustSetUp(mgr manager.Manager) {
	w := p.world
	clusters, jobs, services := wake.New(), wake.New(), wake.New()
	p.bells = []bell{
		clusterController: {clusters, func() client.ObjectList { return &rayv1.RayClusterList{} }},
		jobController:     {jobs, func() client.ObjectList { return &rayv1.RayJobList{} }},
		serviceController: {services, func() client.ObjectList { return &rayv1.RayServiceList{} }},
	}
	p.poller.wake = p.wakeOwner
	p.sender = action.NewRay(action.RayOptions{Gate: gate{p}, HTTP: p.http(), Clock: p, Settled: p.settled})
	client := &kube.Client{Reader: cached{p}, Schema: w.lab.schema, Send: p.send}
	executor := func() *action.Executor {
		made := action.NewDoubtful(p)
		if !w.plan.readOwnWrites {
			made = action.NewMade(p)
		}
		return &action.Executor{Client: client, Live: live{p}, Gate: gate{p}, Fenced: p.fenced,
			Events: listener{w}, Ray: p.sender, Made: made, Parallel: 1}
	}
	err := errors.Join(
		(&raycluster.Reconciler{Reader: client, Executor: executor(), Gate: gate{p}, Holds: action.NewHolds(), Streaks: raycluster.NewStreaks(),
			Losses: raycluster.NewLosses(), Census: newCounter(p), Specs: raycluster.NewSpecs(raycluster.DefaultSettings()), Settings: raycluster.DefaultSettings(), Clock: p, Bell: clusters}).SetupWithManager(mgr),
		(&rayjob.Reconciler{Reader: client, Executor: executor(), Gate: gate{p}, Holds: action.NewHolds(), Poller: p.poller, Memory: rayjob.NewMemory(),
			Settings: jobSettings(), Clock: p, Bell: jobs}).SetupWithManager(mgr),
		(&rayservice.Reconciler{Reader: p.sight(client), Executor: executor(), Gate: gate{p}, Holds: action.NewHolds(), Dashboards: p.poller, Proxies: p.poller,
			Memory: rayservice.NewMemory(), Settings: serviceSettings(), Clock: p, Bell: services}).SetupWithManager(mgr),
	)
	if err != nil {
		panic(err)
	}
}

// jobSettings are those of all operators. Nobody gives up because Ray does not answer: how long faults last is chance.
func jobSettings() rayjob.Settings {
	return rayjob.Settings{ClusterDomain: "cluster.local", StatusCheckTimeout: 24 * time.Hour, TransitionGrace: time.Minute, DeletionPolicy: true}
}

// serviceSettings are those of all operators.
func serviceSettings() rayservice.Settings {
	return rayservice.Settings{Clusters: raycluster.DefaultSettings(), ZeroDowntime: true}
}

// kill ends a process where it stands.
func (w *world) kill(p *process) {
	w.note("%s dies", p.uid)
	p.dead = true
	for _, worker := range append(slices.Clone(p.workers), p.ray) {
		if worker.parked {
			worker.goOn()
		}
	}
	p.cancel()
	for _, ended := range p.ended {
		<-ended
	}
	w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
	for _, c := range w.calls {
		if c.worker != nil && c.worker.process == p {
			c.worker = nil
		}
	}
}

// Now is the wall clock of the process.
func (p *process) Now() time.Time { return reading(p.world.now().Add(p.offset), p.world.mono) }

// Since returns the time since t by that clock.
func (p *process) Since(t time.Time) time.Duration { return p.Now().Sub(t) }

// leads tells whether the process believes that its term is valid.
func (p *process) leads() bool { return p.stage == leading && p.world.mono < p.deadline }

// gate is the process's own check before each write. Between it and the arrival of the write anything can happen.
type gate struct{ process *process }

// Current returns the term while the process believes in it.
func (g gate) Current() (leadership.Term, bool) {
	return leadership.Term{Number: g.process.term}, g.process.leads()
}

// Enter is where a process can be stopped between its plan and its write.
func (g gate) Enter(ctx context.Context) (context.Context, func(), error) {
	if err := workerOf(ctx).park(nil); err != nil {
		return nil, nil, err
	}
	begun, isPlan := leadership.Begun(ctx)
	if !g.process.leads() || isPlan && begun != g.process.term {
		return nil, nil, leadership.ErrNoTerm
	}
	return ctx, func() {}, nil
}

// simManager is as much of a manager as SetupWithManager asks for.
type simManager struct {
	manager.Manager
	process     *process
	controllers []manager.Runnable
}

// Add takes a controller.
func (m *simManager) Add(runnable manager.Runnable) error {
	m.controllers = append(m.controllers, runnable)
	return nil
}

// GetScheme returns that of the laboratory.
func (m *simManager) GetScheme() *runtime.Scheme { return m.process.world.lab.schema.Scheme }

// GetRESTMapper returns that of the laboratory.
func (m *simManager) GetRESTMapper() meta.RESTMapper { return m.process.world.lab.schema.Mapper }

// GetCache returns the caches of the process.
func (m *simManager) GetCache() cache.Cache { return m.process.cache }

// GetFieldIndexer returns the caches of the process.
func (m *simManager) GetFieldIndexer() client.FieldIndexer { return m.process.cache }

// GetLogger returns one that looks for panics.
func (m *simManager) GetLogger() logr.Logger { return logr.New(panicSink{m.process.world}) }

// GetControllerOptions allows for many controllers of one name.
func (m *simManager) GetControllerOptions() ctrlconfig.Controller {
	return ctrlconfig.Controller{SkipNameValidation: ptr.To(true)}
}

// panicSink is a log that only listens for panics in reconciles, which controller-runtime turns into errors.
type panicSink struct{ world *world }

// Init does nothing.
func (panicSink) Init(logr.RuntimeInfo) {}

// Enabled is false for everything but errors.
func (panicSink) Enabled(int) bool { return false }

// Info does nothing.
func (panicSink) Info(int, string, ...any) {}

// Error fails the run for a panic.
func (s panicSink) Error(err error, _ string, _ ...any) {
	if err != nil && strings.HasPrefix(err.Error(), "panic:") {
		s.world.fail("a reconcile panicked: %v", err)
	}
	s.world.note("  a pass failed: %v", err)
}

// WithValues returns the same sink.
func (s panicSink) WithValues(...any) logr.LogSink { return s }

// WithName returns the same sink.
func (s panicSink) WithName(string) logr.LogSink { return s }

// listener takes events, and keeps those that tell of what may go on, stay, or be cut.
type listener struct{ world *world }

// Eventf takes one event.
func (l listener) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	switch reason {
	case "FailedToStopRayJob", "RedisCleanupFailed", "ForceDeletedStuckCluster":
		l.world.gaveUp = append(l.world.gaveUp, fmt.Sprintf(note, args...))
	case "DrainLimitReached":
		l.world.cut = append(l.world.cut, fmt.Sprintf(note, args...))
	}
}
