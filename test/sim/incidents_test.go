package sim

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// incident is one fault at one request that changes something.
type incident struct {
	name string
	// restart brings a process that died back at once; otherwise another one has to take over.
	restart bool
	strike  func(p *process, c *call)
}

// aWhile is how long a cache stands still; passes that wait for them are repeated ten times a second.
const aWhile = 10 * time.Second

// incidents are tried at every request of every scenario.
func incidents() []incident {
	dies := func(p *process, c *call) {
		p.world.calls = p.world.calls[:len(p.world.calls)-1] // it never leaves
		p.world.doomed = p
	}
	return []incident{
		{name: "the leader dies before it, and comes back with empty memory", restart: true, strike: dies},
		{name: "the leader dies before it, and another one takes over", strike: dies},
		{name: "its answer is lost, and the cache of its kind stands still", strike: func(p *process, c *call) {
			c.lost = apierrors.NewTimeoutError("the answer is lost", 1)
			p.deaf, p.deafTo = p.world.mono+aWhile, c.kind
		}},
		{name: "its answer is lost, the look after it fails, and the cache of its kind stands still", strike: func(p *process, c *call) {
			c.lost, p.blind = errReset(), true
			p.deaf, p.deafTo = p.world.mono+aWhile, c.kind
		}},
		{name: "it never arrives, and nobody says so", strike: func(p *process, c *call) {
			c.lost, c.carryOut = errReset(), func() (any, error) { return nil, nil }
		}},
		{name: "it is refused", strike: func(p *process, c *call) {
			c.carryOut = func() (any, error) { return nil, apierrors.NewTooManyRequests("slow down", 1) }
		}},
		{name: "the leader is stopped while it is on its way, another one does the work, and then it arrives", strike: stopped},
		{name: "it is on its way when another one takes the lease, and both believe that they lead", strike: func(p *process, c *call) {
			c.held, p.leaseCut, p.world.lease.holder = true, true, ""
			p.world.aftermath = func() { p.leaseCut = false; p.world.late(p, c) }
		}},
	}
}

// answerIncident is one fault at one answer of Ray that is news.
type answerIncident struct {
	name    string
	restart bool
	// strike tells whether the answer is not heard.
	strike func(p *process) (unheard bool)
}

// atAnswer lets happen what is to happen at an answer of Ray, and tells whether it is not heard.
func (w *world) atAnswer(p *process, before, after poll.Observation) bool {
	if !tells(before, after) {
		return false
	}
	w.heard++
	if w.heard != w.plan.atAnswer {
		return false
	}
	w.note("incident: %s: %s", w.plan.answer.name, tidings(after))
	return w.plan.answer.strike(p)
}

// answerIncidents are tried at every answer of Ray that is news, in every scenario with a RayJob or RayService.
func answerIncidents() []answerIncident {
	dies := func(p *process) bool { p.world.doomed = p; return true }
	return []answerIncident{
		{name: "the leader dies instead of hearing it, and comes back with empty memory", restart: true, strike: dies},
		{name: "the leader dies instead of hearing it, and another one takes over", strike: dies},
		{name: "the leader hears it and stops, another one does the work, and then it goes on", strike: func(p *process) bool {
			p.paused = true
			p.world.aftermath = func() { p.paused = false; p.world.lapse(p) }
			return false
		}},
		{name: "Ray answers nobody for a while", strike: func(p *process) bool {
			p.world.raySilent = p.world.mono + aWhile
			return true
		}},
	}
}

// stopped stops a process until everything is settled without it.
func stopped(p *process, c *call) {
	p.paused, c.held = true, true
	p.world.aftermath = func() { p.paused = false; p.world.late(p, c) }
}

// late lets a request arrive when its sender has learnt that it leads no more.
func (w *world) late(p *process, c *call) {
	w.lapse(p)
	c.held = false
	if w.holder.uid != p.uid {
		w.arrive(c)
	}
}

// TestIncidentAtEveryWrite tries each incident at each request that changes something, of each scenario. What is written for
// a cluster is the same for every RayJob and RayService, and tried in the scenarios of clusters.
func TestIncidentAtEveryWrite(t *testing.T) {
	l := newLab(t, all)
	for i := range l.scenarios {
		s := &l.scenarios[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := l.undisturbed[i]()
			if want.sent < 5 {
				t.Fatalf("only %d writes: the scenario does not do what it says", want.sent)
			}
			tried := 0
			try := func(kind, at, begun int, p plan) {
				if !*playAll && s.leavesOut(kind, at, begun, i) {
					return
				}
				tried++
				if wrong := s.compare(want, l.run(s, p), false); len(wrong) > 0 {
					t.Errorf("at write %d, answer %d, %s%s: %s\n%s", p.at, p.atAnswer, p.incident.name, p.answer.name,
						strings.Join(wrong, "\n"), tail(l.trace(s, p), 40))
				}
			}
			for kind, incident := range incidents() {
				for _, at := range want.spots {
					p := undisturbed()
					p.incident, p.at = incident, at
					try(kind, at, want.begun, p)
				}
			}
			for kind, incident := range answerIncidents() {
				for at := 1; at <= want.heard; at++ {
					p := undisturbed()
					p.answer, p.atAnswer = incident, at
					try(kind, at, want.begunHeard, p)
				}
			}
			t.Logf("%d incidents at %d writes and %d answers of Ray", tried, len(want.spots), want.heard)
		})
	}
}

// One of so many incidents is tried with RayServices, whose histories are the longest, and with RayJobs; each scenario takes
// other ones. With clusters, their deletion and their heads all are.
const (
	rare   = 96
	seldom = 3
)

// leavesOut tells whether an incident at a write or an answer is left out. In the plain start and the plain upgrade none is;
// all other scenarios begin with the same start. The rush of goals, by far the longest, is left to the seeds.
func (s *scenario) leavesOut(kind, at, begun, turn int) bool {
	switch {
	case s.ofJobs:
		return (at+5*kind+turn)%seldom != 0
	case !s.ofServices, s.name == startScenario:
		return false
	case at <= begun, s.rush:
		return true
	default:
		return s.name != upgradeScenario && (at+5*kind+turn)%rare != 0
	}
}
