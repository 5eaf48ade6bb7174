package rayservice

import (
	"slices"
	"sync/atomic"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// crashCases are about an operator that ends, or whose writes are lost, in the middle of an upgrade.
func crashCases() []Case {
	return []Case{
		{Row: 63, Kind: better, Weak: []string{"RS-W3"}, Theirs: "the cluster that has all the traffic is deleted",
			Given: "traffic has moved, and no status can be written since", When: "the image is changed again, and later the status can be written", Then: "the cluster that the Service leads to stays, and is the active one",
			How: "who serves is read from the Service, not from the status", Run: statusIsLostAfterTheMove},
		{Row: 64, Kind: better, Weak: []string{"RS-W3"}, Theirs: "the operator panics in each pass",
			Given: "the head Service leads to the new cluster, the serve Service still to the old one", When: "the operator is started", Then: "both lead to one cluster, and in the end to the new one",
			How: "the serve Service decides, the head Service follows", Run: halfMoved},
		{Row: 95, Kind: better, Weak: []string{"RS-W3", "RS-W27"}, Theirs: "depends on the write",
			Given: "an operator that ends after each single write and is started anew", When: "an upgrade takes place", Then: "it gets to its end; the Service has a ready endpoint all the time",
			How: "each write can be repeated, and whoever leads finishes what another one began", Run: crashesAfterEachWrite, Elsewhere: "at every write and every call to Serve, over many seeds: test/sim"},
	}
}

func isStatus(r harness.Request) bool { return r.Resource == "rayservices/status" && r.Verb == "patch" }

// movesTraffic tells whether a request is a write of the serve Service.
func movesTraffic(r harness.Request) bool {
	return r.Resource == "services" && r.Verb == "apply" && r.Name == "llm-serve-svc"
}

func statusIsLostAfterTheMove(e *env) {
	wire := &harness.Wire{}
	e.start(harness.Transport(wire.Transport))
	service, before, next := e.upgrading(deletionDelay(0))
	var moved atomic.Bool
	wire.After(func(r harness.Request) {
		if movesTraffic(r) && moved.CompareAndSwap(false, true) {
			wire.Cut(isStatus)
		}
	})
	e.runs(next.Name)
	e.soon(func() any { return e.leadsTo("llm-serve-svc") }).Should(Equal(next.Name))
	e.refresh(service)
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(before.Name), "the status must not have been written")
	e.change(service, image("img:3"))
	e.asked(e.ray(next.Name), 3)
	e.Expect(e.read(next, next.Name)).To(Succeed())
	wire.Cut(nil)

	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.ActiveServiceStatus.RayClusterName }).Should(Equal(next.Name))
	e.gone(before)
	third := e.pending(service)
	e.Expect(third.Name).ToNot(Equal(next.Name))
	e.Expect(e.read(next, next.Name)).To(Succeed())
	e.Expect(next.Annotations).ToNot(Or(HaveKey(rayv1.AnnotationRetiredAt), HaveKey(rayv1.AnnotationAbandoned)))
	e.runs(third.Name)
	e.switched(service, third)
}

func halfMoved(e *env) {
	service, before, next := e.upgrading()
	e.operator.Stop()
	head := e.service("llm-head-svc")
	head.Spec.Selector[rayv1.LabelCluster] = next.Name
	e.Expect(e.Update(e.t.Context(), head)).To(Succeed())
	e.start()
	e.soon(func() any { return []string{e.leadsTo("llm-head-svc"), e.leadsTo("llm-serve-svc")} }).Should(Equal([]string{before.Name, before.Name}))
	e.runs(next.Name)
	e.switched(service, next)
}

// ofTheService are the resources whose writes end the operator in crashesAfterEachWrite: those of the RayService's controller.
var ofTheService = []string{"rayservices", "rayservices/status", "rayclusters", "services"}

func crashesAfterEachWrite(e *env) {
	service := e.ready(noWorkers, deletionDelay(0))
	before := e.active(service)
	load := e.underLoad()
	e.operator.Stop()
	e.change(service, image("img:2"))
	lives := 0
	for done := false; !done; lives++ {
		e.Expect(lives).To(BeNumerically("<", 100), "the upgrade gets nowhere: %s", told(service))
		done = e.oneWrite(service, before)
	}
	e.Expect(lives).To(BeNumerically(">", 8), "too few writes were interrupted")
	e.start()
	e.switched(service, e.active(service))
	load.failedNone()
}

// oneWrite lets an operator live until it has made one write, and no longer. It tells whether the upgrade is over.
func (e *env) oneWrite(service *rayv1.RayService, before *rayv1.RayCluster) (over bool) {
	e.t.Helper()
	wire := &harness.Wire{}
	var wrote atomic.Bool
	wire.After(func(r harness.Request) {
		if slices.Contains(ofTheService, r.Resource) && slices.Contains([]string{"create", "patch", "apply", "delete"}, r.Verb) && wrote.CompareAndSwap(false, true) {
			wire.Cut(harness.Everything)
		}
	})
	e.start(harness.Transport(wire.Transport))
	defer e.operator.Stop()
	e.soon(func() any {
		e.refresh(service)
		active := service.Status.ActiveServiceStatus.RayClusterName
		reconciling := condition(service, "Reconciling")
		over = e.isGone(before) && active != before.Name && active != "" && reconciling.Status == metav1.ConditionFalse
		return over || wrote.Load()
	}).Should(BeTrue(), func() string { return "no write; " + told(service) })
	return over
}
