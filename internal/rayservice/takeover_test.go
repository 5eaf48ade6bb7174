package rayservice

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

const serveService = "shop-serve-svc"

func proxies(name, status string) func(*Snapshot) {
	return of(name, func(c *Cluster) {
		for key, proxy := range c.Report.Serve.Proxies {
			proxy.Status = status
			c.Report.Serve.Proxies[key] = proxy
		}
	})
}

// pod changes one Pod of a cluster: 0 is the head, 1 the worker.
func pod(number int, edits ...func(*Pod)) func(*Cluster) {
	return func(c *Cluster) {
		for _, edit := range edits {
			edit(&c.Pods[number])
		}
	}
}

func unhealthy(p *Pod) {
	p.Health = &poll.Observation{Asked: now, Err: errors.New("503"), Failures: leastFailures}
}

func unasked(p *Pod) { p.Health = nil }

func notReady(service string, number int) func(*Snapshot) {
	return func(s *Snapshot) { s.Endpoints[service][number].Ready = false }
}

func TestTrafficMovesWhenThePendingClusterHasProvedItself(t *testing.T) {
	const own = fresh + "-serve-svc"
	leaving := func(c *Cluster) { c.Object.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	two := "applications: [{name: a, import_path: 'a:b', route_prefix: /a}, {name: b, import_path: 'b:b', route_prefix: /b}]"
	first := func(edits ...func(*Snapshot)) Snapshot {
		return given(append([]func(*Snapshot){made(fresh), pendingIs(fresh), proved}, edits...)...)
	}
	for name, c := range map[string]struct {
		given Snapshot
		// wantWaiting is a part of what is waited for; empty when traffic moves.
		wantWaiting string
	}{
		"all is proved":         {given: upgrading(proved)},
		"no report yet":         {upgrading(), "does not answer"},
		"no answer any more":    {upgrading(proved, of(fresh, silent)), "does not answer"},
		"an empty report (L49)": {upgrading(reports(fresh, "", "")), "does not have the config"},
		"an application starts": {upgrading(reports(fresh, fruit, "DEPLOYING")), "fruit on RayCluster shop-bbbbb is DEPLOYING"},
		"a deployment of an application that starts fails": {upgrading(reports(fresh, fruit, "DEPLOYING"), deploymentSays(fresh, "no such package")),
			"fruit on RayCluster shop-bbbbb is DEPLOYING deployment stand: no such package"},
		"an application failed":                            {upgrading(reports(fresh, fruit, "DEPLOY_FAILED")), "DEPLOY_FAILED"},
		"a status of a later Ray":                          {upgrading(reports(fresh, fruit, "RUNNING_WELL")), "RUNNING_WELL"},
		"one of two applications is missing":               {upgrading(config(two), reports(fresh, fruit, "RUNNING")), "does not have the config"},
		"the report speaks of another config (RS-017)":     {upgrading(reports(fresh, fruit2, "RUNNING")), "does not have the config"},
		"the report is older than the config":              {upgrading(proved, of(fresh, put(fruit, nil, 0))), "was just given"},
		"the config is on its way":                         {upgrading(proved, of(fresh, func(c *Cluster) { c.Sending = true })), "was just given"},
		"a config that Serve took before the report":       {given: upgrading(proved, of(fresh, put(fruit, nil, time.Minute)))},
		"no endpoint (RS-060)":                             {upgrading(proved, withoutReady(own)), "Pods that have a Serve proxy and do not take requests yet"},
		"no endpoint and no proxy":                         {upgrading(proved, withoutReady(own), proxies(fresh, "STARTING")), "no ready endpoint"},
		"no endpoint is ready":                             {upgrading(proved, notReady(own, 0), notReady(own, 1)), "do not take requests yet: shop-bbbbb-head, shop-bbbbb-worker"},
		"one endpoint is not ready, although its proxy is": {upgrading(proved, notReady(own, 1)), "do not take requests yet: shop-bbbbb-worker"},
		"one endpoint is not ready, and has no proxy": {given: upgrading(proved, notReady(own, 1), of(fresh, func(c *Cluster) {
			delete(c.Report.Serve.Proxies, "shop-bbbbb-worker")
		}))},
		"an endpoint does not answer":   {upgrading(proved, of(fresh, pod(1, unhealthy))), "do not take requests yet: shop-bbbbb-worker"},
		"an endpoint was not asked yet": {upgrading(proved, of(fresh, pod(0, unasked))), "do not take requests yet: shop-bbbbb-head"},
		"the head does not count where it takes no requests": {given: upgrading(proved, notReady(own, 0),
			spec(func(s *rayv1.RayServiceSpec) { s.ExcludeHeadPodFromServeSvc = true }), of(fresh, pod(0, unhealthy)))},
		"a proxy is known by the name of its Pod": {upgrading(proved, notReady(own, 1), of(fresh, func(c *Cluster) {
			c.Report.Serve.Proxies = map[string]dashboard.ServeProxy{"n": {Status: healthyProxy, NodeInstanceID: "shop-bbbbb-worker"}}
		})), "do not take requests yet: shop-bbbbb-worker"},
		"the active head is lost (RS-071)":                            {given: upgrading(proved, of(old, func(c *Cluster) { c.Pods = nil }))},
		"the active dashboard is silent":                              {given: upgrading(proved, of(old, silent))},
		"the active cluster is lost: running applications are enough": {given: upgrading(proved, without(old), withoutReady(own))},
		"and when it is being deleted":                                {given: upgrading(proved, of(old, leaving), withoutReady(own))},
		"but not less than that":                                      {upgrading(reports(fresh, fruit, "DEPLOYING"), without(old)), "DEPLOYING"},
		"on the first start running applications are enough (RS-006)": {given: first(withoutReady(own))},
		"but not less than that there":                                {first(reports(fresh, fruit, "DEPLOYING")), "DEPLOYING"},
		"nor with a config that cannot be used":                       {first(config("")), "the Serve config has no applications"},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			moved := movedTo(decision)
			if got := moved == fresh; got != (c.wantWaiting == "") {
				t.Fatalf("traffic moves: %t, want %t", got, c.wantWaiting == "")
			}
			said := slices.ContainsFunc(statusOf(c.given, decision).Conditions, func(condition metav1.Condition) bool {
				return strings.Contains(condition.Message, c.wantWaiting)
			})
			if !said {
				t.Errorf("no condition says %q: %v", c.wantWaiting, statusOf(c.given, decision).Conditions)
			}
		})
	}
}

