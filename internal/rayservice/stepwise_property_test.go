package rayservice

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/serve"
)

// Whatever the paces, and wherever the direction changes, no cluster gets more traffic than capacity, and there is an end.
func TestTheStepsOfShares(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		to, from := share{}, share{whole, whole}
		largest := int32(0)
		turn := func(surge, step int32) {
			if to.traffic < to.capacity {
				to, from = moreTraffic(to, from, step)
			} else {
				to, from = moreCapacity(to, from, surge)
			}
			largest = max(largest, surge)
			if to.traffic > to.capacity || from.traffic > from.capacity || to.traffic+from.traffic != whole || to.capacity+from.capacity > whole+largest ||
				min(to.traffic, from.traffic) < 0 {
				r.Fatalf("shares %v and %v after surge %d, step %d", to, from, surge, step)
			}
		}
		for range rapid.IntRange(0, 30).Draw(r, "steps") {
			if rapid.IntRange(0, 5).Draw(r, "turns round") == 0 {
				to, from = from, to
			}
			turn(rapid.Int32Range(1, 100).Draw(r, "surge"), rapid.Int32Range(1, 100).Draw(r, "step"))
		}
		surge, step := rapid.Int32Range(1, 100).Draw(r, "last surge"), rapid.Int32Range(1, 100).Draw(r, "last step")
		for left := 500; to != (share{whole, whole}); left-- {
			before := to
			turn(surge, step)
			if to.traffic < before.traffic || to.capacity < before.capacity {
				r.Fatalf("a share falls from %v to %v on its way up", before, to)
			}
			if left == 0 {
				r.Fatalf("no end with surge %d, step %d: %v and %v", surge, step, to, from)
			}
		}
	})
}

// judge watches the plans of a world.
type judge struct {
	*world
	r *rapid.T
	// calm is how many passes ago something happened last.
	calm int
	// moved is when the traffic last moved forward, at a pace that has not changed since; zero otherwise.
	moved time.Time
}

func TestAStepwiseTakeOverWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := &judge{world: servingWorld(r, steps(50, 25, 5)), r: r}
		j.watch = j.look
		for range rapid.IntRange(1, 15).Draw(r, "happenings") {
			j.happen()
			for range rapid.IntRange(0, 25).Draw(r, "passes") {
				j.calm++
				j.pass()
				j.now = j.now.Add(time.Duration(rapid.IntRange(100, 4000).Draw(r, "ms")) * time.Millisecond)
			}
		}
		j.mend()
		j.settle()
		j.atTheEnd()
	})
}

// happen lets a user, a node or a network do something.
func (j *judge) happen() {
	j.calm, j.moved = 0, time.Time{}
	r := j.r
	someone := func() *modelServe {
		names := []string{j.active(), j.pending()}
		if node := j.nodes[rapid.SampledFrom(names).Draw(r, "cluster")]; node != nil {
			return node
		}
		return &modelServe{}
	}
	options := map[string]func(){
		"image": func() {
			j.change(image(rapid.SampledFrom([]string{"ray:1", "ray:2", "ray:3"}).Draw(r, "image")))
		},
		"config": func() { j.change(config(rapid.SampledFrom([]string{fruit, fruit2}).Draw(r, "config"))) },
		"pace": func() {
			surge := rapid.Int32Range(1, 100).Draw(r, "surge")
			j.change(steps(surge, rapid.Int32Range(1, surge).Draw(r, "step"), rapid.Int32Range(1, 10).Draw(r, "interval")))
		},
		"strategy": func() {
			j.change(strategy(rapid.SampledFrom([]rayv1.RayServiceUpgradeType{rayv1.RayServiceNewCluster, rayv1.RayServiceUpgradeNone}).Draw(r, "strategy")))
		},
		"dead":   func() { someone().dead = true },
		"silent": func() { someone().silent = true },
		"stuck":  func() { someone().stuck = true },
		"sick":   func() { someone().status = rapid.SampledFrom([]string{"UNHEALTHY", "DEPLOYING"}).Draw(r, "status") },
		"empty": func() {
			node := someone()
			node.config, node.capacity, node.target, node.running = "", nil, 0, 0
		},
		"mended":  j.mend,
		"gateway": func() { j.gatewayDown = !j.gatewayDown },
		"deleted": func() {
			if name := rapid.SampledFrom([]string{j.active(), j.pending()}).Draw(r, "cluster"); name != "" {
				without(name)(&j.s)
				delete(j.nodes, name)
			}
		},
		"losses": func() {
			j.loses = func(what string) bool { return rapid.IntRange(0, 2).Draw(r, what) == 0 }
		},
		"stale": func() {
			if j.s.Route != nil {
				old := j.s.Route.DeepCopy()
				j.pass()
				j.stale = old
			}
		},
		"no route": func() { j.s.Route = nil },
	}
	options[rapid.SampledFrom([]string{"image", "image", "config", "pace", "strategy", "dead", "silent", "stuck", "sick", "empty", "mended", "mended",
		"gateway", "deleted", "losses", "stale", "no route"}).Draw(r, "happens")]()
}

