package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// breakage is a protection that is switched off on purpose, to prove that its absence is noticed.
type breakage string

const (
	intact          breakage = ""
	noFence         breakage = "the fence"
	noBarrier       breakage = "the barrier"
	noPreconditions breakage = "the preconditions"
	noNames         breakage = "the derived names"
	noSubmission    breakage = "the memory of the submission"
	noGuard         breakage = "the guard of the submitter"
	noAdmission     breakage = "the admission of the sidecar"
	noCensus        breakage = "the memory of who was there"
	noReport        breakage = "the word of Serve"
	noPods          breakage = "the word of the Pods"
	noSight         breakage = "the sight of what leads to the head"
)

// fault is a kind of perturbation.
type fault string

const (
	crash       fault = "crash"
	pause       fault = "pause"
	stale       fault = "stale cache"
	away        fault = "API server away"
	clockJump   fault = "clock jump"
	twoLeaders  fault = "two leaders"
	leaseCut    fault = "renewals cut"
	mergeEvents fault = "merged events"
	apiError    fault = "API error"
	lostRequest fault = "lost request"
	lostAnswer  fault = "lost answer"
	slowRequest fault = "slow request"
	slowRay     fault = "slow answer of Ray"
	noAnswer    fault = "no answer of Ray"
	podKilled   fault = "submitter Pod killed"
	sickProxy   fault = "Serve proxy silent"
)

func allFaults() []fault {
	return []fault{crash, pause, stale, away, clockJump, twoLeaders, leaseCut, mergeEvents, apiError, lostRequest, lostAnswer, slowRequest,
		slowRay, noAnswer, podKilled}
}

// serviceFaults are those that are tried with RayServices.
func serviceFaults() []fault {
	return append(slices.DeleteFunc(allFaults(), func(f fault) bool { return f == podKilled }), sickProxy)
}

// watched are the kinds whose caches faults hold back.
func (s *scenario) watched() []string {
	if s.ofServices {
		return []string{"Pod", "RayCluster", "RayCluster", "RayService", "RayService", "Service", "Service", "EndpointSlice", "EndpointSlice"}
	}
	return []string{"Pod", "Pod", "RayCluster", "RayJob", "Service", "Secret", "Job", "ServiceAccount"}
}

// plan is what a seed decides before the history begins.
type plan struct {
	seed   uint64
	broken breakage
	// replicas is the number of operators.
	replicas int
	// faults are those that may happen; budget is how many of them at most in each stage.
	faults []fault
	budget int
	// readOwnWrites is false for an operator whose caches do not wait for its own writes, as with several namespaces.
	readOwnWrites bool
	// tornReads lets caches move on between two reads of one pass.
	tornReads bool
	// hasty users do not wait until what they asked for before is done.
	hasty bool
	// rushAt is the step before which a scenario in a rush makes no change.
	rushAt int
	// lateOwn lets requests of an earlier term arrive while their sender leads again.
	lateOwn bool
	// incident happens at the request with that number.
	incident incident
	at       int
	// answer happens at the answer of Ray with that number which is news.
	answer   answerIncident
	atAnswer int
	// length is the number of random steps in a stage.
	length int
}

// undisturbed is the plan of a run without a fault.
func undisturbed() plan { return plan{replicas: 2, readOwnWrites: true} }

// planOf draws the plan of a seed. A few kinds of faults at a time go deeper than all of them at once.
func planOf(seed uint64, faults []fault) plan {
	rng := rand.New(rand.NewPCG(seed, 2))
	p := plan{seed: seed, replicas: 2 + rng.IntN(2), budget: 1 + rng.IntN(6), readOwnWrites: rng.IntN(4) > 0,
		tornReads: rng.IntN(3) == 0, hasty: rng.IntN(4) == 0, length: 30 + rng.IntN(90)}
	for _, f := range faults {
		if rng.IntN(3) == 0 {
			p.faults = append(p.faults, f)
		}
	}
	return p
}

// may tells whether a fault is to happen now, and spends it.
func (w *world) may(f fault, oneIn int) bool {
	if !w.chaos || w.budget <= 0 || !slices.Contains(w.plan.faults, f) || w.rng.IntN(oneIn) > 0 {
		return false
	}
	w.budget--
	return true
}

