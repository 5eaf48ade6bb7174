package selfcheck

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/heliostat-io/heliostat/internal/rights"
)

func pods() rights.Right    { return rights.Right{Verb: "create", Resource: "pods", Namespace: "a"} }
func secrets() rights.Right { return rights.Right{Verb: "get", Resource: "secrets", Namespace: "a"} }

// world is an API server, a clock, and what the Checker said.
type world struct {
	*Checker
	clock *testingclock.FakeClock

	mu      sync.Mutex
	refused []rights.Right
	away    bool
	asked   []rights.Right
	log     []string
	told    [][]rights.Right
}

// start runs a Checker until it rests for the first time.
func start(t *testing.T, refused ...rights.Right) *world {
	w := &world{clock: testingclock.NewFakeClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), refused: refused}
	w.Checker = New(Options{
		Needed: []rights.Right{pods(), secrets()}, Clock: w.clock, May: w.may,
		Tell: func(missing []rights.Right) { w.told = append(w.told, missing) },
		Log:  funcr.New(func(_, text string) { w.log = append(w.log, text) }, funcr.Options{}),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	synctest.Wait()
	return w
}

func (w *world) may(_ context.Context, right rights.Right) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, right)
	if w.away {
		return false, errors.New("connection refused")
	}
	return !slices.Contains(w.refused, right), nil
}

// after lets time pass and returns what was asked in it.
func (w *world) after(d time.Duration) []rights.Right {
	w.asked = nil
	w.clock.Step(d)
	synctest.Wait()
	return w.asked
}

func (w *world) says(word string) (count int) {
	for _, line := range w.log {
		if strings.Contains(line, word) {
			count++
		}
	}
	return count
}

func TestAMissingRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, pods())
		if len(w.asked) != 2 {
			t.Errorf("at the start all is asked for, not %v", w.asked)
		}
		if w.says(`"right"="create pods in namespace a" "next"="allow it in the operator's ClusterRole, or its Role in namespace a"`) != 1 {
			t.Errorf("the log says %q", w.log)
		}
		const series = `
# HELP heliostat_missing_rights 1 for each right that the operator needs and does not have, as the API server says when it is asked.
# TYPE heliostat_missing_rights gauge
heliostat_missing_rights{group="",namespace="a",resource="pods",verb="create"} 1
`
		if err := testutil.CollectAndCompare(w.Checker, strings.NewReader(series)); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([][]rights.Right{{pods()}}, w.told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if asked := w.after(firstPause); !slices.Equal(asked, []rights.Right{pods()}) {
			t.Errorf("only what is missing is asked again, not %v", asked)
		}
		if asked := w.after(firstPause); len(asked) > 0 {
			t.Errorf("pauses grow, but %v was asked", asked)
		}
		w.refused = nil
		if asked := w.after(firstPause); len(asked) != 1 || testutil.CollectAndCount(w.Checker) != 0 || w.says("was missing") != 1 {
			t.Errorf("a right that was granted is missing still: asked %v, log %q", asked, w.log)
		}
		if asked := w.after(time.Hour); len(asked) > 0 {
			t.Errorf("all is well, and %v was asked", asked)
		}
		if w.says("lacks a right") != 1 || len(w.told) != 1 {
			t.Errorf("what is known is told once: %q, %v", w.log, w.told)
		}
	})
}

func TestARefusedWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		before     time.Duration
		suspicions int
		want       map[time.Duration]int
	}{
		"given a round long ago, all is asked at once":       {time.Hour, 1, map[time.Duration]int{0: 2}},
		"given a round just now, all is asked after a while": {time.Second, 3, map[time.Duration]int{0: 0, betweenRounds: 2}},
		"given no refusal, nothing is asked":                 {time.Hour, 0, map[time.Duration]int{0: 0, betweenRounds: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t)
				w.after(tc.before)
				w.refused = []rights.Right{secrets()}
				for range tc.suspicions {
					w.Suspect()
				}
				for _, wait := range []time.Duration{0, betweenRounds} {
					if want, looked := tc.want[wait]; looked {
						if asked := w.after(wait); len(asked) != want {
							t.Errorf("after %s it asked %v, want %d questions", wait, asked, want)
						}
					}
				}
				if missing := testutil.CollectAndCount(w.Checker); missing != min(tc.suspicions, 1) {
					t.Errorf("%d rights are missing", missing)
				}
			})
		})
	}
}

func TestAnAPIServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, pods())
		w.away = true
		w.after(firstPause)
		if w.says("lacks a right") != 1 || w.says("was missing") != 0 || testutil.CollectAndCount(w.Checker) != 1 {
			t.Errorf("no answer changes what is known: %q", w.log)
		}
		w.away = false
		if asked := w.after(2 * firstPause); len(asked) != 1 {
			t.Errorf("what was not answered is asked again, not %v", asked)
		}
	})
}
