package rayservice

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
)

// world plays the API server, Serve on each cluster, and an implementation of the Gateway API, for one plan after the other.
type world struct {
	t        failer
	s        Snapshot
	settings Settings
	now      time.Time
	// nodes are the clusters as they are, by name.
	nodes map[string]*modelServe
	// gatewayDown means that nobody takes up changes of the Gateway and the route.
	gatewayDown bool
	// version counts writes of the Gateway and the route.
	version int
	// asked are the clusters whose Serve the last plan wanted to be asked.
	asked map[string]bool
	// loses tells whether a write gets lost, by its verb and name; nil for never.
	loses func(what string) bool
	// stale is the route that the next plan sees in place of the one that there is; nil for none.
	stale *gatewayv1.HTTPRoute
	// watch is called with each plan before it is carried out.
	watch func(Decision)
	// rolledBack tells whether a trace has seen that a take-over was being undone.
	rolledBack bool
	// last is the last plan.
	last Decision
}

// failer is what a world needs of a test, whether of *testing.T or of *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, arguments ...any)
}

// steps asks for a step by step take-over.
func steps(surge, step, interval int32) func(*Snapshot) {
	return spec(func(s *rayv1.RayServiceSpec) {
		kind := rayv1.RayServiceNewClusterWithIncrementalUpgrade
		s.RayClusterConfig.EnableInTreeAutoscaling = ptr.To(true)
		s.UpgradeStrategy = &rayv1.RayServiceUpgradeStrategy{Type: &kind, ClusterUpgradeOptions: &rayv1.ClusterUpgradeOptions{
			MaxSurgePercent: &surge, StepSizePercent: &step, IntervalSeconds: &interval, GatewayClassName: "traefik"}}
	})
}

// newWorld has a RayService for which nothing was done yet.
func newWorld(t failer, edits ...func(*Snapshot)) *world {
	return &world{t: t, s: given(edits...), settings: settings(), now: now, nodes: map[string]*modelServe{}, asked: map[string]bool{}}
}

// servingWorld has a RayService that has come to rest on its first cluster.
func servingWorld(t failer, edits ...func(*Snapshot)) *world {
	w := newWorld(t, edits...)
	w.settle()
	if w.active() == "" {
		t.Fatalf("the first cluster does not serve")
	}
	return w
}

// change edits the snapshot as a user would.
func (w *world) change(edits ...func(*Snapshot)) {
	for _, edit := range edits {
		edit(&w.s)
	}
}

func (w *world) active() string  { return w.s.Service.Status.ActiveServiceStatus.RayClusterName }
func (w *world) pending() string { return w.s.Service.Status.PendingServiceStatus.RayClusterName }

// shown is what the status says of the shares: capacity and traffic of the active cluster, and of the pending one.
func (w *world) shown() string {
	text := func(status rayv1.RayServiceStatus) string {
		if status.TargetCapacity == nil || status.TrafficRoutedPercent == nil {
			return "-"
		}
		return fmt.Sprintf("%d/%d", *status.TargetCapacity, *status.TrafficRoutedPercent)
	}
	return text(w.s.Service.Status.ActiveServiceStatus) + " " + text(w.s.Service.Status.PendingServiceStatus)
}

// run makes passes, one each second, until the condition holds.
func (w *world) run(what string, done func() bool) {
	w.t.Helper()
	for range 3000 {
		if done() {
			return
		}
		w.pass()
		w.now = w.now.Add(time.Second)
	}
	w.t.Fatalf("no end is found: %s\nshares %s, active %q, pending %q, conditions %v", what, w.shown(), w.active(), w.pending(), w.s.Service.Status.Conditions)
}

// settle makes passes until nothing has been wanted for longer than a replaced cluster is kept.
func (w *world) settle() {
	w.t.Helper()
	quiet := 0
	w.run("the service comes to rest", func() bool {
		quiet++
		if w.last.Status != nil || len(w.last.Actions) > 0 {
			quiet = 0
		} else if quiet > 5 {
			w.now = w.now.Add(defaultDeletionDelay / 4)
		}
		return quiet > 15
	})
}