func (j *judge) mend() {
	j.gatewayDown, j.loses = false, nil
	for _, node := range j.nodes {
		node.dead, node.silent, node.stuck, node.status = false, false, false, "RUNNING"
	}
}

// look judges one plan.
func (j *judge) look(d Decision) {
	j.r.Logf("%s: active %q, pending %q, shares %s, route %s, Service to %q, wants %v", j.now.Format(time.TimeOnly), j.active(), j.pending(), j.shown(), j.weights(), j.leads(), verbs(d.Actions))
	if d.Status != nil {
		j.lookAtStatus(d.Status.Object.(*rayv1.RayService).Status)
	}
	for _, a := range d.Actions {
		switch a := a.(type) {
		case action.PutServe:
			j.lookAtConfig(a)
		case action.Create:
			j.lookAtWrite(a.Object)
		case action.Apply:
			j.lookAtWrite(a.Object)
		case action.Update:
			if cluster, ok := a.Object.(*rayv1.RayCluster); ok && cluster.Annotations[rayv1.AnnotationAbandoned] != "" {
				j.unused(cluster.Name)
			}
		case action.Delete:
			switch object := a.Object.(type) {
			case *rayv1.RayCluster:
				j.unused(object.Name)
			case *gatewayv1.HTTPRoute:
				if j.s.cluster(j.active()) != nil && j.leads() != j.active() {
					j.r.Fatalf("the route goes while the Service leads to %q and not to %q", j.leads(), j.active())
				}
			}
		}
	}
}

func (j *judge) lookAtStatus(next rayv1.RayServiceStatuses) {
	before := j.s.Service.Status
	active, pending := next.ActiveServiceStatus, next.PendingServiceStatus
	if active.TrafficRoutedPercent != nil && pending.TrafficRoutedPercent != nil && *active.TrafficRoutedPercent+*pending.TrafficRoutedPercent != whole {
		j.r.Fatalf("traffic %d%% and %d%%", *active.TrafficRoutedPercent, *pending.TrafficRoutedPercent)
	}
	for _, status := range []rayv1.RayServiceStatus{active, pending} {
		if ptr.Deref(status.TrafficRoutedPercent, 0) > ptr.Deref(status.TargetCapacity, whole) {
			j.r.Fatalf("%s gets %d%% of the traffic with %d%% of its capacity", status.RayClusterName, *status.TrafficRoutedPercent, *status.TargetCapacity)
		}
	}
	rolling := meta.IsStatusConditionTrue(next.Conditions, rayv1.ConditionRollbackInProgress)
	same := active.RayClusterName == before.ActiveServiceStatus.RayClusterName && pending.RayClusterName == before.PendingServiceStatus.RayClusterName
	if rolling || !same || j.calm < 4 || j.disturbed() {
		return
	}
	if ptr.Deref(pending.TargetCapacity, 0) < ptr.Deref(before.PendingServiceStatus.TargetCapacity, 0) ||
		ptr.Deref(pending.TrafficRoutedPercent, 0) < ptr.Deref(before.PendingServiceStatus.TrafficRoutedPercent, 0) ||
		ptr.Deref(active.TargetCapacity, 0) > ptr.Deref(before.ActiveServiceStatus.TargetCapacity, whole) {
		j.r.Fatalf("shares go back although nothing is undone: %s before, now %v %v", j.shown(), active, pending)
	}
}

