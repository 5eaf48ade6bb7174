package rayservice

import (
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// cutOverCases are about the moment at which traffic moves, and about the requests that are under way then.
func cutOverCases() []Case {
	return []Case{
		{Row: 60, Kind: better, Weak: []string{"RS-W1"}, Theirs: "traffic moves to a cluster that takes no requests",
			Given: "an upgrade whose applications run, while no proxy of the new cluster is healthy", When: "Serve is asked again and again",
			Then: "the serve Service leads to the old cluster; it moves when the proxies are healthy", How: "applications that run are not enough: the cluster's own Service must have endpoints that answer",
			Run: waitsForEndpoints},
		{Row: 61, Kind: better, Weak: []string{"RS-W1", "RS-W2"}, Theirs: "requests fail for seconds",
			Given: "constant load through the serve Service", When: "an upgrade takes place", Then: "no request fails", How: "the move is one write, made when both clusters take requests",
			Run: failsNoRequest, Elsewhere: "with real Ray and kube-proxy: test/e2e"},
		{Row: 62, Kind: better, Weak: []string{"RS-W2"}, Theirs: "requests are cut when the deletion delay is over",
			Given: "requests that take longer than the deletion delay", When: "traffic has moved", Then: "the old cluster stays until they have ended, or until the limit for that, and an event tells of the limit",
			How: "the Pods are asked how many requests they serve", Run: drains},
		{Row: 71, Kind: better, Weak: []string{"RS-W9"}, Theirs: "the upgrade stops",
			Given: "an upgrade", When: "the head of the active cluster is lost for good and the new cluster is ready", Then: "traffic moves",
			How: "clusters are judged one by one", Run: leavesALostHead},
	}
}

// failProxies has no proxy of a cluster answer, from before Serve runs there.
func (e *env) failProxies(cluster string, pods int) []corev1.Pod {
	e.t.Helper()
	e.soon(func() any { return e.allPods(cluster) }).Should(HaveLen(pods))
	all := e.allPods(cluster)
	for i := range all {
		e.nodes.Proxy(&all[i]).SetHealthy(false)
	}
	return all
}

func waitsForEndpoints(e *env) {
	service, before, next := e.upgrading()
	pods := e.failProxies(next.Name, 2)
	e.runs(next.Name)
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.ApplicationStatuses["app"].Status }).Should(Equal("RUNNING"))
	e.asked(e.ray(next.Name), 3)
	e.rest()
	e.Expect(e.leadsTo("llm-serve-svc")).To(Equal(before.Name))
	e.refresh(service)
	e.Expect(condition(service, "UpgradeInProgress").Message).To(ContainSubstring("proxy"))
	e.Expect(service.Status.PendingServiceStatus.ReadyServeEndpoints).To(BeZero())
	e.Expect(condition(service, "Ready").Status).To(Equal(metav1.ConditionTrue))
	for i := range pods {
		e.nodes.Proxy(&pods[i]).SetHealthy(true)
	}
	e.switched(service, next)
}

// load sends requests to all that the serve Service leads to, as clients do by way of kube-proxy.
type load struct {
	e      *env
	sent   atomic.Int64
	failed []string
	stop   chan struct{}
	ended  chan struct{}
}

// underLoad sends requests, from when the Service first takes one. It ends with the test at the latest.
func (e *env) underLoad() *load {
	e.t.Helper()
	l := &load{e: e, stop: make(chan struct{}), ended: make(chan struct{})}
	e.soon(func() any { return l.send() }).Should(BeEmpty())
	go l.run()
	e.t.Cleanup(l.end)
	return l
}

func (l *load) run() {
	defer close(l.ended)
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(50 * time.Millisecond):
			if why := l.send(); why != "" {
				l.failed = append(l.failed, why)
			}
		}
	}
}

// send asks each Pod that the Service leads to, and returns what went wrong.
func (l *load) send() string {
	slice := &discoveryv1.EndpointSlice{}
	if err := l.e.read(slice, "llm-serve-svc-ipv4"); err != nil {
		return err.Error()
	}
	ready := 0
	for _, endpoint := range slice.Endpoints {
		if !ptr.Deref(endpoint.Conditions.Ready, true) {
			continue
		}
		ready++
		answer, err := l.e.Rays.Client().Get("http://" + endpoint.Addresses[0] + ":8000/-/healthz")
		if err != nil {
			return "a request to " + endpoint.TargetRef.Name + ": " + err.Error()
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return "a request to " + endpoint.TargetRef.Name + ": " + answer.Status
		}
		l.sent.Add(1)
	}
	if ready == 0 {
		return "no Pod takes requests"
	}
	return ""
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	<-l.ended
}

// failedNone ends the load and checks that there was some and that all went well.
func (l *load) failedNone() {
	l.e.t.Helper()
	l.end()
	l.e.Expect(l.failed).To(BeEmpty())
	l.e.Expect(l.sent.Load()).To(BeNumerically(">", 20))
}

func failsNoRequest(e *env) {
	service := e.ready(deletionDelay(0))
	load := e.underLoad()
	for _, version := range []string{"img:2", "img:3"} {
		before := e.active(service)
		next := e.upgrade(service, image(version))
		e.runs(next.Name)
		e.switched(service, next)
		e.gone(before)
	}
	load.failedNone()
}

func drains(e *env) {
	const limited = "limited"
	services := []*rayv1.RayService{e.given(deletionDelay(0)), e.given(named(limited), deletionDelay(0), annotated("heliostat.io/drain-timeout-seconds", "3"))}
	old := map[string]*rayv1.RayCluster{}
	for _, service := range services {
		e.serves(service)
		old[service.Name] = e.active(service)
		for _, pod := range e.allPods(old[service.Name].Name) {
			e.nodes.Proxy(&pod).SetTraffic(1, 7)
		}
		e.change(service, image("img:2"))
	}
	e.gone(old[limited])
	e.said(services[1], corev1.EventTypeWarning, "DrainLimitReached")

	busy := old[name]
	e.retired(busy)
	e.rest()
	e.Expect(e.isGone(busy)).To(BeFalse())
	e.Expect(e.read(busy, busy.Name)).To(Succeed())
	e.Expect(busy.Annotations).ToNot(HaveKey(rayv1.AnnotationAbandoned))
	for _, pod := range e.allPods(busy.Name) {
		e.nodes.Proxy(&pod).SetTraffic(0, 8)
	}
	e.gone(busy)
	e.Expect(e.times(services[0], "DrainLimitReached")).To(BeZero())
}

func leavesALostHead(e *env) {
	service, before, next := e.upgrading()
	e.soon(func() any { return e.allPods(next.Name) }).Should(HaveLen(2))
	e.LimitPods(e.t, e.ns, 0)
	e.Kill(e.t, e.head(before.Name))
	e.soon(func() any { return e.Pods(e.t, e.ns, harness.HeadOf(before.Name)) }).Should(BeEmpty())
	e.runs(next.Name)
	e.switched(service, next)
}
