package rayservice

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func incrementalCases() []Case {
	return []Case{
		{Row: 46, Kind: same, Given: "a ready service, incremental", When: "suspend is set", Then: "Gateway and HTTPRoute go too", Run: func(e *env) {
			service := e.readyInSteps()
			e.change(service, suspended(true))
			e.have(service, "Suspended", metav1.ConditionTrue, "SuspendComplete")
			e.Expect(apierrors.IsNotFound(e.read(&gatewayv1.Gateway{}, "llm-gateway"))).To(BeTrue())
			e.Expect(apierrors.IsNotFound(e.read(&gatewayv1.HTTPRoute{}, "llm-httproute"))).To(BeTrue())
		}},
		{Row: 48, Kind: same, Given: "incremental", When: "the service is created", Then: "a Gateway with one HTTP listener at port 80, a Service of the cluster, an HTTPRoute with one backend of weight 100", Run: makesGatewayAndRoute},
		{Row: 49, Kind: same, Given: "incremental: surge 50, step 25, an interval", When: "the image is changed", Then: "capacity and traffic move to the second cluster in steps of these sizes, traffic no faster than the interval",
			How: "traffic moves after Serve has reported the replicas for it, not together with the request for them", Run: movesInSteps},
		{Row: 50, Kind: same, Given: "incremental: surge 60, step 35", When: "the image is changed", Then: "at all times the traffic adds up to 100, the second cluster has no more traffic than capacity, its shares never fall and those of the first never rise", Run: keepsTheRules},
		{Row: 51, Kind: same, Given: "incremental: surge and step 100", When: "the image is changed", Then: "the second cluster becomes active, the route has one backend, both shares are 100, the old cluster goes", Run: func(e *env) {
			service := e.readyInSteps(stepping(100, 100, 1), deletionDelay(0))
			before := e.active(service)
			next := e.upgrade(service, image("img:2"))
			e.runs(next.Name)
			e.promoted(service, next)
			e.Expect(sharesOf(service)).To(Equal(shares{100, 100, -1, -1}))
			e.Expect(condition(service, "UpgradeInProgress").Reason).To(Equal("NoPendingCluster"))
			e.gone(before)
		}},
		{Row: 52, Kind: same, Given: "an incremental upgrade at 25", When: "applications of the second cluster do not run any more", Then: "the weights stay, until they run again", Run: stopsWhileNotRunning},
		{Row: 53, Kind: same, Given: "an incremental upgrade, the Gateway is not programmed", When: "the second cluster is ready", Then: "capacity and weights stay, until it is programmed", Run: waitsForTheGateway},
		{Row: 54, Kind: same, Given: "an incremental upgrade at 50", When: "the spec goes back", Then: "RollbackInProgress; traffic and capacity return, the second cluster goes, the first one stays", Run: rollsBack},
		{Row: 55, Kind: same, Given: "a rollback", When: "the spec asks for the second cluster again", Then: "no RollbackInProgress; the upgrade is completed", Run: func(e *env) {
			service, _, next := e.halfway()
			e.change(service, image("img:1"))
			e.have(service, "RollbackInProgress", metav1.ConditionTrue, "DesiredClusterSpecChanged")
			e.change(service, image("img:2"), stepping(100, 50, 1))
			e.promoted(service, next)
			e.Expect(condition(service, "RollbackInProgress").Type).To(BeEmpty())
		}},
		{Row: 56, Kind: same, Given: "an incremental upgrade at 50", When: "the spec asks for a third cluster", Then: "first back to 100 and 0, then an upgrade to the third", Run: asksForAThird},
		{Row: 57, Kind: same, Given: "a rollback", When: "the head of the second cluster is dead", Then: "the rollback is completed", Run: func(e *env) {
			service, before, next := e.halfway()
			e.ray(next.Name).Down()
			e.SetPod(e.t, e.head(next.Name), harness.Unready)
			e.change(service, image("img:1"), stepping(100, 50, 1))
			e.rolledBack(service, before, next)
		}},
	}
}

