package sim

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// options of the test: how many seeds, or which one, and of which scenarios.
func flags() (seeds, only, from *uint64, everything *bool) {
	return flag.Uint64("seeds", 1000, "how many seeds to play"), flag.Uint64("seed", 0, "the one seed to play, with its whole trace"),
		flag.Uint64("from", 1, "the first seed to play"),
		flag.Bool("all", false, "try every incident at every write of RayJobs and RayServices, too, which takes more than an hour")
}

var seedCount, onlySeed, firstSeed, playAll = flags()

// mutantSeeds is how many seeds at most are played without a protection.
const mutantSeeds = 10000

// shownFailures is how many failing seeds are shown.
const shownFailures = 3

// lot is what a history is drawn by.
type lot struct {
	seed uint64
	// services lots are for histories of RayServices.
	services bool
	broken   breakage
}

// serviceShare is how many seeds of other objects are played for one of RayServices, whose histories are the longest.
const serviceShare = 10

// TestSeeds plays one random history for each seed and compares it with the undisturbed one. A failing seed is played
// again by: go test ./test/sim -run 'TestSeeds$' -seed=N
func TestSeeds(t *testing.T) {
	playSeeds(t, newLab(t, all), lot{}, *seedCount)
}

// TestSeedsOfRayServices does the same for RayServices.
func TestSeedsOfRayServices(t *testing.T) {
	playSeeds(t, newLab(t, onlyServices), lot{services: true}, *seedCount/serviceShare)
}

func playSeeds(t *testing.T, l *lab, kind lot, count uint64) {
	if *onlySeed > 0 {
		kind.seed = *onlySeed
		s, p, _ := l.draw(kind)
		t.Logf("%s, %+v\n%s", s.name, p, strings.Join(l.trace(s, p), "\n"))
		for _, failure := range l.judge(kind) {
			t.Error(failure)
		}
		return
	}
	for _, failed := range l.search(*firstSeed, count, kind, shownFailures) {
		s, p, _ := l.draw(failed)
		t.Errorf("seed %d (%s): %s\n%s\nplay it again: go test ./test/sim -run '%s$' -seed=%d",
			failed.seed, s.name, strings.Join(l.judge(failed), "\n"), tail(l.trace(s, p), 60), t.Name(), failed.seed)
	}
}

// rushSteps is more than a job takes from its beginning to its end.
const rushSteps = 300

// draw returns scenario and plan of a history, and the place of the scenario in the laboratory.
func (l *lab) draw(of lot) (*scenario, plan, int) {
	place := l.place(of)
	faults := allFaults()
	if of.services {
		faults = serviceFaults()
	}
	s, p := &l.scenarios[place], planOf(of.seed, faults)
	p.hasty = p.hasty && s.anyTime
	if s.rush {
		p.hasty, p.length, p.rushAt = true, 2*rushSteps, int(of.seed%rushSteps)
	}
	p.broken = of.broken
	return s, p, place
}

// place is that of the scenario of a history. Of those that are not of RayServices, one in four is about clusters: there are
// fewer scenarios of them, but everything else rests on clusters. What is broken is looked for where it matters.
func (l *lab) place(of lot) int {
	from := l.ofJobs
	dense := of.seed - of.seed/4 // counts those that are no multiples of four
	switch {
	case of.broken == noAdmission:
		return slices.IndexFunc(l.scenarios, func(s scenario) bool { return s.name == lostSidecar })
	case of.broken == noCensus:
		return slices.IndexFunc(l.scenarios, func(s scenario) bool { return s.name == unwatchedScenario })
	case of.services:
		from, dense = l.ofServices, of.seed
	case of.broken == noSubmission, of.broken == noGuard:
	case of.broken != intact:
		from = l.ofClusters
	case of.seed%4 == 0:
		from, dense = l.ofClusters, of.seed/4
	}
	return from[dense%uint64(len(from))]
}