// movedTo is the cluster that a plan makes the Service of Serve lead to, or empty when it does not write that.
func movedTo(decision Decision) string {
	for _, a := range decision.Actions {
		var object action.Object
		switch a := a.(type) {
		case action.Create:
			object = a.Object
		case action.Apply:
			object = a.Object
		}
		if service, ok := object.(*corev1.Service); ok && service.Name == serveService {
			return service.Spec.Selector[rayv1.LabelCluster]
		}
	}
	return ""
}

func TestTrafficMovesToWhatIsReadyAndNothingElse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		status := rapid.SampledFrom([]string{"RUNNING", "RUNNING", "RUNNING", "RUNNING", "DEPLOYING", "UNHEALTHY"}).Draw(r, "status")
		text := rapid.SampledFrom([]string{fruit, fruit, fruit, fruit, fruit2, ""}).Draw(r, "config that Serve has")
		s := upgrading(reports(fresh, text, status))
		for i := range 2 {
			if rapid.IntRange(0, 5).Draw(r, "endpoint") == 0 {
				notReady(fresh+"-serve-svc", i)(&s)
			}
			if rapid.IntRange(0, 5).Draw(r, "proxy") == 0 {
				of(fresh, pod(i, unhealthy))(&s)
			}
		}
		if rapid.IntRange(0, 5).Draw(r, "old report") == 0 {
			of(fresh, put(fruit, nil, 0))(&s)
		}
		c := s.cluster(fresh)
		serving := 0
		for i := range c.Pods {
			if s.Endpoints[fresh+"-serve-svc"][i].Ready && c.Pods[i].Health.Err == nil {
				serving++
			}
		}
		ready := status == "RUNNING" && text == fruit && c.Put == nil && serving == 2
		if moves := movedTo(Plan(s, settings(), now)) == fresh; moves != ready {
			r.Errorf("traffic moves: %t, to a cluster with status %s, config %q and %d Pods that serve", moves, status, text, serving)
		}
	})
}