// stepping sets the sizes of the steps and the time between two of them.
func stepping(surge, step, interval int32) edit {
	return func(s *rayv1.RayService) {
		options := s.Spec.UpgradeStrategy.ClusterUpgradeOptions
		options.MaxSurgePercent, options.StepSizePercent, options.IntervalSeconds = &surge, &step, &interval
	}
}

// startInSteps starts an operator that finds the Gateway API. Gateways take up what they are told.
func (e *env) startInSteps() {
	e.t.Helper()
	e.InstallGatewayAPI(e.t)
	e.gateways = true
	e.start()
}

// readyInSteps makes a service that takes over step by step, and follows it until it serves.
func (e *env) readyInSteps(edits ...edit) *rayv1.RayService {
	e.t.Helper()
	e.startInSteps()
	service := e.ready(append([]edit{incremental}, edits...)...)
	e.soon(func() any { return e.backends() }).Should(Equal(map[string]int32{e.active(service).Name + "-serve-svc": 100}))
	return service
}

// backends are the weights in the HTTPRoute.
func (e *env) backends() map[string]int32 {
	e.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	if err := e.read(route, "llm-httproute"); err != nil {
		return nil
	}
	weights := map[string]int32{}
	for _, ref := range route.Spec.Rules[0].BackendRefs {
		weights[string(ref.Name)] = ptr.Deref(ref.Weight, 1)
	}
	return weights
}

func makesGatewayAndRoute(e *env) {
	service := e.readyInSteps()
	cluster := e.active(service)
	gateway := &gatewayv1.Gateway{}
	e.Expect(e.read(gateway, "llm-gateway")).To(Succeed())
	e.Expect(metav1.IsControlledBy(gateway, service)).To(BeTrue())
	e.Expect(gateway.Spec.GatewayClassName).To(BeEquivalentTo("traffic"))
	e.Expect(gateway.Spec.Listeners).To(HaveLen(1))
	listener := gateway.Spec.Listeners[0]
	e.Expect(fmt.Sprint(listener.Name, " ", listener.Protocol, " ", listener.Port)).To(Equal("http HTTP 80"))
	route := &gatewayv1.HTTPRoute{}
	e.Expect(e.read(route, "llm-httproute")).To(Succeed())
	e.Expect(metav1.IsControlledBy(route, service)).To(BeTrue())
	e.Expect(route.Spec.ParentRefs).To(HaveLen(1))
	e.Expect(route.Spec.ParentRefs[0].Name).To(BeEquivalentTo("llm-gateway"))
	e.Expect(route.Spec.Rules).To(HaveLen(1))
	e.Expect(route.Spec.Rules[0].Matches[0].Path.Value).To(HaveValue(Equal("/")))
	own := e.service(cluster.Name + "-serve-svc")
	e.Expect(metav1.IsControlledBy(own, cluster)).To(BeTrue())
	e.Expect(own.Spec.Selector).To(Equal(map[string]string{"ray.io/cluster": cluster.Name, "ray.io/serve": "true"}))
	for _, created := range []string{"CreatedGateway", "CreatedHTTPRoute"} {
		e.said(service, corev1.EventTypeNormal, created)
	}
}

// shares are capacity and traffic of both clusters.
type shares struct{ activeCapacity, activeTraffic, pendingCapacity, pendingTraffic int32 }

func sharesOf(service *rayv1.RayService) shares {
	active, pending := service.Status.ActiveServiceStatus, service.Status.PendingServiceStatus
	return shares{ptr.Deref(active.TargetCapacity, -1), ptr.Deref(active.TrafficRoutedPercent, -1),
		ptr.Deref(pending.TargetCapacity, -1), ptr.Deref(pending.TrafficRoutedPercent, -1)}
}

// shares are those that two clusters went through while there were two.
func (h *history) shares() []shares {
	var seen []shares
	for _, version := range h.all() {
		if s := sharesOf(version); s.pendingCapacity >= 0 && s.pendingTraffic >= 0 && s.activeCapacity >= 0 {
			seen = append(seen, s)
		}
	}
	return slices.Compact(seen)
}

