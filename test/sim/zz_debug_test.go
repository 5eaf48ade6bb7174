package sim

import (
	"flag"
	"strings"
	"testing"
)

var stride = flag.Int("stride", 1, "")
var dbg = flag.String("dbg", "", "scenario")

func TestDebug(t *testing.T) {
	l := newLab(t, onlyServices)
	for i := range l.scenarios {
		s := &l.scenarios[i]
		if *dbg != "" && s.name != *dbg {
			continue
		}
		r := l.run(s, undisturbed())
		t.Logf("%s: sent %d spots %d heard %d failures %v", s.name, r.sent, len(r.spots), r.heard, r.failures)
		if *dbg != "" || len(r.failures) > 0 {
			tr := l.trace(s, undisturbed())
			if *dbg == "" {
				tr = tr[max(0, len(tr)-40):]
			}
			t.Logf("%s\n%s", strings.Join(tr, "\n"), r.state)
		}
	}
}

func TestDebugSeeds(t *testing.T) {
	l := newLab(t, onlyServices)
	n := 0
	for _, f := range l.search(*firstSeed, *seedCount, lot{services: true}, 40) {
		s, _, _ := l.draw(f)
		t.Logf("SEED %d (%s): %s", f.seed, s.name, strings.Join(l.judge(f), " | "))
		n++
	}
	t.Logf("%d failed", n)
}

func TestDebugIncidents(t *testing.T) {
	l := newLab(t, onlyServices)
	runs := 0
	for i := range l.scenarios {
		s, want := &l.scenarios[i], l.undisturbed[i]()
		if *dbg != "" && s.name != *dbg {
			continue
		}
		try := func(p plan) {
			runs++
			if wrong := s.compare(want, l.run(s, p), false); len(wrong) > 0 {
				t.Logf("INCIDENT (%s) at write %d, answer %d, %s%s: %s", s.name, p.at, p.atAnswer, p.incident.name, p.answer.name, strings.Join(wrong, " | "))
				if *dbg != "" {
					t.Logf("%s", strings.Join(tail2(l.trace(s, p), 60), "\n"))
				}
			}
		}
		for j, incident := range incidents() {
			for k, at := range want.spots {
				if i > 0 && at <= want.begun || *stride > 1 && (k+i+j)%*stride != 0 {
					continue
				}
				p := undisturbed()
				p.incident, p.at = incident, at
				try(p)
			}
		}
		for j, incident := range answerIncidents() {
			for at := 1; at <= want.heard; at++ {
				if i > 0 && at <= want.begunHeard || *stride > 1 && (at+i+j)%min(*stride, 4) != 0 {
					continue
				}
				p := undisturbed()
				p.answer, p.atAnswer = incident, at
				try(p)
			}
		}
	}
	t.Logf("%d runs", runs)
}

func tail2(x []string, n int) []string { return x[max(0, len(x)-n):] }

func TestDebugMutants(t *testing.T) {
	l := newLab(t, onlyServices)
	for _, broken := range []breakage{noFence, noBarrier, noPreconditions, noReport, noPods, noSight} {
		if *dbg != "" && string(broken) != *dbg {
			continue
		}
		failed := l.search(1, 300, lot{services: true, broken: broken}, 1)
		t.Logf("MUTANT %s: %d", broken, len(failed))
		for _, f := range failed {
			s, _, _ := l.draw(f)
			t.Logf("SEED %d (%s): %.600s", f.seed, s.name, strings.Join(l.judge(f), " | "))
		}
	}
}

func TestDebugCost(t *testing.T) {
	l := newLab(t, onlyServices)
	for i := range l.scenarios {
		s := &l.scenarios[i]
		if s.name != *dbg {
			continue
		}
		for range 60 {
			play(newWorld(l, s, undisturbed()))
		}
	}
}