// strike lets one fault happen to the world, if it is one of the world and not of a request or an event.
func (w *world) strike() {
	p := w.processes[w.rng.IntN(len(w.processes))]
	if leader := w.leader(); leader != nil && w.rng.IntN(2) == 0 {
		p = leader
	}
	switch f := w.plan.faults[w.rng.IntN(len(w.plan.faults))]; f {
	case crash:
		w.kill(p)
	case pause:
		p.paused = true
	case stale:
		watched := w.scenario.watched()
		p.frozen = watched[w.rng.IntN(len(watched))]
		p.speed = 6 // the others are up to date
		w.note("fault: the cache of %s for %s stands still", p.uid, p.frozen)
		w.budget--
		return
	case away:
		w.apiAway = true
	case clockJump:
		p.offset = time.Duration(w.rng.Int64N(2*int64(w.scenario.skew())) - int64(w.scenario.skew()))
	case twoLeaders:
		// The Lease is deleted, and another process takes it before this one looks again.
		w.lease.holder = ""
		p.leaseCut = w.rng.IntN(2) == 0
	case leaseCut:
		p.leaseCut = true
	case podKilled:
		if !w.killSubmitter() {
			return
		}
	case sickProxy:
		if !w.sicken() {
			return
		}
	default:
		return
	}
	w.budget--
	w.note("fault: %s (%s)", w.plan.faults, p.uid)
}

// recover takes one lasting fault back, if there is any.
func (w *world) recoveries() []func() {
	var ways []func()
	add := func(what string, undo func()) {
		ways = append(ways, func() { w.note("over: %s", what); undo() })
	}
	for _, p := range w.processes {
		if p.paused {
			add("pause of "+p.uid, func() { p.paused = false; w.lapse(p) })
		}
		if p.frozen != "" {
			add("stale cache of "+p.uid, func() { p.frozen = "" })
		}
		if p.leaseCut {
			add("cut of "+p.uid, func() { p.leaseCut = false; w.lapse(p) })
		}
	}
	if w.apiAway {
		add("API server away", func() {
			w.apiAway = false
			for _, p := range w.processes {
				w.lapse(p)
			}
		})
	}
	for i := range w.plan.replicas {
		if name := replica(i); w.process(name) == nil {
			add("absence of "+name, func() { w.launch(name) })
		}
	}
	for _, c := range w.calls {
		if c.held {
			add("delay of: "+c.what, func() { c.held = false })
		}
	}
	return ways
}

func replica(i int) string { return fmt.Sprintf("operator-%d", i) }

// heal takes all lasting faults back. What still travels arrives now, or never.
//
// What was sent in a term that is over may travel on until the end.
func (w *world) heal(last bool) {
	w.chaos = false
	for _, undo := range w.recoveries() {
		undo()
	}
	for _, c := range slices.Clone(w.calls) {
		switch {
		case c.worker != nil:
		case w.rng.IntN(3) == 0:
			w.breakOff(c, "is lost for good", errReset())
		case last:
			w.arrive(c)
		}
	}
}

// handle lets a request arrive, or does to it what faults do to requests.
func (w *world) handle(c *call) {
	switch {
	case w.apiAway && !c.toRay():
		w.breakOff(c, "cannot be sent", errors.New("dial tcp: connect: connection refused"))
	case w.may(slowRequest, 5):
		w.note("fault: %s: %s is stuck in the network", c.sender.UID, c.what)
		c.held = true
	case w.may(lostRequest, 8):
		w.breakOff(c, "fault: the request is lost", w.doubt(c))
	case c.mutates && w.may(lostAnswer, 6):
		_, err := c.carryOut()
		w.breakOff(c, "fault: the answer is lost"+outcome(err), w.doubt(c))
	case w.may(apiError, 6):
		w.breakOff(c, "fault: the API server refuses", w.refusal(c))
	default:
		w.arrive(c)
	}
}

func errReset() error { return errors.New("read tcp: connection reset by peer") }

// doubt is one of the errors after which nobody knows whether the request was carried out.
func (w *world) doubt(c *call) error {
	errs := []error{errReset(), apierrors.NewTimeoutError("request timed out", 1),
		apierrors.NewServerTimeout(schema.GroupResource{Resource: "objects"}, "write", 1), apierrors.NewInternalError(errors.New("etcdserver: request timed out"))}
	if c.toRay() {
		return errs[0]
	}
	return errs[w.rng.IntN(len(errs))]
}

// refusal is one of the errors after which the request was not carried out.
func (w *world) refusal(c *call) error {
	if c.toRay() {
		return errNoHead
	}
	errs := []error{apierrors.NewTooManyRequests("slow down", 1), apierrors.NewInternalError(errors.New("etcdserver: no leader"))}
	if c.patch {
		errs = append(errs, apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "object", errors.New("the object has been modified")))
	}
	return errs[w.rng.IntN(len(errs))]
}
