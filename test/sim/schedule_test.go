package sim

import (
	"fmt"
	"slices"
	"time"
)

// option is one thing that can happen next, and how often it does compared with the others.
type option struct {
	weight int
	do     func()
}

// options returns all that can happen next, apart from time going by, in a fixed order.
func (w *world) options() []option {
	var options []option
	add := func(weight int, do func()) { options = append(options, option{weight, do}) }
	for _, p := range w.processes {
		if p.paused {
			continue
		}
		if w.canStand(p) {
			add(2, func() { w.stand(p) })
		}
		if !w.apiAway {
			for _, kind := range w.lab.kinds {
				if kind != p.frozen && p.cache.Pending(kind) > 0 {
					add(p.speed, func() { w.deliver(p, kind) })
				}
			}
		}
		for _, worker := range p.workers {
			w.workerOptions(worker, add)
		}
		if p.ray.canGoOn() || !p.ray.busy && w.scenario.usesHTTP {
			add(2, func() { p.letSend() })
		}
		for _, key := range p.poller.due() {
			add(2, func() { p.poller.ask(key) })
		}
	}
	for _, c := range w.calls {
		if !c.held {
			add(6, func() { w.handle(c) })
		}
	}
	for _, d := range w.deeds() {
		add(3, func() { w.perform(d) })
	}
	return options
}

func (w *world) perform(d deed) {
	w.tick()
	w.note("%s", d.what)
	d.do()
}

func (w *world) workerOptions(worker *worker, add func(int, func())) {
	switch {
	case worker.canGoOn():
		add(5, worker.goOn)
	case !worker.busy:
		for _, item := range worker.queue.ready(w.mono) {
			add(3, func() { worker.queue.hand(item) })
		}
	}
}

// deliver lets a cache see one more change, or all that it has missed at once.
func (w *world) deliver(p *process, kind string) {
	if w.may(mergeEvents, 4) {
		w.note("fault: %s lists %s anew", p.uid, kind)
		p.learn(p.cache.Relist, kind)
		return
	}
	p.learn(p.cache.Deliver, kind)
}

// turmoil lets random things happen for a while, faults among them.
func (w *world) turmoil(changes *[]change) {
	w.chaos, w.budget = len(w.plan.faults) > 0, min(w.plan.budget, len(w.plan.faults)*w.plan.budget)
	for range w.plan.length {
		w.steps++
		options := w.options()
		recoveries := w.recoveries()
		if w.budget > 0 && len(w.processes) > 0 {
			options = append(options, option{2, w.strike})
		}
		if len(recoveries) > 0 {
			options = append(options, option{1, recoveries[w.rng.IntN(len(recoveries))]})
		}
		switch {
		case w.isMidway(*changes):
			options = append(options, option{3, func() { w.nextChange(changes) }})
		case w.plan.hasty && len(*changes) > 0 && ((*changes)[0].when == nil || (*changes)[0].when(w)):
			options = append(options, option{1, func() { w.nextChange(changes) }})
		}
		options = append(options, option{1, w.letTimePass})
		w.pick(options)
		w.bury()
	}
	w.heal(len(*changes) == 0)
}

// letTimePass goes to the next timer or beyond it, but never far: much else can happen now.
func (w *world) letTimePass() {
	const far = 20 * time.Second
	by := time.Duration(w.rng.Int64N(int64(far)))
	if at, ok := w.nextTimer(); ok && w.rng.IntN(4) > 0 {
		by = min(at-w.mono, far)
	}
	w.move(by)
}

func (w *world) pick(options []option) {
	total := 0
	for _, o := range options {
		total += o.weight
	}
	at := w.rng.IntN(total)
	for _, o := range options {
		if at -= o.weight; at < 0 {
			o.do()
			return
		}
	}
}

// bury kills the process that was to die before a certain request.
func (w *world) bury() {
	if w.doomed == nil {
		return
	}
	p := w.doomed
	w.doomed = nil
	w.kill(p)
	if w.plan.incident.restart || w.plan.answer.restart {
		w.launch(p.name)
	}
}

// The limits of what a world may take to settle.
const (
	// fairRounds is how many rounds, in each of which everything that can happen does.
	fairRounds = 2000
	// restless is how many steps a process may take without time going by.
	restless = 5000
	// quiet is how long nothing may be written before the world counts as settled; it is longer than any back-off.
	quiet = 150 * time.Second
)

// isMidway tells whether the next change is to be made now, in the midst of things.
func (w *world) isMidway(changes []change) bool {
	return len(changes) > 0 && changes[0].midway != nil && changes[0].midway(w)
}

// settle lets everything that can happen do so, round by round and in order, until nothing happens any more.
func (w *world) settle(changes *[]change) {
	quietSince, before := w.mono, w.mark()
	for range fairRounds {
		happened := w.round()
		if len(w.failures) > 0 {
			return // nothing that follows counts
		}
		if w.isMidway(*changes) {
			w.nextChange(changes)
			happened = true
		}
		if now := w.mark(); now != before {
			quietSince, before = w.mono, now
		}
		if happened {
			continue
		}
		if w.mono-quietSince > quiet && !w.observing() || !w.advance() {
			w.excused = false
			return
		}
	}
	w.fail("the world did not settle within %d rounds after the last fault", fairRounds)
}

