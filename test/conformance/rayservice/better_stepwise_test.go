package rayservice

import (
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// stepwiseCases are about take-overs that go step by step, and meet with something.
func stepwiseCases() []Case {
	return []Case{
		{Row: 65, Kind: better, Weak: []string{"RS-W4"}, Theirs: "the operator panics in each pass; nothing serves any more",
			Given: "an incremental upgrade at 50", When: "the active cluster is deleted", Then: "the new one gets all capacity and traffic and becomes active", How: "a lost cluster is the start of a recovery", Run: func(e *env) {
				service, before, next := e.halfway()
				e.Expect(e.Delete(e.t.Context(), before.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
				e.promoted(service, next)
				e.Expect(sharesOf(service)).To(Equal(shares{100, 100, -1, -1}))
				e.soon(func() any { return e.leadsTo("llm-serve-svc") }).Should(Equal(next.Name))
				e.gone(before)
			}},
		{Row: 66, Kind: better, Weak: []string{"RS-W5"}, Theirs: "the old cluster is sent the new config, which its image may not have",
			Given: "an incremental upgrade to another image and another config", When: "the operator is started anew before it lowers the capacity of the active cluster", Then: "the active cluster is sent its own config with that capacity",
			How: "the config is read back from Serve", Run: lowersCapacityAlone},
		{Row: 67, Kind: better, Weak: []string{"RS-W6"}, Theirs: "requests go to a cluster without replicas",
			Given: "an incremental upgrade", When: "the new cluster was asked for its first capacity and has no replicas yet", Then: "its weight stays 0", How: "traffic follows what Serve reports", Run: sendsNothingBeforeThereAreReplicas},
		{Row: 68, Kind: better, Weak: []string{"RS-W7"}, Theirs: "the new cluster stays at half its capacity, and the route leads to one that is deleted",
			Given: "an incremental upgrade at 50", When: "the strategy is removed", Then: "the new cluster becomes active with all its capacity; Gateway and HTTPRoute go", How: "what was begun is brought to its end, and cleaned up", Run: loseTheStrategy},
		{Row: 86, Kind: better, Weak: []string{"RS-W19"}, Theirs: "the status is written every 2 s",
			Given: "a ready service, incremental", When: "Serve is asked again and again", Then: "the RayService is not written", How: "values are compared", Run: func(e *env) {
				service := e.readyInSteps()
				e.rest()
				e.refresh(service)
				version := service.ResourceVersion
				e.asked(e.ray(service.Status.ActiveServiceStatus.RayClusterName), 10)
				e.refresh(service)
				e.Expect(service.ResourceVersion).To(Equal(version))
			}},
		{Row: 94, Kind: better, Weak: []string{"RS-W24"}, Theirs: "the next step is taken",
			Given: "the status of the HTTPRoute is that of an older generation", When: "the second cluster is ready", Then: "no step, until the status is that of the present one", How: "the generation is looked at", Run: trustsNoOldStatus},
		{Row: 100, Kind: better, Weak: []string{"RS-W24"}, Theirs: "an error in each pass, and no status",
			Given: "incremental, the Gateway API is not installed", When: "the service is created, and its image changed", Then: "it serves through the serve Service; Stalled with GatewayAPIMissing; the upgrade waits", How: "what does not need the Gateway goes on", Run: servesWithoutTheGatewayAPI},
	}
}

func lowersCapacityAlone(e *env) {
	service := e.readyInSteps(stepping(50, 25, 3600), replicas("2"))
	old := e.ray(e.active(service).Name)
	e.changeSeen(service, image("img:2"), replicas("4"))
	next := e.pending(service)
	e.at(service, 25)
	e.operator.Stop()
	e.start()
	e.change(service, stepping(50, 25, 1))
	e.soon(func() any { return string(old.LastServePut()) }).Should(ContainSubstring(`"target_capacity":50`))
	e.Expect(string(old.LastServePut())).To(ContainSubstring(`"num_replicas":2`))
	e.promoted(service, next)
	e.Expect(string(old.LastServePut())).To(ContainSubstring(`"num_replicas":2`))
	e.Expect(string(e.ray(next.Name).LastServePut())).To(ContainSubstring(`"num_replicas":4`))
}

func sendsNothingBeforeThereAreReplicas(e *env) {
	service := e.readyInSteps(stepping(50, 25, 1))
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.SetServeLag(1 << 30) })
	e.changeSeen(service, image("img:2"))
	next := e.pending(service)
	ray := e.ray(next.Name)
	e.soon(func() any { return string(ray.LastServePut()) }).Should(ContainSubstring(`"target_capacity":50`))
	e.asked(ray, 4)
	e.rest()
	e.refresh(service)
	e.Expect(sharesOf(service)).To(Equal(shares{100, 100, 50, 0}))
	e.Expect(e.backends()[next.Name+"-serve-svc"]).To(BeZero())
	e.Expect(condition(service, "UpgradeInProgress").Message).To(ContainSubstring("replicas"))
}

func loseTheStrategy(e *env) {
	service, before, next := e.halfway()
	load := e.underLoad()
	e.change(service, func(s *rayv1.RayService) { s.Spec.UpgradeStrategy = nil })
	e.switched(service, next)
	e.soon(func() any {
		return apierrors.IsNotFound(e.read(&gatewayv1.Gateway{}, "llm-gateway")) && apierrors.IsNotFound(e.read(&gatewayv1.HTTPRoute{}, "llm-httproute"))
	}).Should(BeTrue())
	e.gone(before)
	e.serves(service)
	e.Expect(string(e.ray(next.Name).LastServePut())).ToNot(MatchRegexp(`"target_capacity":[0-9]{1,2}[^0-9]`))
	load.failedNone()
}

func trustsNoOldStatus(e *env) {
	service := e.readyInSteps()
	e.serves(service)
	e.gateways = false
	route := &gatewayv1.HTTPRoute{}
	e.Expect(e.read(route, "llm-httproute")).To(Succeed())
	base := route.DeepCopy()
	for i := range route.Status.Parents[0].Conditions {
		route.Status.Parents[0].Conditions[i].ObservedGeneration = route.Generation - 1
	}
	e.Expect(e.Status().Patch(e.t.Context(), route, client.MergeFrom(base))).To(Succeed())
	e.changeSeen(service, image("img:2"))
	next := e.pending(service)
	ray := e.ray(next.Name)
	e.soon(func() any { return ray.ServeApplications() }).Should(ContainElement("app"))
	e.asked(ray, 4)
	e.refresh(service)
	e.Expect(sharesOf(service)).To(Equal(shares{100, 100, 0, 0}))
	e.gateways = true
	e.promoted(service, next)
}

func servesWithoutTheGatewayAPI(e *env) {
	e.start(harness.Transport(harness.HideGroup("gateway.networking.k8s.io")))
	service := e.given(incremental)
	e.Expect(e.have(service, "Stalled", metav1.ConditionTrue, "GatewayAPIMissing")).To(ContainSubstring("install it"))
	e.have(service, "Ready", metav1.ConditionTrue, "NonZeroServeEndpoints")
	cluster := e.active(service)
	e.Expect(e.leadsTo("llm-serve-svc")).To(Equal(cluster.Name))
	e.changeSeen(service, image("img:2"))
	next := e.pending(service)
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.ApplicationStatuses["app"].Status }).Should(Equal("RUNNING"))
	e.asked(e.ray(next.Name), 3)
	e.rest()
	e.Expect(e.leadsTo("llm-serve-svc")).To(Equal(cluster.Name))
	e.have(service, "Stalled", metav1.ConditionTrue, "GatewayAPIMissing")
	e.change(service, strategy(rayv1.RayServiceNewCluster))
	e.switched(service, next)
}
