package rayservice

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
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
func upgradingWorld(t *testing.T, shown string, edits ...func(*Snapshot)) (w *world, before, after string) {
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

func TestALostClusterIsReplacedInTheMiddle(t *testing.T) {
	for _, at := range []string{"100/100 0/0", "100/100 50/0", "100/75 50/25", "50/50 50/50", "50/0 100/100"} {
		t.Run("the active one at "+at+" (RS-065)", func(t *testing.T) {
			w, before, after := upgradingWorld(t, at)
			without(before)(&w.s)
			w.finished(t, after)
			if last := w.s.Service.Status.CutOvers[0]; last.To != after || last.Reason != rayv1.CutOverRecovery || last.From != before {
				t.Errorf("history %v, want that the pending cluster took over as a recovery", last)
			}
		})
		t.Run("the pending one at "+at, func(t *testing.T) {
			w, before, after := upgradingWorld(t, at)
			without(after)(&w.s)
			delete(w.nodes, after)
			w.passes(2)
			if weight := weightOf(w.s.Route, after); weight != 0 {
				t.Errorf("%d%% of the traffic still go to the cluster that is lost", weight)
			}
			w.settle()
			if w.active() == before {
				t.Error("the upgrade did not go on")
			}
			w.finished(t, w.active())
		})
	}
	t.Run("the active one, with a third spec", func(t *testing.T) {
		w, before, second := upgradingWorld(t, "50/50 50/50")
		without(before)(&w.s)
		w.change(image("ray:3"))
		w.passes(2)
		if want := second + "-serve-svc=100 "; !strings.HasPrefix(w.weights(), want) {
			t.Errorf("route %s, want all traffic at the cluster that is left", w.weights())
		}
		w.settle()
		if w.active() == second || w.pending() != "" {
			t.Errorf("active %s, want a third cluster", w.active())
		}
	})
}

func TestACapacityIsGivenBackWhenThePendingClusterTakesNoRequests(t *testing.T) {
	w, before, after := upgradingWorld(t, "50/50 50/50")
	w.nodes[after].dead = true
	w.passes(3)
	if w.s.Route == nil || weightOf(w.s.Route, after) != 0 || weightOf(w.s.Route, before) != 100 || !strings.HasPrefix(w.shown(), "100/100") {
		t.Errorf("route %s and shares %s, want all of the traffic and of the capacity at the active cluster", w.weights(), w.shown())
	}
	w.nodes[after].dead = false
	w.finished(t, after)
}

func TestAnActiveClusterThatTakesNoRequestsIsLeftWithoutPauses(t *testing.T) {
	w := servingWorld(t, steps(100, 10, 3600))
	before := w.active()
	w.change(image("ray:2"))
	w.until("100/100 100/0")
	w.nodes[before].dead = true
	began := w.now
	w.run("the pending cluster takes over", func() bool { return w.active() != before })
	if took := w.now.Sub(began); took > 5*time.Minute {
		t.Errorf("it took %s although nothing served", took)
	}
}

func TestAStrategyThatChangesInTheMiddle(t *testing.T) {
	newCluster := strategy(rayv1.RayServiceNewCluster)
	none := spec(func(s *rayv1.RayServiceSpec) { s.UpgradeStrategy = nil })
	for _, at := range []string{"100/100 0/0", "100/100 50/0", "100/75 50/25", "50/50 50/50", "50/0 100/100"} {
		for name, change := range map[string]func(*Snapshot){"to NewCluster": newCluster, "to nothing": none} {
			t.Run(name+" at "+at+" (RS-068)", func(t *testing.T) {
				w, _, after := upgradingWorld(t, at)
				w.change(change)
				w.finished(t, after)
				if w.s.Route != nil || w.s.Gateway != nil {
					t.Error("the Gateway or the route is still there")
				}
				if w.shown() != "- -" {
					t.Errorf("the status still speaks of shares: %s", w.shown())
				}
			})
		}
	}
	t.Run("and no Gateway works", func(t *testing.T) {
		w, _, after := upgradingWorld(t, "50/50 50/50")
		w.gatewayDown = true
		w.s.Gateway.Status.Conditions = nil
		w.change(newCluster)
		w.finished(t, after)
	})
	t.Run("to steps", func(t *testing.T) {
		w := servingWorld(t, steps(50, 25, 5), newCluster)
		w.change(image("ray:2"))
		w.run("the pending cluster is there", func() bool { return w.nodes[w.pending()] != nil })
		w.change(steps(50, 25, 5))
		after := w.pending()
		w.finished(t, after)
		if want := after + "-serve-svc=100 "; w.weights() != want {
			t.Errorf("route %s, want %s", w.weights(), want)
		}
	})
	t.Run("while nothing changes", func(t *testing.T) {
		w := servingWorld(t, steps(50, 25, 5))
		before := w.active()
		w.change(newCluster)
		w.watch = func(d Decision) {
			for _, a := range d.Actions {
				if remove, ok := a.(action.Delete); ok && kindOf(remove.Object) == "HTTPRoute" && w.leads() != before {
					t.Error("the route goes before the Service leads to the active cluster")
				}
			}
		}
		w.finished(t, before)
		if w.s.Route != nil || w.s.Gateway != nil {
			t.Error("the Gateway or the route is still there")
		}
	})
}

func TestWithoutTheGatewayAPI(t *testing.T) {
	w := newWorld(t, steps(50, 25, 5))
	w.s.GatewayAPI, w.settings.GatewayAPI = false, false
	w.settle()
	first := w.active()
	if first == "" || w.leads() != first || w.stalled() != rayv1.ReasonGatewayAPIMissing {
		t.Errorf("active %q, stalled %q; want a cluster that serves through the Service, and GatewayAPIMissing (RS-100)", first, w.stalled())
	}
	if w.last.LookAgain != 0 {
		t.Errorf("it is looked at again every %s", w.last.LookAgain)
	}
	w.change(image("ray:2"))
	w.settle()
	if w.active() != first {
		t.Error("an upgrade went on without a Gateway")
	}
	w.change(strategy(rayv1.RayServiceNewCluster))
	w.settle()
	if w.active() == first {
		t.Error("another strategy did not help")
	}
	w.finished(t, w.active())
}

func TestAServiceThatServesStepwiseIsSilent(t *testing.T) {
	w := servingWorld(t, steps(50, 25, 5))
	version := w.version
	for range 60 {
		w.pass()
		w.now = w.now.Add(time.Second)
		if w.last.Status != nil || len(w.last.Actions) > 0 || len(w.last.Events) > 0 {
			t.Fatalf("a pass wants writes: %v, status %v (RS-086)", verbs(w.last.Actions), w.last.Status)
		}
	}
	if w.version != version {
		t.Error("the Gateway or the route was written")
	}
}

func TestSuspensionRemovesTheGatewayWhateverTheStrategy(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){"incremental": func(*Snapshot) {}, "NewCluster": strategy(rayv1.RayServiceNewCluster)} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := upgradingWorld(t, "50/50 50/50")
			w.change(change, spec(func(s *rayv1.RayServiceSpec) { s.Suspend = true }))
			w.run("it is suspended", func() bool {
				return meta.IsStatusConditionTrue(w.s.Service.Status.Conditions, rayv1.ConditionRayServiceSuspended)
			})
			if w.s.Route != nil || w.s.Gateway != nil || len(w.s.Clusters) > 0 {
				t.Error("something is left (RS-046)")
			}
			w.change(spec(func(s *rayv1.RayServiceSpec) { s.Suspend = false }))
			w.settle()
			w.finished(t, w.active())
		})
	}
}