// disturbed tells whether something is wrong for which shares may go back.
func (j *judge) disturbed() bool {
	for _, name := range []string{j.active(), j.pending()} {
		if node := j.nodes[name]; node == nil || node.dead {
			return true
		}
	}
	return j.loses != nil || j.s.Route == nil
}

// lookAtConfig sees that no cluster is given a config that was written for another one.
func (j *judge) lookAtConfig(a action.PutServe) {
	name := a.Cluster.GetName()
	c := j.s.cluster(name)
	if fits(c.Object, &j.s.Service.Spec.RayClusterConfig) || *j.s.Service.Spec.UpgradeStrategy.Type == rayv1.RayServiceUpgradeNone {
		return
	}
	var body map[string]any
	if err := json.Unmarshal(a.Config, &body); err != nil {
		j.r.Fatalf("body %s: %v", a.Config, err)
	}
	sent, err := serve.Parse(string(a.Config))
	if err != nil {
		j.r.Fatalf("body %s: %v", a.Config, err)
	}
	for _, own := range []string{j.nodes[name].config, c.Object.Annotations[rayv1.AnnotationServeConfig]} {
		if sent.Difference(&dashboard.ServeDetails{Applications: applications(own, "RUNNING")}) == "" {
			return
		}
	}
	j.r.Fatalf("%s is given %s although it was made for another spec", name, a.Config)
}

func (j *judge) lookAtWrite(object action.Object) {
	switch object := object.(type) {
	case *corev1.Service:
		if to := object.Spec.Selector[rayv1.LabelCluster]; object.Name == serveService && j.leads() != to {
			j.serveable(to, len(j.s.Endpoints[serveService]) > 0)
		}
	case *gatewayv1.HTTPRoute:
		// Others are refused: they were decided on a route that is not as it was any more.
		decidedOn := ""
		if j.s.Route != nil {
			decidedOn = j.s.Route.ResourceVersion
		}
		if object.ResourceVersion == decidedOn {
			j.lookAtRoute(object)
		}
	}
}

// serveable sees that there is a cluster, and that it takes requests if another one does so far.
func (j *judge) serveable(name string, instead bool) {
	c := j.s.cluster(name)
	if c == nil || c.Object.Annotations[rayv1.AnnotationAbandoned] != "" {
		j.r.Fatalf("traffic is to go to %s, which is gone or given up", name)
	}
	if instead && j.nodes[name].dead {
		j.r.Fatalf("traffic is to go to %s, which takes no requests, although another one does", name)
	}
}

func (j *judge) lookAtRoute(next *gatewayv1.HTTPRoute) {
	live := &gatewayv1.HTTPRoute{}
	if j.s.Route != nil {
		live = j.s.Route
	}
	if j.s.Route != nil && live.Annotations[rayv1.AnnotationServesCluster] != next.Annotations[rayv1.AnnotationServesCluster] && len(next.Spec.Rules[0].BackendRefs) != 1 &&
		j.s.cluster(live.Annotations[rayv1.AnnotationServesCluster]) != nil {
		j.r.Fatalf("the route changes hands while it leads to two clusters")
	}
	total := int32(0)
	for i := range j.s.Clusters {
		name := j.s.Clusters[i].name()
		weight, before := weightOf(next, name), weightOf(live, name)
		total += weight
		if weight > 0 {
			j.serveable(name, false)
		}
		if weight > before && j.elsewhere(live, name) > 0 {
			j.mayGrow(name, weight)
		}
	}
	if total != whole {
		j.r.Fatalf("weights of %v do not make up the whole", next.Spec.Rules)
	}
}