// moves are the times at which traffic moved to the second cluster.
func (h *history) moves() []time.Time {
	var moves []time.Time
	for _, version := range h.all() {
		at := version.Status.PendingServiceStatus.LastTrafficMigratedTime
		if at != nil && (len(moves) == 0 || !at.Time.Equal(moves[len(moves)-1])) {
			moves = append(moves, at.Time)
		}
	}
	return moves
}

func movesInSteps(e *env) {
	const interval = 5 * time.Second
	service := e.readyInSteps(stepping(50, 25, int32(interval/time.Second)))
	seen := e.record()
	next := e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.promoted(service, next)
	e.Expect(seen.shares()).To(Equal([]shares{
		{100, 100, 0, 0},
		{100, 100, 50, 0}, {100, 75, 50, 25}, {100, 50, 50, 50},
		{50, 50, 50, 50},
		{50, 50, 100, 50}, {50, 25, 100, 75}, {50, 0, 100, 100},
	}))
	moves := seen.moves()
	e.Expect(moves).To(HaveLen(4))
	for i := 1; i < len(moves); i++ {
		e.Expect(moves[i].Sub(moves[i-1])).To(BeNumerically(">=", interval))
	}
}

func keepsTheRules(e *env) {
	service := e.readyInSteps(stepping(60, 35, 1))
	seen := e.record()
	next := e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.promoted(service, next)
	all := seen.shares()
	e.Expect(len(all)).To(BeNumerically(">=", 6), "%v", all)
	last := all[0]
	e.Expect(last).To(Equal(shares{100, 100, 0, 0}))
	for _, now := range all {
		e.Expect(now.activeTraffic+now.pendingTraffic).To(Equal(int32(100)), "%v", all)
		e.Expect(now.pendingTraffic).To(BeNumerically("<=", now.pendingCapacity), "%v", all)
		e.Expect(now.activeTraffic).To(BeNumerically("<=", now.activeCapacity), "%v", all)
		e.Expect(now.activeCapacity+now.pendingCapacity).To(BeNumerically("<=", 160), "%v", all)
		grows := now.pendingCapacity >= last.pendingCapacity && now.pendingTraffic >= last.pendingTraffic
		falls := now.activeCapacity <= last.activeCapacity && now.activeTraffic <= last.activeTraffic
		e.Expect(grows && falls).To(BeTrue(), "%v", all)
		last = now
	}
}

// at waits until a part of the traffic goes to the second cluster.
func (e *env) at(service *rayv1.RayService, traffic int32) {
	e.t.Helper()
	e.follow(service, func(*rayv1.RayServiceStatuses) any { return sharesOf(service).pendingTraffic }).
		Should(Equal(traffic), func() string { return fmt.Sprint(sharesOf(service), told(service)) })
}

// halfway makes a service and stops its upgrade when half of the traffic goes to the second cluster.
func (e *env) halfway(edits ...edit) (service *rayv1.RayService, before, next *rayv1.RayCluster) {
	e.t.Helper()
	service = e.readyInSteps(append([]edit{stepping(100, 50, 3600), deletionDelay(0)}, edits...)...)
	before = e.active(service)
	next = e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.at(service, 50)
	return service, before, next
}

func stopsWhileNotRunning(e *env) {
	service := e.readyInSteps(stepping(50, 25, 3600))
	next := e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.at(service, 25)
	ray := e.ray(next.Name)
	ray.SetServeStep("app", fakedashboard.ServeStep{Status: "UNHEALTHY"})
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.ApplicationStatuses["app"].Status }).
		Should(Equal("UNHEALTHY"))
	e.changeSeen(service, stepping(50, 25, 1))
	e.asked(ray, 4)
	e.refresh(service)
	e.Expect(sharesOf(service)).To(Equal(shares{100, 75, 50, 25}))
	ray.SetServeStep("app", fakedashboard.ServeStep{Status: "RUNNING"})
	e.promoted(service, next)
}

