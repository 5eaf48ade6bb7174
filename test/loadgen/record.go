package loadgen

import (
	"slices"
	"sync"
	"time"
)

// maxFailures is how many failures of a kind are told in full, for each phase.
const maxFailures = 20

// Summary is what became of all requests so far.
type Summary struct {
	// Phases are in the order in which they began.
	Phases []Phase `json:"phases"`
}

// Phase is a time with a name. A request belongs to the phase in which it was started.
type Phase struct {
	Name  string           `json:"name"`
	Since time.Time        `json:"since"`
	Kinds map[string]Tally `json:"kinds"`
}

// Tally counts the requests of one kind.
type Tally struct {
	Sent     int `json:"sent"`
	UnderWay int `json:"underWay"`
	Failed   int `json:"failed"`
	// Slowest, Half and Most are of the requests that were answered: the slowest, the 50th and the 99th percentile.
	Slowest time.Duration `json:"slowest"`
	Half    time.Duration `json:"p50"`
	Most    time.Duration `json:"p99"`
	// Answers counts the texts of the answers.
	Answers map[string]int `json:"answers"`
	// Connections counts the connections that were opened.
	Connections int `json:"connections"`
	// EndedByServer counts kept connections that the server had closed before they were to be used again. No request
	// was lost with them.
	EndedByServer int `json:"endedByServer"`
	// Failures are the first failures.
	Failures []Failure `json:"failures,omitempty"`
}

// Failure is a request that was not answered with status 200 in time.
type Failure struct {
	// Started is when the request was started, and After how long it took to fail.
	Started time.Time     `json:"started"`
	After   time.Duration `json:"after"`
	Text    string        `json:"text"`
}

// Recorder counts requests. NewRecorder makes one.
type Recorder struct {
	mutex  sync.Mutex
	phases []*phase
}

type phase struct {
	name  string
	since time.Time
	kinds map[string]*tally
}

type tally struct {
	Tally
	took []time.Duration
}

// NewRecorder returns a recorder that is in a phase of that name.
func NewRecorder(first string) *Recorder {
	r := &Recorder{}
	r.Begin(first)
	return r
}

// Begin begins a phase.
func (r *Recorder) Begin(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.phases = append(r.phases, &phase{name: name, since: time.Now(), kinds: map[string]*tally{}})
}

// attempt is a request under way.
type attempt struct {
	recorder *Recorder
	tally    *tally
	started  time.Time
}

func (r *Recorder) begin(kind string) *attempt {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.phases[len(r.phases)-1]
	t := now.kinds[kind]
	if t == nil {
		t = &tally{Tally: Tally{Answers: map[string]int{}}}
		now.kinds[kind] = t
	}
	t.Sent++
	return &attempt{recorder: r, tally: t, started: time.Now()}
}

func (a *attempt) opened() { a.change(func(t *tally) { t.Connections++ }) }

func (a *attempt) endedByServer(count int) { a.change(func(t *tally) { t.EndedByServer += count }) }

func (a *attempt) end(text string, err error) {
	took := time.Since(a.started)
	a.change(func(t *tally) {
		if err == nil {
			t.took = append(t.took, took)
			t.Answers[text]++
			return
		}
		t.Failed++
		if len(t.Failures) < maxFailures {
			t.Failures = append(t.Failures, Failure{Started: a.started, After: took, Text: err.Error()})
		}
	})
}

func (a *attempt) change(f func(*tally)) {
	a.recorder.mutex.Lock()
	defer a.recorder.mutex.Unlock()
	f(a.tally)
}

// Summary returns a copy of what was counted.
func (r *Recorder) Summary() Summary {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var s Summary
	for _, p := range r.phases {
		kinds := map[string]Tally{}
		for name, t := range p.kinds {
			kinds[name] = t.sum()
		}
		s.Phases = append(s.Phases, Phase{Name: p.name, Since: p.since, Kinds: kinds})
	}
	return s
}

func (t *tally) sum() Tally {
	sum := t.Tally
	sum.UnderWay = t.Sent - t.Failed - len(t.took)
	sum.Answers = map[string]int{}
	for text, count := range t.Answers {
		sum.Answers[text] = count
	}
	sum.Failures = slices.Clone(t.Failures)
	if len(t.took) > 0 {
		took := slices.Sorted(slices.Values(t.took))
		sum.Half, sum.Most, sum.Slowest = percentile(took, 50), percentile(took, 99), took[len(took)-1]
	}
	return sum
}

// percentile takes the nearest rank.
func percentile(sorted []time.Duration, percent int) time.Duration {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
