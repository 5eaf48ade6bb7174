package rayservice

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// trace runs until the pending cluster has taken over or is gone, and returns what the status has shown on the way.
func (w *world) trace() []string {
	w.t.Helper()
	w.run("an upgrade begins", func() bool { return w.pending() != "" && !strings.HasSuffix(w.shown(), "-") })
	all := []string{w.shown()}
	w.run("the upgrade ends", func() bool {
		w.rolledBack = w.rolledBack || w.rollsBackNow()
		if now := w.shown(); w.pending() != "" && now != all[len(all)-1] {
			all = append(all, now)
		}
		return w.pending() == ""
	})
	return all
}

// until runs until the status shows these shares.
func (w *world) until(shown string) {
	w.t.Helper()
	w.run("the shares become "+shown, func() bool { return w.shown() == shown })
}

// passes makes some passes without waiting for anything.
func (w *world) passes(number int) {
	for range number {
		w.pass()
		w.now = w.now.Add(time.Second)
	}
}

// upgradingWorld is a world in the middle of an upgrade to another image, at some shares. Surge is 50, step 25, interval 5.
func upgradingWorld(t failer, shown string, edits ...func(*Snapshot)) (w *world, before, after string) {
	w = servingWorld(t, steps(50, 25, 5))
	before = w.active()
	w.change(image("ray:2"))
	w.change(edits...)
	w.until(shown)
	return w, before, w.pending()
}

// finished checks that one cluster serves alone, by the route, the Service and the status, and that it has all its replicas.
func (w *world) finished(t *testing.T, cluster string) {
	t.Helper()
	w.settle()
	if w.active() != cluster || w.pending() != "" || w.leads() != cluster {
		t.Errorf("active %q, pending %q, the Service leads to %q; want all to be %q alone", w.active(), w.pending(), w.leads(), cluster)
	}
	if len(w.s.Clusters) != 1 {
		t.Errorf("there are %d clusters, want one", len(w.s.Clusters))
	}
	if node := w.nodes[cluster]; node.running != modelReplicas {
		t.Errorf("%d replicas run on it, want %d", node.running, modelReplicas)
	}
	if w.rollsBackNow() {
		t.Error("the condition RollbackInProgress is still there")
	}
}

func TestSharesMoveInTurns(t *testing.T) {
	for name, c := range map[string]struct {
		surge, step int32
		want        []string
	}{
		"surge 50, step 25, as measured (RS-049)": {50, 25, []string{"100/100 0/0", "100/100 50/0", "100/75 50/25", "100/50 50/50", "50/50 50/50",
			"50/50 100/50", "50/25 100/75", "50/0 100/100"}},
		"all at once":       {100, 100, []string{"100/100 0/0", "100/100 100/0", "100/0 100/100"}},
		"surge 40, step 40": {40, 40, []string{"100/100 0/0", "100/100 40/0", "100/60 40/40", "60/60 40/40", "60/60 80/40", "60/20 80/80", "20/20 80/80", "20/20 100/80", "20/0 100/100"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := servingWorld(t, steps(c.surge, c.step, 5))
			w.change(image("ray:2"))
			if diff := cmp.Diff(c.want, w.trace()); diff != "" {
				t.Errorf("shares on the way (-want +got):\n%s", diff)
			}
			w.finished(t, w.active())
			if w.shown() != "100/100 -" {
				t.Errorf("shares at the end are %s, want 100/100 (RS-051)", w.shown())
			}
			if want := w.active() + "-serve-svc=100 "; w.weights() != want {
				t.Errorf("route %s, want %s", w.weights(), want)
			}
		})
	}
}

func TestAFirstStartMakesTheGatewayFirstAndTheRouteLast(t *testing.T) {
	w := newWorld(t, steps(50, 25, 5))
	w.passes(1)
	if w.s.Gateway == nil || w.s.Route != nil {
		t.Errorf("after the first pass: Gateway %v, route %v; want the Gateway alone", w.s.Gateway != nil, w.weights())
	}
	w.settle()
	if want := w.active() + "-serve-svc=100 "; w.weights() != want {
		t.Errorf("route %s, want %s (RS-048)", w.weights(), want)
	}
	if diff := cmp.Diff([]string{"all"}, w.nodes[w.active()].puts); diff != "" {
		t.Errorf("what the first cluster was asked for (-want +got):\n%s", diff)
	}
	if history := w.s.Service.Status.CutOvers; len(history) != 1 || history[0].Reason != rayv1.CutOverFirstStart {
		t.Errorf("history %v, want the first start alone", history)
	}
}

func TestTrafficNeedsReplicas(t *testing.T) {
	w := servingWorld(t, steps(50, 25, 5))
	w.change(image("ray:2"))
	w.run("the pending cluster is there", func() bool { return w.nodes[w.pending()] != nil })
	pending := w.pending()
	w.nodes[pending].stuck = true
	w.passes(60)
	if w.shown() != "100/100 50/0" {
		t.Errorf("without replicas, shares %s; want 100/100 50/0 (RS-067)", w.shown())
	}
	if diff := cmp.Diff([]string{"0", "50"}, w.nodes[pending].puts); diff != "" {
		t.Errorf("what the pending cluster was asked for (-want +got):\n%s", diff)
	}
	w.nodes[pending].stuck = false
	w.finished(t, pending)
}