// mark is another one after anything was changed or, where nobody insists, tried.
func (w *world) mark() [3]int64 {
	tried := int64(w.sent)
	if w.scenario.insists {
		tried = 0
	}
	return [3]int64{w.server.RV(), w.progressed, tried}
}

// round lets everything happen that can, and tells whether anything did.
func (w *world) round() bool {
	happened := false
	for _, p := range slices.Clone(w.processes) {
		if p.paused {
			continue
		}
		for before := p.stage; w.canStand(p); before = p.stage {
			w.stand(p)
			if p.stage == before {
				break
			}
			happened = true
		}
		for _, kind := range w.lab.kinds {
			for (w.mono >= p.deaf || kind != p.deafTo) && p.cache.Pending(kind) > 0 {
				p.learn(p.cache.Deliver, kind)
				happened = true
			}
		}
		happened = w.work(p) || happened
	}
	happened = w.answerAll() || happened
	for _, d := range w.deeds() {
		w.perform(d)
		happened = true
	}
	return happened
}

// work lets the workers of a process do all that they have to do.
func (w *world) work(p *process) bool {
	happened := false
	for begun := w.steps; !p.dead && !p.paused; {
		before := w.steps
		if before-begun > restless {
			w.fail("%s does not come to rest: %d steps at one moment", p.uid, restless)
			return false
		}
		for _, worker := range p.workers {
			w.workOn(worker)
		}
		if !p.dead {
			if p.letSend() {
				w.steps++
			}
			if w.answerAll() {
				w.steps++
			}
			w.bury()
		}
		for _, key := range p.poller.due() {
			if !p.dead && p.poller.ask(key) {
				w.steps++
			}
			w.bury()
		}
		if w.steps == before {
			break
		}
		happened = true
	}
	return happened
}

// workOn lets one worker go on, or take up what is due.
func (w *world) workOn(worker *worker) {
	switch {
	case worker.process.dead:
		return
	case worker.canGoOn():
		worker.goOn()
	case worker.busy:
		return
	default:
		ready := worker.queue.ready(w.mono)
		if len(ready) == 0 {
			return
		}
		worker.queue.hand(ready[0])
	}
	w.steps++
	w.answerAll()
	w.bury()
}

// answerAll lets every request arrive that somebody waits for.
func (w *world) answerAll() bool {
	happened := false
	for _, c := range slices.Clone(w.calls) {
		if c.worker != nil && !c.held {
			w.arrive(c)
			happened = true
		}
	}
	return happened
}

// nextChange lets the user make the next change.
func (w *world) nextChange(changes *[]change) {
	next := (*changes)[0]
	*changes = (*changes)[1:]
	w.note("user: %s", next.what)
	w.excused = w.excused || next.harms
	if w.begun == 0 {
		w.begun, w.begunHeard = w.sent, w.heard
	}
	next.make(w)
}

// play plays a scenario to its end and checks what must hold there.
func play(w *world) result {
	defer w.end()
	for i := range w.plan.replicas {
		w.launch(replica(i))
	}
	for _, object := range w.scenario.objects() {
		w.must(w.server.Add(object))
	}
	changes := slices.Clone(w.scenario.changes)
	for {
		w.turmoil(&changes)
		w.settle(&changes)
		if w.aftermath != nil {
			w.note("aftermath")
			w.aftermath()
			w.aftermath = nil
			w.settle(&changes)
		}
		if len(w.failures) > 0 || len(changes) == 0 {
			break
		}
		w.judgeSettled()
		w.nextChange(&changes)
	}
	w.judgeSettled()
	r := result{sent: w.sent, heard: w.heard, spots: w.spots, begun: w.begun, begunHeard: w.begunHeard, state: w.state(), counts: w.watch.counts}
	if len(w.failures) == 0 {
		w.handOver()
	}
	r.failures = w.failures
	return r
}

// judgeSettled judges what is there when the world has settled.
func (w *world) judgeSettled() {
	w.judgeJobsAtEnd()
	w.judgeServicesAtEnd()
	w.judgeRedisAtEnd()
	w.judgeLossesAtEnd()
}

// handOver lets another process lead, which must find nothing to do: what is settled stays so.
func (w *world) handOver() {
	before, state := w.mark(), w.state()
	leader := w.leader()
	if leader == nil {
		w.fail("nobody leads in the end")
		return
	}
	w.note("settled; %s is stopped, and another takes over", leader.uid)
	leader.paused = true
	w.settle(&[]change{})
	if after := w.mark(); after != before {
		w.fail("the world was settled, yet the next leader sent %d requests", after[2]-before[2])
	}
	if after := w.state(); after != state {
		w.fail("the world was settled, yet the next leader changed it from\n%sto\n%s", state, after)
	}
}

func (w *world) String() string { return fmt.Sprintf("%s, seed %d", w.scenario.name, w.plan.seed) }