// elsewhere is the weight of clusters that are there and take requests, apart from one.
func (j *judge) elsewhere(route *gatewayv1.HTTPRoute, name string) int32 {
	weight := int32(0)
	for i := range j.s.Clusters {
		if other := j.s.Clusters[i].name(); other != name && j.nodes[other] != nil && !j.nodes[other].dead {
			weight += weightOf(route, other)
		}
	}
	return weight
}

// mayGrow sees that a cluster that gets more of the traffic of one that takes requests has what it needs for that.
func (j *judge) mayGrow(name string, weight int32) {
	node := j.nodes[name]
	capacity := ptr.Deref(node.capacity, whole)
	if node.dead || node.silent || capacity < weight || node.running < replicasAt(capacity, modelReplicas) {
		j.r.Fatalf("%s gets %d%% of the traffic with capacity %d, %d replicas, dead %v, silent %v", name, weight, capacity, node.running, node.dead, node.silent)
	}
	if name == j.pending() && node.status != "RUNNING" {
		j.r.Fatalf("%s gets %d%% of the traffic and is %s", name, weight, node.status)
	}
	options := j.s.Service.Spec.UpgradeStrategy.ClusterUpgradeOptions
	if options == nil || j.loses != nil {
		return
	}
	interval := time.Duration(*options.IntervalSeconds) * time.Second
	if since := j.now.Sub(j.moved); !j.moved.IsZero() && since < interval && weight-weightOf(j.s.Route, name) > 0 && len(j.s.Route.Spec.Rules[0].BackendRefs) > 1 {
		j.r.Fatalf("traffic moves again after %s, with an interval of %s", since, interval)
	}
	j.moved = j.now
}

// unused sees that nothing leads to a cluster that is given up.
func (j *judge) unused(name string) {
	if j.leads() == name || j.s.Route != nil && weightOf(j.s.Route, name) > 0 {
		j.r.Fatalf("%s is given up although traffic goes there", name)
	}
}

// atTheEnd sees that what is asked for serves, and nothing else is left.
func (j *judge) atTheEnd() {
	c := j.s.cluster(j.active())
	state := fmt.Sprintf("active %q, pending %q, Service to %q, route %s, shares %s, conditions %v", j.active(), j.pending(), j.leads(), j.weights(), j.shown(), j.s.Service.Status.Conditions)
	strategy := *j.s.Service.Spec.UpgradeStrategy.Type
	switch {
	case c == nil, j.pending() != "", j.leads() != j.active(), len(j.s.Clusters) != 1:
		j.r.Fatalf("not at its end: %s", state)
	case strategy != rayv1.RayServiceUpgradeNone && !fits(c.Object, &j.s.Service.Spec.RayClusterConfig):
		j.r.Fatalf("the cluster is not what is asked for: %s", state)
	case j.nodes[c.name()].running != modelReplicas || !j.has(c.name(), j.s.Service.Spec.ServeConfigV2):
		j.r.Fatalf("%d replicas run of %s: %s", j.nodes[c.name()].running, j.nodes[c.name()].config, state)
	case strategy == rayv1.RayServiceNewClusterWithIncrementalUpgrade && (j.s.Route == nil || weightOf(j.s.Route, c.name()) != whole || len(j.s.Route.Spec.Rules[0].BackendRefs) != 1):
		j.r.Fatalf("the route does not lead to the cluster alone: %s", state)
	case strategy != rayv1.RayServiceNewClusterWithIncrementalUpgrade && (j.s.Route != nil || j.s.Gateway != nil):
		j.r.Fatalf("the route or the Gateway is left: %s", state)
	case meta.FindStatusCondition(j.s.Service.Status.Conditions, rayv1.ConditionRollbackInProgress) != nil:
		j.r.Fatalf("a rollback does not end: %s", state)
	case !meta.IsStatusConditionPresentAndEqual(j.s.Service.Status.Conditions, rayv1.ConditionStalled, metav1.ConditionFalse):
		j.r.Fatalf("stalled: %s", state)
	}
}