func TestWhatOthersDoToTheRoute(t *testing.T) {
	for name, change := range map[string]func(w *world, before, after string){
		"it is deleted": func(w *world, _, _ string) { w.s.Route = nil },
		"it loses the marks, as one that KubeRay made has none": func(w *world, _, _ string) {
			w.s.Route.Annotations = nil
		},
		"somebody gives all traffic to the pending cluster": func(w *world, _, _ string) {
			w.s.Route.Spec.Rules[0].BackendRefs[0].Weight, w.s.Route.Spec.Rules[0].BackendRefs[1].Weight = ptr.To[int32](0), ptr.To[int32](100)
		},
		"somebody adds a backend": func(w *world, _, _ string) {
			refs := &w.s.Route.Spec.Rules[0].BackendRefs
			*refs = append(*refs, gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{Name: "other"}, Weight: ptr.To[int32](50)}})
		},
		"the Gateway is deleted":          func(w *world, _, _ string) { w.s.Gateway = nil },
		"the status is lost":              func(w *world, _, _ string) { w.s.Service.Status = rayv1.RayServiceStatuses{ClusterIncarnations: 2} },
		"the Service of Serve is deleted": func(w *world, _, _ string) { w.s.remove(w.s.service(serveService)) },
	} {
		t.Run(name, func(t *testing.T) {
			w, before, after := upgradingWorld(t, "50/50 50/50")
			change(w, before, after)
			w.passes(2)
			if route := w.s.Route; route == nil || weightOf(route, before)+weightOf(route, after) != 100 || len(route.Spec.Rules[0].BackendRefs) != 2 {
				t.Errorf("route %s, want both clusters and all of the traffic", w.weights())
			}
			w.finished(t, after)
		})
	}
}

func TestForeignRoutingIsLeftAlone(t *testing.T) {
	w := newWorld(t, steps(50, 25, 5))
	w.s.Route = &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "shop-httproute", UID: "other"}}
	w.passes(60)
	if w.s.Route.Spec.Rules != nil || w.stalled() != rayv1.ReasonNameCollision {
		t.Errorf("route %v and stalled %q, want the route as it was and NameCollision", w.s.Route.Spec, w.stalled())
	}
	if w.active() == "" || w.leads() != w.active() {
		t.Error("the first cluster does not serve through the Service")
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