// judge plays a history and returns what is wrong.
func (l *lab) judge(of lot) []string {
	s, p, place := l.draw(of)
	return s.compare(l.undisturbed[place](), l.run(s, p), p.hasty)
}

// search plays seeds on all processors until enough have failed, and returns those.
func (l *lab) search(from, count uint64, kind lot, enough int) []lot {
	var next atomic.Uint64
	var mu sync.Mutex
	var failed []lot
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				one := kind
				one.seed = from + next.Add(1) - 1
				if one.seed >= from+count {
					return
				}
				wrong := l.judge(one)
				mu.Lock()
				if len(wrong) > 0 {
					failed = append(failed, one)
				}
				over := len(failed) >= enough
				mu.Unlock()
				if over {
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// TestSameSeedSameHistory plays seeds twice: without that, a failing seed could not be played again.
func TestSameSeedSameHistory(t *testing.T) {
	l := newLab(t, all)
	for seed := uint64(1); seed <= 40; seed++ {
		s, p, _ := l.draw(lot{seed: seed, services: seed%4 == 1})
		first, second := l.trace(s, p), l.trace(s, p)
		for i := range max(len(first), len(second)) {
			if i >= len(first) || i >= len(second) || first[i] != second[i] {
				t.Fatalf("seed %d: the histories part at line %d:\n%s\n---\n%s", seed, i, around(first, i), around(second, i))
			}
		}
	}
}

func around(lines []string, i int) string {
	return strings.Join(lines[max(0, min(i, len(lines))-5):min(len(lines), i+3)], "\n")
}

// TestWhatIsSwitchedOffIsMissed breaks one protection after another: each time some history must go wrong.
func TestWhatIsSwitchedOffIsMissed(t *testing.T) {
	l := newLab(t, all)
	for _, broken := range []breakage{noFence, noBarrier, noPreconditions, noNames, noSubmission, noGuard, noAdmission, noCensus} {
		t.Run(fmt.Sprintf("without %s", broken), func(t *testing.T) { l.mustGoWrong(t, lot{broken: broken}) })
	}
	t.Run(fmt.Sprintf("without %s, with a RayService", noFence), func(t *testing.T) { l.mustGoWrong(t, lot{broken: noFence, services: true}) })
}

func (l *lab) mustGoWrong(t *testing.T, kind lot) {
	failed := l.search(1, mutantSeeds, kind, 1)
	if len(failed) == 0 {
		t.Fatalf("no history of %d went wrong without %s", mutantSeeds, kind.broken)
	}
	t.Logf("seed %d: %s", failed[0].seed, l.judge(failed[0])[0])
}

// TestWhatAnUpgradeRestsOnIsMissed breaks what an upgrade of a RayService rests on: each time it must go wrong, by itself or
// with one incident.
func TestWhatAnUpgradeRestsOnIsMissed(t *testing.T) {
	l := newLab(t, onlyServices)
	for broken, name := range map[breakage]string{noReport: upgradeScenario, noPods: lateProxies, noSight: upgradeScenario} {
		t.Run(fmt.Sprintf("without %s", broken), func(t *testing.T) {
			i := slices.IndexFunc(l.scenarios, func(s scenario) bool { return s.name == name })
			s, want := &l.scenarios[i], l.undisturbed[i]()
			for _, p := range append([]plan{undisturbed()}, oneIncident(want)...) {
				p.broken = broken
				if wrong := s.compare(want, l.run(s, p), false); len(wrong) > 0 {
					t.Logf("at write %d, %s: %s", p.at, p.incident.name, wrong[0])
					return
				}
			}
			t.Fatalf("no history went wrong without %s", broken)
		})
	}
}

// oneIncident are the plans of all histories with a single incident at a write after the first change.
func oneIncident(want result) []plan {
	var plans []plan
	for _, incident := range incidents() {
		for _, at := range want.spots {
			if at > want.begun {
				p := undisturbed()
				p.incident, p.at = incident, at
				plans = append(plans, p)
			}
		}
	}
	return plans
}
