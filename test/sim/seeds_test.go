package sim

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// options of the test: how many seeds, or which one, and of which scenarios.
func flags() (seeds, only, from *uint64, open *bool) {
	return flag.Uint64("seeds", 5000, "how many seeds to play"), flag.Uint64("seed", 0, "the one seed to play, with its whole trace"),
		flag.Uint64("from", 1, "the first seed to play"), flag.Bool("open", false, "play the scenarios too that are known to go wrong")
}

var seedCount, onlySeed, firstSeed, playOpen = flags()

// mutantSeeds is how many seeds at most are played without a protection.
const mutantSeeds = 10000

// shownFailures is how many failing seeds are shown.
const shownFailures = 3

// TestSeeds plays one random history for each seed and compares it with the undisturbed one. A failing seed is played
// again by: go test ./test/sim -run TestSeeds -seed=N
func TestSeeds(t *testing.T) {
	l := newLab(t)
	if *onlySeed > 0 {
		s, p, _ := l.draw(*onlySeed, intact)
		t.Logf("%s, %+v\n%s", s.name, p, strings.Join(l.trace(s, p), "\n"))
		for _, failure := range l.judge(*onlySeed, intact) {
			t.Error(failure)
		}
		return
	}
	failed := l.search(*firstSeed, *seedCount, intact, shownFailures)
	for _, seed := range failed {
		s, p, _ := l.draw(seed, intact)
		t.Errorf("seed %d (%s): %s\n%s\nplay it again: go test ./test/sim -run TestSeeds -seed=%d",
			seed, s.name, strings.Join(l.judge(seed, intact), "\n"), tail(l.trace(s, p), 60), seed)
	}
}

// rushSteps is more than a job takes from its beginning to its end.
const rushSteps = 300

// draw returns scenario and plan of a seed, and the place of the scenario in the laboratory.
func (l *lab) draw(seed uint64, broken breakage) (*scenario, plan, int) {
	place := l.place(seed, broken)
	s, p := &l.scenarios[place], planOf(seed)
	p.hasty = p.hasty && s.anyTime
	if s.rush {
		p.hasty, p.length, p.rushAt = true, 2*rushSteps, int(seed%rushSteps)
	}
	p.broken = broken
	return s, p, place
}

// place is that of the scenario of a seed. One in four is about clusters: there are fewer scenarios of them, but everything
// else rests on clusters. What is broken is looked for where it matters.
func (l *lab) place(seed uint64, broken breakage) int {
	from := l.ofJobs
	dense := seed - seed/4 // counts those that are no multiples of four
	switch broken {
	case intact:
		if seed%4 == 0 {
			from, dense = l.ofClusters, seed/4
		}
	case noSubmission, noGuard:
	default:
		from = l.ofClusters
	}
	return from[dense%uint64(len(from))]
}

// judge plays a seed and returns what is wrong.
func (l *lab) judge(seed uint64, broken breakage) []string {
	s, p, place := l.draw(seed, broken)
	return s.compare(l.undisturbed[place], l.run(s, p), p.hasty)
}

// search plays seeds on all processors until enough have failed, and returns those.
func (l *lab) search(from, count uint64, broken breakage, enough int) []uint64 {
	var next atomic.Uint64
	var mu sync.Mutex
	var failed []uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := from + next.Add(1) - 1
				if seed >= from+count {
					return
				}
				wrong := l.judge(seed, broken)
				mu.Lock()
				if len(wrong) > 0 {
					failed = append(failed, seed)
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
	l := newLab(t)
	for seed := uint64(1); seed <= 30; seed++ {
		s, p, _ := l.draw(seed, intact)
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
	l := newLab(t)
	for _, broken := range []breakage{noFence, noBarrier, noPreconditions, noNames, noSubmission, noGuard} {
		t.Run(fmt.Sprintf("without %s", broken), func(t *testing.T) {
			failed := l.search(1, mutantSeeds, broken, 1)
			if len(failed) == 0 {
				t.Fatalf("no history of %d went wrong without %s", mutantSeeds, broken)
			}
			t.Logf("seed %d: %s", failed[0], l.judge(failed[0], broken)[0])
		})
	}
}
