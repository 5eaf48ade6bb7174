package rayservice

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestATakeOverIsUndone(t *testing.T) {
	back := image("ray:1")
	for name, c := range map[string]struct {
		at     string
		change func(*world)
		want   []string
	}{
		"when the spec goes back (RS-054)": {
			at: "50/50 50/50", change: func(w *world) { w.change(back) },
			want: []string{"50/50 50/50", "100/50 50/50", "100/75 50/25", "100/100 50/0", "100/100 0/0"},
		},
		"near its end": {
			at: "50/25 100/75", change: func(w *world) { w.change(back) },
			want: []string{"50/25 100/75", "50/50 100/50", "50/50 50/50", "100/50 50/50", "100/75 50/25", "100/100 50/0", "100/100 0/0"},
		},
		"before it got traffic": {
			at: "100/100 50/0", change: func(w *world) { w.change(back) },
			want: []string{"100/100 50/0", "100/100 0/0"},
		},
		"when no second cluster is wanted any more": {
			at: "50/50 50/50", change: func(w *world) { w.change(strategy(rayv1.RayServiceUpgradeNone)) },
			want: []string{"50/50 50/50", "100/50 50/50"},
		},
		"when it took too long": {
			at: "50/50 50/50", change: func(w *world) { w.change(annotated(rayv1.AnnotationUpgradeTimeout, "1")) },
			want: []string{"50/50 50/50", "100/50 50/50", "100/75 50/25", "100/100 50/0", "100/100 0/0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, before, _ := upgradingWorld(t, c.at)
			c.change(w)
			if diff := cmp.Diff(c.want, w.trace()); diff != "" {
				t.Errorf("shares on the way (-want +got):\n%s", diff)
			}
			if !w.rolledBack {
				t.Error("the condition RollbackInProgress was never True")
			}
			w.finished(t, before)
		})
	}
}

func TestATakeOverIsUndoneWithoutTheHelpOfThePendingCluster(t *testing.T) {
	for name, broken := range map[string]func(w *world, after string){
		"its head is dead (RS-057)": func(w *world, after string) { w.nodes[after].silent = true },
		"all its Pods are dead":     func(w *world, after string) { w.nodes[after].dead = true },
		"it is deleted":             func(w *world, after string) { without(after)(&w.s) },
		"it does not take another capacity": func(w *world, after string) {
			w.nodes[after].stuck = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, before, after := upgradingWorld(t, "50/50 50/50")
			broken(w, after)
			w.change(image("ray:1"))
			w.finished(t, before)
		})
	}
}

func TestATakeOverThatIsUndoneGoesOnWhenItIsWantedAgain(t *testing.T) {
	w, _, after := upgradingWorld(t, "50/50 50/50")
	w.change(image("ray:1"))
	w.until("100/75 50/25")
	w.change(image("ray:2"))
	w.passes(1)
	if w.rollsBackNow() {
		t.Error("the condition RollbackInProgress is still there (RS-055)")
	}
	w.finished(t, after)
	if got := w.s.Service.Status.ClusterIncarnations; got != 2 {
		t.Errorf("%d clusters were made, want 2", got)
	}
}

func TestAThirdSpecWaitsUntilTheSecondIsUndone(t *testing.T) {
	w, before, second := upgradingWorld(t, "50/50 50/50")
	w.change(image("ray:3"), config(fruit2))
	w.run("the second is undone", func() bool { return w.pending() != second })
	if w.shown() != "100/100 0/0" && w.shown() != "100/100 -" {
		t.Errorf("shares %s when the third begins, want the active cluster to have all (RS-056)", w.shown())
	}
	if !w.has(before, fruit) {
		t.Errorf("the active cluster was given the config of the third: %s", w.nodes[before].config)
	}
	w.settle()
	third := w.active()
	if third == before || third == second || !w.has(third, fruit2) {
		t.Errorf("%s serves with %s, want a third cluster with the new config", third, w.nodes[third].config)
	}
	w.finished(t, third)
}

func TestTheConfigOfARolledBackSpecGoesToTheActiveCluster(t *testing.T) {
	w, before, after := upgradingWorld(t, "50/50 50/50")
	w.change(image("ray:1"), config(fruit2))
	w.run("the active cluster has the config", func() bool { return w.has(before, fruit2) })
	if w.has(after, fruit2) {
		t.Error("the pending cluster was given the config too")
	}
	w.finished(t, before)
}
