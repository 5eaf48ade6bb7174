package sim

import (
	"fmt"
	"strings"
	"testing"
)

// TestCrashBeforeEveryWrite kills the leader before its k-th request that changes something, for every k of the
// undisturbed run. Either the same replica comes back with empty memory, or another one takes over.
func TestCrashBeforeEveryWrite(t *testing.T) {
	l := newLab(t)
	for i := range l.scenarios {
		s, want := &l.scenarios[i], l.undisturbed[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if want.sent < 5 {
				t.Fatalf("only %d writes: the scenario does not do what it says", want.sent)
			}
			for k := 1; k <= want.sent; k++ {
				for _, restart := range []bool{true, false} {
					l.crash(t, s, want, k, restart)
				}
			}
			t.Logf("killed before each of %d writes", want.sent)
		})
	}
}

func (l *lab) crash(t *testing.T, s *scenario, want result, k int, restart bool) {
	t.Helper()
	p := undisturbed()
	p.restart = restart
	run := func(trace *[]string) result {
		w := newWorld(l, s, p)
		w.killBefore, w.trace = k, trace
		return play(w)
	}
	if wrong := s.compare(want, run(nil), false); len(wrong) > 0 {
		var trace []string
		run(&trace)
		t.Errorf("killed before write %d (restart %t): %s\n%s", k, restart, strings.Join(wrong, "\n"), fmt.Sprint(tail(trace, 40)))
	}
}
