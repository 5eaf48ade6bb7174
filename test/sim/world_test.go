package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// namespace is where everything happens.
const namespace = "ns"

// world is one simulated history: a Kubernetes, a Ray, and the operators. One goroutine at a time runs in it.
type world struct {
	lab      *lab
	scenario *scenario
	plan     plan
	rng      *rand.Rand
	server   *kube.Server
	// mono is the time since the beginning, which every part of the world agrees on.
	mono time.Duration

	processes []*process
	lives     int
	lease     lease
	terms     int64
	holder    holder
	// control is how a goroutine of a process gives control back to the scheduler.
	control chan struct{}
	calls   []*call
	// apiAway means that the API server cannot be reached.
	apiAway bool

	rayJobs []*rayJob
	// serves are Serve as each life of a head knows it.
	serves []*serveLife
	// endpoints are what the controller of EndpointSlices does next when the last stored change is that one.
	endpoints struct {
		rv    int64
		deeds []*deed
	}
	// traffic is what Pods get of the requests to a RayService, by the UID of the Pod.
	traffic map[types.UID]*traffic
	// excused means that something has happened to what serves that no operator can make up for, since the world was settled.
	excused bool
	// started counts the jobs of RayJobs.
	started int
	// progressed counts the steps of all jobs.
	progressed int64
	// raySilent is until when no dashboard answers.
	raySilent time.Duration
	// gaveUp are the events that tell of a job which may run on, or of what may stay in Redis, cut those that tell of requests which may be cut.
	gaveUp, cut []string
	// podsMade counts the Pods of each submitter Job; scripts are those in their containers, by Pod.
	podsMade map[types.UID]int
	// cutOff are Pods whose nodes do not say what becomes of them.
	cutOff  map[types.UID]bool
	scripts map[types.UID]*script
	// redis are the parts of Redis in which something is.
	redis map[string]bool
	// collected is when the garbage collector was at work last.
	collected time.Duration
	// vanishing means that the namespace is being deleted.
	vanishing bool
	didSend   bool
	ips       int

	// sent counts the operators' requests that change something, heard the answers of Ray that were news.
	// spots are the numbers of the requests that were sent for what the scenario is about.
	sent  int
	heard int
	spots []int
	// begun and begunHeard are what sent and heard were when the first change was made.
	begun, begunHeard int
	doomed            *process
	// aftermath is what an incident leaves to happen when the world has settled.
	aftermath func()
	// chaos is true while faults may happen; budget is how many more will.
	chaos  bool
	budget int

	watch    watchdog
	failures []string
	// trace is nil unless the history is to be told.
	trace *[]string
	steps int
}

// epoch is when histories begin.
func epoch() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

func newWorld(l *lab, s *scenario, plan plan) *world {
	w := &world{lab: l, scenario: s, plan: plan, rng: rand.New(rand.NewPCG(plan.seed, 1)), control: make(chan struct{}),
		podsMade: map[types.UID]int{}, cutOff: map[types.UID]bool{}, redis: map[string]bool{}, scripts: map[types.UID]*script{}, traffic: map[types.UID]*traffic{}, watch: newWatchdog()}
	w.server = kube.NewServer(l.schema, w.now)
	w.server.Admit, w.server.Accepted = w.admit, w.accepted
	w.server.IgnorePreconditions, w.server.FreshNames = plan.broken == noPreconditions, plan.broken == noNames
	if plan.broken == noSubmission {
		w.server.Forget = forgetSubmission
	}
	if plan.broken == noCensus {
		w.server.Forget = forgetCensus
	}
	return w
}

// forgetCensus leaves the next leader nothing to compare with.
func forgetCensus(o object) {
	if cluster, isCluster := o.(*rayv1.RayCluster); isCluster {
		cluster.Status.LastCensus = nil
	}
}

// forgetSubmission leaves nothing on record but that there was a submission: neither the life of the head nor that Ray has
// the job.
func forgetSubmission(o object) {
	if job, isJob := o.(*rayv1.RayJob); isJob && job.Status.Submission != nil {
		job.Status.Submission = &rayv1.RayJobSubmission{}
	}
}

// now is the time by the clock of the API server.
func (w *world) now() time.Time { return epoch().Add(w.mono) }

// fail records that the history is not as it must be.
func (w *world) fail(format string, args ...any) {
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
	w.note("FAILURE: "+format, args...)
}

func (w *world) must(err error) {
	if err != nil {
		w.fail("the world itself cannot go on: %v", err)
	}
}

// note adds a line to the trace.
func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		*w.trace = append(*w.trace, fmt.Sprintf("%9s %s", w.mono.Round(time.Millisecond), fmt.Sprintf(format, args...)))
	}
}

// end stops all goroutines.
func (w *world) end() {
	w.trace = nil
	for len(w.processes) > 0 {
		w.kill(w.processes[0])
	}
}

// move lets time pass, with what happens by itself meanwhile: leaders renew, or learn that they lead no more.
func (w *world) move(by time.Duration) {
	w.mono += by
	for _, p := range w.processes {
		w.renew(p)
	}
}

// tick lets a moment pass: nothing happens in no time.
func (w *world) tick() { w.move(time.Millisecond) }

// nextTimer is when something is due next that is not due yet.
func (w *world) nextTimer() (at time.Duration, ok bool) {
	soonest := func(t time.Duration) {
		if t > w.mono && (!ok || t < at) {
			at, ok = t, true
		}
	}
	for _, p := range w.processes {
		if p.paused {
			continue
		}
		for _, worker := range p.workers {
			if due, found := worker.queue.nextDue(w.mono); found && p.leads() {
				soonest(due)
			}
		}
		soonest(p.deaf)
		for _, seen := range p.poller.seen {
			soonest(seen.next)
		}
	}
	soonest(w.collected + gcPause)
	for _, job := range w.rayJobs {
		soonest(job.stopAt)
	}
	for _, life := range w.serves {
		soonest(life.proxiesAt)
		for _, app := range life.apps {
			soonest(app.readyAt)
		}
		for _, proxy := range life.proxies {
			soonest(proxy.wellAt)
		}
	}
	if w.leader() == nil {
		soonest(w.mono + retryPeriod)
	}
	return at, ok
}

// advance lets time pass until the next timer.
func (w *world) advance() bool {
	at, ok := w.nextTimer()
	if ok {
		w.move(at - w.mono)
	}
	return ok
}

func (w *world) process(name string) *process {
	for _, p := range w.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// reaches tells whether a process runs and can reach the API server.
func (w *world) reaches(p *process) bool { return !p.dead && !p.paused && !w.apiAway }

func sortRequests(requests []reconcile.Request) { slices.SortFunc(requests, compareRequests) }

// tail returns the last lines of a trace.
func tail(trace []string, lines int) string {
	if cut := len(trace) - lines; cut > 0 {
		trace = append([]string{fmt.Sprintf("... %d lines before", cut)}, trace[cut:]...)
	}
	return strings.Join(trace, "\n")
}