func TestNothingMovesWhile(t *testing.T) {
	for name, c := range map[string]struct {
		at string
		// broken makes it so, and mended ends it.
		broken, mended func(w *world, before, after string)
		wantStalled    string
	}{
		"the application of the pending cluster does not run (RS-052)": {
			at:     "100/75 50/25",
			broken: func(w *world, _, after string) { w.nodes[after].status = "UNHEALTHY" },
			mended: func(w *world, _, after string) { w.nodes[after].status = "RUNNING" },
		},
		"Serve on the pending cluster does not answer": {
			at:     "100/50 50/50",
			broken: func(w *world, _, after string) { w.nodes[after].silent = true },
			mended: func(w *world, _, after string) { w.nodes[after].silent = false },
		},
		"the Gateway is not programmed (RS-053)": {
			at: "100/100 0/0",
			broken: func(w *world, _, _ string) {
				w.gatewayDown = true
				w.s.Gateway.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, ObservedGeneration: 1},
					{Type: "Programmed", Status: metav1.ConditionFalse, Reason: "AddressNotUsable"}}
			},
			mended:      func(w *world, _, _ string) { w.gatewayDown = false },
			wantStalled: rayv1.ReasonGatewayNotReady,
		},
		"the route is in use as an older generation had it (RS-094)": {
			at: "100/50 50/50",
			broken: func(w *world, _, _ string) {
				w.gatewayDown = true
				for i := range w.s.Route.Status.Parents[0].Conditions {
					w.s.Route.Status.Parents[0].Conditions[i].ObservedGeneration--
				}
			},
			mended: func(w *world, _, _ string) { w.gatewayDown = false },
		},
		"the route is refused": {
			at: "100/50 50/50",
			broken: func(w *world, _, _ string) {
				w.gatewayDown = true
				w.s.Route.Status.Parents[0].Conditions[1].Status = metav1.ConditionFalse
			},
			mended:      func(w *world, _, _ string) { w.gatewayDown = false },
			wantStalled: rayv1.ReasonGatewayNotReady,
		},
		"the spec is invalid": {
			at: "100/50 50/50",
			broken: func(w *world, _, _ string) {
				w.change(spec(func(s *rayv1.RayServiceSpec) { s.RayClusterDeletionDelaySeconds = ptr.To[int32](-1) }))
			},
			mended: func(w *world, _, _ string) {
				w.change(spec(func(s *rayv1.RayServiceSpec) { s.RayClusterDeletionDelaySeconds = nil }))
			},
			wantStalled: rayv1.ReasonSpecInvalid,
		},
		"the config cannot be read": {
			at:          "100/50 50/50",
			broken:      func(w *world, _, _ string) { w.change(config("applications: [")) },
			mended:      func(w *world, _, _ string) { w.change(config(fruit)) },
			wantStalled: rayv1.ReasonConfigInvalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, before, after := upgradingWorld(t, c.at)
			c.broken(w, before, after)
			w.passes(60)
			if w.shown() != c.at || w.stalled() != c.wantStalled {
				t.Errorf("shares %s and stalled %q, want %s and %q", w.shown(), w.stalled(), c.at, c.wantStalled)
			}
			if w.last.Status != nil || len(w.last.Actions) > 0 {
				t.Errorf("passes find no rest: %v", verbs(w.last.Actions))
			}
			c.mended(w, before, after)
			w.finished(t, after)
		})
	}
}

func TestACapacityStepSendsTheActiveClusterItsOwnConfig(t *testing.T) {
	w, before, after := upgradingWorld(t, "50/50 50/50", config(fruit2))
	w.passes(2)
	if !w.has(before, fruit) || !w.has(after, fruit2) {
		t.Errorf("the active cluster has %s, the pending one %s; each must have its own (RS-066)", w.nodes[before].config, w.nodes[after].config)
	}
	if diff := cmp.Diff([]string{"all", "100", "50"}, w.nodes[before].puts); diff != "" {
		t.Logf("what the active cluster was asked for (-want +got):\n%s", diff)
	}
	if last := w.nodes[before].puts; last[len(last)-1] != "50" {
		t.Errorf("the active cluster was asked for %v, want 50 at last", last)
	}
}

func TestTheEventsOfATakeOver(t *testing.T) {
	w := servingWorld(t, steps(50, 25, 5))
	told := map[string]int{}
	w.watch = func(d Decision) {
		for _, event := range d.Events {
			told[event.Reason]++
		}
	}
	w.change(image("ray:2"))
	w.trace()
	// 0 to 50 and 50 to 100 on the pending cluster, 100 to 50 on the active one.
	if told["UpdatedServeTargetCapacity"] != 3 {
		t.Errorf("events %v, want one for each of the three changes of capacity (RS-W19)", told)
	}
}

func TestTheHistoryOfAStepwiseTakeOver(t *testing.T) {
	w, before, after := upgradingWorld(t, "50/0 100/100")
	w.finished(t, after)
	history := w.s.Service.Status.CutOvers
	if len(history) != 2 || history[0].From != before || history[0].To != after || history[0].Reason != rayv1.CutOverUpgrade {
		t.Errorf("history %v, want the first start and one upgrade", history)
	}
	if w.s.service(serveService).Annotations[rayv1.AnnotationSwitchedAt] != w.s.Route.Annotations[rayv1.AnnotationSwitchedAt] {
		t.Error("the Service and the route tell of different cut-overs")
	}
	w.change(strategy(rayv1.RayServiceNewCluster))
	w.settle()
	if now := w.s.Service.Status.CutOvers; !slices.EqualFunc(now, history, func(a, b rayv1.RayServiceCutOver) bool { return a.To == b.To }) {
		t.Errorf("history %v, want no other cut-over than %v", now, history)
	}
}
