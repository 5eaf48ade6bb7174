package rayservice

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

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

// promotedWorld has a new cluster that serves by the word of the route, while the write that lets the Service of Serve follow
// gets lost.
func promotedWorld(t failer) (w *world, before, after string) {
	w, before, after = upgradingWorld(t, "50/0 100/100")
	w.loses = func(what string) bool { return what == "apply "+serveService }
	w.run("the new cluster is active", func() bool { return w.active() == after })
	w.passes(5)
	if w.leads() != before {
		t.Fatalf("the Service leads to %s already", w.leads())
	}
	return w, before, after
}

func TestTheServiceFollowsTheRouteOnlyToPodsThatTakeRequests(t *testing.T) {
	w, before, after := promotedWorld(t)
	w.nodes[after].dead = true
	w.loses = nil
	w.passes(20)
	if w.leads() != before || w.s.cluster(before) == nil {
		t.Errorf("the Service leads to %s, want the old cluster as long as the new one takes no requests (L53)", w.leads())
	}
	w.nodes[after].dead = false
	w.finished(t, after)
}

func TestTheRouteStaysUntilTheServiceHasFollowed(t *testing.T) {
	w, before, after := promotedWorld(t)
	w.change(strategy(rayv1.RayServiceNewCluster))
	w.passes(120)
	if w.s.Route == nil || w.s.cluster(before) == nil {
		t.Error("the route or the old cluster is gone, although the Service still leads there")
	}
	w.loses = nil
	w.finished(t, after)
	if w.s.Route != nil {
		t.Error("the route is still there")
	}
}