// pass lets the world go on, plans, and carries out what is planned.
func (w *world) pass() {
	w.evolve()
	seen := w.s
	if w.stale != nil {
		seen.Route, w.stale = w.stale, nil
	}
	w.last = Plan(seen, w.settings, w.now)
	doesWhatIsForeseen(w.t, Foresee(unheard(seen), w.settings, w.now), seen, w.last)
	if w.watch != nil {
		w.watch(w.last)
	}
	w.asked = map[string]bool{}
	for _, target := range w.last.Reports {
		w.asked[target.Owner.Name] = true
	}
	w.carryOut(w.last)
}

func (w *world) lost(what string) bool { return w.loses != nil && w.loses(what) }

// carryOut does what a plan asks for. Without its status nothing is done.
func (w *world) carryOut(d Decision) {
	if d.Status != nil && w.lost("status") {
		return
	}
	rest := Decision{}
	rest.Status = d.Status
	for _, a := range d.Actions {
		if w.lost(verbs([]action.Action{a})[0]) {
			continue
		}
		switch a := a.(type) {
		case action.PutServe:
			w.take(a)
		case action.Create:
			if !w.storeRouting(a.Object, true) {
				rest.Actions = append(rest.Actions, a)
			}
		case action.Apply:
			if !w.storeRouting(a.Object, false) {
				rest.Actions = append(rest.Actions, a)
			}
		case action.Delete:
			if !w.removeRouting(a.Object) {
				rest.Actions = append(rest.Actions, a)
			}
		default:
			rest.Actions = append(rest.Actions, a)
		}
	}
	perform(&w.s, rest)
}

// storeRouting stores a Gateway or an HTTPRoute, and tells whether it is one.
func (w *world) storeRouting(object action.Object, isNew bool) bool {
	switch object := object.(type) {
	case *gatewayv1.Gateway:
		next := object.DeepCopy()
		if w.s.Gateway != nil {
			next.Status, next.Generation = w.s.Gateway.Status, w.s.Gateway.Generation
			if !equality.Semantic.DeepEqual(next.Spec, w.s.Gateway.Spec) {
				next.Generation++
			}
		}
		w.stamp(next)
		w.s.Gateway = next
	case *gatewayv1.HTTPRoute:
		live := w.s.Route
		if isNew && live != nil || !isNew && (live == nil || live.ResourceVersion != object.ResourceVersion) {
			return true // refused
		}
		next := object.DeepCopy()
		if live != nil {
			next.Status, next.Generation = live.Status, live.Generation
			if !equality.Semantic.DeepEqual(next.Spec, live.Spec) {
				next.Generation++
			}
		}
		w.stamp(next)
		w.s.Route = next
	default:
		return false
	}
	return true
}

func (w *world) stamp(object action.Object) {
	w.version++
	object.SetUID(types.UID(object.GetName() + "-uid"))
	object.SetResourceVersion(strconv.Itoa(w.version))
	object.SetGeneration(max(object.GetGeneration(), 1))
	object.SetCreationTimestamp(metav1.NewTime(now))
}

func (w *world) removeRouting(object action.Object) bool {
	switch object.(type) {
	case *gatewayv1.Gateway:
		w.s.Gateway = nil
	case *gatewayv1.HTTPRoute:
		w.s.Route = nil
	default:
		return false
	}
	return true
}

// rollsBackNow tells whether the status says that a take-over is being undone.
func (w *world) rollsBackNow() bool {
	return meta.IsStatusConditionTrue(w.s.Service.Status.Conditions, rayv1.ConditionRollbackInProgress)
}

// stalled is the reason of the condition Stalled while it is True, else empty.
func (w *world) stalled() string {
	c := meta.FindStatusCondition(w.s.Service.Status.Conditions, rayv1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// leads is the cluster that the Service of Serve leads to.
func (w *world) leads() string {
	if service := w.s.service(serveService); service != nil {
		return service.Spec.Selector[rayv1.LabelCluster]
	}
	return ""
}

// weights shows the route.
func (w *world) weights() string {
	if w.s.Route == nil {
		return "none"
	}
	text := ""
	for _, ref := range w.s.Route.Spec.Rules[0].BackendRefs {
		text += fmt.Sprintf("%s=%d ", ref.Name, *ref.Weight)
	}
	return text
}

// has tells whether Serve on a cluster has a config.
func (w *world) has(cluster, text string) bool {
	config, err := serve.Parse(text)
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return config.Difference(&dashboard.ServeDetails{Applications: applications(w.nodes[cluster].config, "RUNNING")}) == ""
}