func TestTheCutOverIsOneWrite(t *testing.T) {
	for name, c := range map[string]struct {
		given      Snapshot
		wantFrom   string
		wantReason string
		wantCreate bool
	}{
		"a first start":           {given(made(fresh), pendingIs(fresh), proved), "", rayv1.CutOverFirstStart, true},
		"an upgrade":              {upgrading(proved), old, rayv1.CutOverUpgrade, false},
		"a recovery":              {upgrading(proved, without(old)), old, rayv1.CutOverRecovery, false},
		"a Service that was lost": {upgrading(proved, func(s *Snapshot) { s.remove(s.service(serveService)) }), old, rayv1.CutOverUpgrade, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.given.service(serveService)
			decision := Plan(c.given, settings(), now)
			var writes []action.Object
			for _, a := range decision.Actions {
				switch a := a.(type) {
				case action.Create:
					writes = append(writes, a.Object)
					if !c.wantCreate {
						t.Error("the Service is created, want an apply")
					}
				case action.Apply:
					if a.Object.GetName() != serveService {
						continue
					}
					writes = append(writes, a.Object)
					if a.Object.GetResourceVersion() != before.ResourceVersion || c.wantCreate {
						t.Errorf("the write is made for version %q, want that which was observed, %q", a.Object.GetResourceVersion(), before.ResourceVersion)
					}
				}
			}
			if len(writes) != 1 {
				t.Fatalf("%d writes, want one: %v", len(writes), verbs(decision.Actions))
			}
			service := writes[0].(*corev1.Service)
			if diff := cmp.Diff(map[string]string{rayv1.LabelCluster: fresh, rayv1.LabelServe: "true"}, service.Spec.Selector); diff != "" {
				t.Errorf("selector (-want +got):\n%s", diff)
			}
			want := map[string]string{rayv1.AnnotationServesCluster: fresh, rayv1.AnnotationServesGoal: Goal(&c.given.Service.Spec.RayClusterConfig),
				rayv1.AnnotationSwitchedAt: now.Format(time.RFC3339), rayv1.AnnotationSwitchedFrom: c.wantFrom, rayv1.AnnotationSwitchReason: c.wantReason}
			if diff := cmp.Diff(want, switchAnnotations(service)); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// The write is the commit point: whoever looks next finds the roles in the Service, also when the status of the pass that
// made it was lost and the spec has changed meanwhile (RS-W3).
func TestWhatFollowsFromTheCutOver(t *testing.T) {
	s := upgrading(proved)
	decision := Plan(s, settings(), now)
	decision.Status = nil
	perform(&s, decision)
	image("ray:3")(&s)
	next := Plan(s, settings(), now)
	st := statusOf(s, next)
	if st.ActiveServiceStatus.RayClusterName != fresh || st.PendingServiceStatus.RayClusterName == fresh {
		t.Errorf("active is %q and pending %q, want the cluster that the Service names to be active", st.ActiveServiceStatus.RayClusterName, st.PendingServiceStatus.RayClusterName)
	}
	if want := []string{"apply shop-head-svc"}; !slices.Equal(verbs(next.Actions), want) {
		t.Errorf("the plan wants %v, want %v: the head Service follows", verbs(next.Actions), want)
	}
	if len(st.CutOvers) != 2 {
		t.Fatalf("the history is %v, want the first start and one cut-over", st.CutOvers)
	}
	want := rayv1.RayServiceCutOver{Time: metav1.NewTime(now), From: old, To: fresh, Goal: Goal(&given(image("ray:2")).Service.Spec.RayClusterConfig), DurationSeconds: 600,
		Reason: rayv1.CutOverUpgrade}
	if diff := cmp.Diff(want, st.CutOvers[0]); diff != "" {
		t.Errorf("cut-over (-want +got):\n%s", diff)
	}
	settle(&s)
	if s.service("shop-head-svc").Spec.Selector[rayv1.LabelCluster] != fresh {
		t.Error("the head Service does not follow")
	}
	if _, retired := retiredAt(s.cluster(old)); !retired {
		t.Error("the old cluster is not retired")
	}
}

func TestTheHistoryKeepsTheLastTenCutOvers(t *testing.T) {
	s := serving(status(func(st *rayv1.RayServiceStatuses) {
		for range maxCutOvers {
			st.CutOvers = append(st.CutOvers, rayv1.RayServiceCutOver{To: "before", Time: metav1.NewTime(now.Add(-2 * time.Hour))})
		}
	}))
	s.Service.Status.CutOvers = s.Service.Status.CutOvers[1:]
	history := statusOf(s, Plan(s, settings(), now)).CutOvers
	if len(history) != maxCutOvers || history[0].To != old || history[1].To != "before" {
		t.Errorf("the history is %v, want the last cut-over before nine others", history)
	}
}

func TestAServiceThatWasDeletedLeadsToTheActiveClusterAgain(t *testing.T) {
	s := serving(func(s *Snapshot) { s.remove(s.service(serveService)) })
	decision := Plan(s, settings(), now)
	if movedTo(decision) != old {
		t.Errorf("the plan wants %v, want the Service made for %s", verbs(decision.Actions), old)
	}
}