func waitsForTheGateway(e *env) {
	service := e.readyInSteps()
	e.gateways = false
	e.changeGateway(metav1.ConditionFalse)
	next := e.upgrade(service, image("img:2"))
	e.runs(next.Name)
	e.asked(e.ray(next.Name), 4)
	e.refresh(service)
	e.Expect(sharesOf(service)).To(Equal(shares{100, 100, 0, 0}))
	e.Expect(e.backends()[next.Name+"-serve-svc"]).To(BeZero())
	e.gateways = true
	e.promoted(service, next)
}

// changeGateway sets whether the Gateway is programmed.
func (e *env) changeGateway(programmed metav1.ConditionStatus) {
	e.t.Helper()
	gateway := &gatewayv1.Gateway{}
	e.Expect(e.read(gateway, "llm-gateway")).To(Succeed())
	base := gateway.DeepCopy()
	meta.SetStatusCondition(&gateway.Status.Conditions, metav1.Condition{Type: "Programmed", Status: programmed, Reason: "Test", ObservedGeneration: gateway.Generation})
	e.Expect(e.Status().Patch(e.t.Context(), gateway, client.MergeFrom(base))).To(Succeed())
}

// rolledBack waits until all is as it was before an upgrade.
func (e *env) rolledBack(service *rayv1.RayService, to, from *rayv1.RayCluster) {
	e.t.Helper()
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.RayClusterName }).
		ShouldNot(Equal(from.Name), func() string { return fmt.Sprint(sharesOf(service), told(service)) })
	e.gone(from)
	e.serves(service)
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(to.Name))
	e.Expect(condition(service, "RollbackInProgress").Type).To(BeEmpty())
	e.Expect(sharesOf(service)).To(Equal(shares{100, 100, -1, -1}))
	e.Expect(e.backends()).To(Equal(map[string]int32{to.Name + "-serve-svc": 100}))
}

func rollsBack(e *env) {
	service, before, next := e.halfway()
	e.change(service, image("img:1"))
	e.have(service, "RollbackInProgress", metav1.ConditionTrue, "DesiredClusterSpecChanged")
	e.Expect(condition(service, "UpgradeInProgress").Status).To(Equal(metav1.ConditionTrue))
	e.change(service, stepping(100, 50, 1))
	e.rolledBack(service, before, next)
	e.Expect(e.isGone(before)).To(BeFalse())
}

func asksForAThird(e *env) {
	service, before, next := e.halfway()
	seen := e.record()
	e.change(service, image("img:3"))
	e.have(service, "RollbackInProgress", metav1.ConditionTrue, "DesiredClusterSpecChanged")
	e.change(service, stepping(100, 50, 1))
	e.gone(next)
	third := e.pending(service)
	e.Expect(third.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image).To(Equal("img:3"))
	e.runs(third.Name)
	e.promoted(service, third)
	e.gone(before)
	// When the third cluster was chosen, all traffic was back.
	all := seen.all()
	first := slices.IndexFunc(all, func(s *rayv1.RayService) bool { return s.Status.PendingServiceStatus.RayClusterName == third.Name })
	e.Expect(first).To(BeNumerically(">", 0))
	e.Expect(sharesOf(all[first]).activeTraffic).To(Equal(int32(100)))
	e.Expect(all[first].Status.ActiveServiceStatus.RayClusterName).To(Equal(before.Name))
}

// promoted waits until a cluster has all traffic and capacity.
func (e *env) promoted(service *rayv1.RayService, cluster *rayv1.RayCluster) {
	e.t.Helper()
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.ActiveServiceStatus.RayClusterName }).
		Should(Equal(cluster.Name), func() string { return told(service) })
	e.soon(func() any { return e.backends() }).Should(Equal(map[string]int32{cluster.Name + "-serve-svc": 100}))
	e.serves(service)
}
