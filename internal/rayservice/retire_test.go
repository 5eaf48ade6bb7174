package rayservice

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// switched is a service whose traffic moved to the fresh cluster so long ago; the old one is there still, and idle.
func switched(ago time.Duration, edits ...func(*Snapshot)) Snapshot {
	s := upgrading(proved, pendingIs(""), serves(fresh), of(old, idle))
	settle(&s)
	of(old, retired(ago))(&s)
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// traffic is what the metrics of both Pods of a cluster say. They have been quiet for so long; zero if they are not.
func traffic(is *dashboard.ServeTraffic, quiet time.Duration) func(*Cluster) {
	return func(c *Cluster) {
		for i := range c.Pods {
			heard := &poll.Observation{Asked: now, Answered: now, Traffic: is}
			if quiet > 0 {
				heard.QuietSince = now.Add(-quiet)
			}
			c.Pods[i].Traffic = heard
		}
	}
}

func idle(c *Cluster) { traffic(&dashboard.ServeTraffic{Reported: true, Requests: 7}, time.Hour)(c) }

func busy(c *Cluster) {
	traffic(&dashboard.ServeTraffic{Reported: true, Ongoing: 2, Requests: 7}, 0)(c)
}

// silentFor lets the Pods tell nothing of their requests for some time; their last word stands.
func silentFor(long time.Duration) func(*Cluster) {
	return func(c *Cluster) {
		for i := range c.Pods {
			heard := poll.Observation{}
			if before := c.Pods[i].Traffic; before != nil {
				heard = *before
			}
			heard.Asked, heard.Err, heard.FailingSince = now, errors.New("refused"), now.Add(-long)
			c.Pods[i].Traffic = &heard
		}
	}
}

func TestARetiredClusterIsTakenDownInSteps(t *testing.T) {
	drain := func(seconds string) func(*Snapshot) { return annotated(rayv1.AnnotationDrainTimeout, seconds) }
	abandoned := clusterAnnotated(rayv1.AnnotationAbandoned, now.Format(time.RFC3339))
	leads := func(service string) func(*Snapshot) {
		return func(s *Snapshot) { s.service(service).Spec.Selector[rayv1.LabelCluster] = old }
	}
	behind := func(s *Snapshot) {
		s.Endpoints[serveService] = append(s.Endpoints[serveService], Endpoint{Pod: s.cluster(old).Pods[0].UID})
	}
	with := func(s Snapshot, edits ...func(*Snapshot)) Snapshot {
		for _, edit := range edits {
			edit(&s)
		}
		return s
	}
	kept, marked := []string(nil), []string{"update " + old}
	for name, c := range map[string]struct {
		given Snapshot
		want  []string
		// wantEvent is the reason of an event, or empty.
		wantEvent string
	}{
		"first it is marked":                                {given: with(switched(0), of(old, unretired)), want: marked},
		"it is kept for a minute":                           {given: switched(59 * time.Second), want: kept},
		"then it is given up":                               {given: switched(60 * time.Second), want: marked},
		"or as soon as is asked for (RS-016)":               {given: switched(0, delay(0)), want: marked},
		"or as late":                                        {given: switched(9*time.Second, delay(10)), want: kept},
		"and then is over":                                  {given: switched(10*time.Second, delay(10)), want: marked},
		"one that is given up is deleted":                   {given: switched(0, of(old, abandoned)), want: []string{"delete " + old}},
		"once":                                              {given: switched(0, of(old, abandoned, terminating)), want: kept},
		"it is kept while it answers requests (RS-062)":     {given: switched(2*time.Minute, of(old, busy)), want: kept},
		"and a little longer":                               {given: switched(2*time.Minute, of(old, traffic(&dashboard.ServeTraffic{Reported: true}, quietTime-time.Second))), want: kept},
		"and until it was asked":                            {given: switched(2*time.Minute, of(old, func(c *Cluster) { c.Pods[1].Traffic = nil })), want: kept},
		"and for half a minute, when it does not tell":      {given: switched(2*time.Minute, of(old, silentFor(silence-time.Second))), want: kept},
		"but not for one that does not answer":              {given: switched(2*time.Minute, of(old, silentFor(silence))), want: marked},
		"unless its last word was of requests":              {given: switched(2*time.Minute, of(old, busy, silentFor(silence))), want: kept},
		"nor for one that does not count":                   {given: switched(2*time.Minute, of(old, traffic(&dashboard.ServeTraffic{}, 0))), want: marked},
		"nor for a Pod that is being deleted":               {given: switched(2*time.Minute, of(old, busy, func(c *Cluster) { terminatingPods(c) })), want: marked},
		"nor for longer than five minutes":                  {given: switched(301*time.Second, of(old, busy)), want: marked, wantEvent: "DrainLimitReached"},
		"or as long as is asked for":                        {given: switched(91*time.Second, of(old, busy), drain("90")), want: marked, wantEvent: "DrainLimitReached"},
		"or not at all":                                     {given: switched(61*time.Second, of(old, busy), drain("0")), want: marked, wantEvent: "DrainLimitReached"},
		"a long delay is kept in any case":                  {given: switched(301*time.Second, of(old, busy), delay(600)), want: kept},
		"it is kept while a Service leads to its Pods":      {given: switched(2*time.Minute, behind), want: kept},
		"it stays for good while the head Service names it": {given: with(switched(time.Hour, of(old, unretired)), leads("shop-head-svc")), want: []string{"apply shop-head-svc"}},
		"a mark that nobody can read is made anew":          {given: switched(0, of(old, clusterAnnotated(rayv1.AnnotationRetiredAt, "yesterday"))), want: marked},
		"also while the spec is wrong":                      {given: switched(time.Minute, annotated(rayv1.AnnotationUpgradeTimeout, "soon")), want: marked},
		"also while the config is wrong":                    {given: switched(time.Minute, config("")), want: marked},
		"two at once": {
			given: switched(time.Minute, made("shop-ccccc"), of("shop-ccccc", retired(time.Minute), idle)), want: []string{"update " + old, "update shop-ccccc"}},
		"a cluster of a goal that is wanted no more goes too": {
			given: upgrading(image("ray:1"), pendingIs(fresh)), want: []string{"update " + fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if diff := cmp.Diff(c.want, verbs(decision.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			reasons := ""
			for _, event := range decision.Events {
				if event.Reason == "DrainLimitReached" {
					reasons += event.Reason
				}
			}
			if reasons != c.wantEvent {
				t.Errorf("events %q, want %q", reasons, c.wantEvent)
			}
		})
	}
}

func unretired(c *Cluster) { delete(c.Object.Annotations, rayv1.AnnotationRetiredAt) }

func terminating(c *Cluster) { c.Object.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func terminatingPods(c *Cluster) {
	for i := range c.Pods {
		c.Pods[i].DeletionTimestamp = ptr.To(metav1.NewTime(now))
	}
}

// Nothing that a Service or a route leads to is deleted or given up, whatever the status says by then (RS-W3, RS-063).
func TestWhatCarriesTrafficIsNeverTakenDown(t *testing.T) {
	for _, service := range []string{serveService, "shop-head-svc", "another-serve-svc"} {
		t.Run(service, func(t *testing.T) {
			s := switched(time.Hour, delay(0))
			if service == "another-serve-svc" {
				other := s.service(serveService).DeepCopy()
				other.Name = service
				s.Services = append(s.Services, other)
			}
			s.service(service).Spec.Selector[rayv1.LabelCluster] = old
			s.Service.Status = rayv1.RayServiceStatuses{}
			for _, a := range Plan(s, settings(), now).Actions {
				switch a := a.(type) {
				case action.Delete:
					if a.Object.GetName() == old {
						t.Error("the cluster is deleted")
					}
				case action.Update:
					if a.Object.GetName() == old && a.Object.GetAnnotations()[rayv1.AnnotationAbandoned] != "" {
						t.Error("the cluster is given up")
					}
				}
			}
		})
	}
}

func TestTheTimesOfARetiredClusterStandOnIt(t *testing.T) {
	s := switched(0, of(old, unretired))
	perform(&s, Plan(s, settings(), now))
	if at, ok := retiredAt(s.cluster(old)); !ok || !at.Equal(now) {
		t.Errorf("retired at %v, want %v", at, now)
	}
	// A process that begins now keeps to that time (RS-082).
	decision := Plan(s, settings(), now.Add(40*time.Second))
	if decision.LookAgain <= 0 || decision.LookAgain > 20*time.Second {
		t.Errorf("the next look is in %s, want no later than in the 20 seconds that are left", decision.LookAgain)
	}
}

func TestPodsOfARetiredClusterAreAskedForTheirRequests(t *testing.T) {
	s := switched(time.Second)
	asked := map[string]string{}
	for _, target := range Plan(s, settings(), now).Pods {
		if target.Ask == poll.AskTraffic {
			asked[target.Owner.Name] = target.BaseURL
		}
	}
	want := map[string]string{"shop-aaaaa-head": "http://10.0.0.1:8080", "shop-aaaaa-worker": "http://10.0.0.2:8080"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked for their requests (-want +got):\n%s", diff)
	}
}

func TestADeletedServiceTakesItsClustersDownFirst(t *testing.T) {
	deleted := func(s *Snapshot) { s.Service.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
	keep := func(s *Snapshot) { s.Service.Finalizers = append(s.Service.Finalizers, "example.com/audit") }
	for name, c := range map[string]struct {
		given Snapshot
		want  []string
	}{
		"all clusters, at once (RS-047)":          {upgrading(deleted), []string{"delete " + old, "delete " + fresh}},
		"each is deleted once (RS-099)":           {upgrading(deleted, of(old, terminating), of(fresh, terminating)), nil},
		"then the finalizer goes":                 {serving(without(old), deleted), []string{"finalizers "}},
		"and only ours":                           {serving(without(old), keep, deleted), []string{"finalizers example.com/audit"}},
		"a service whose spec is wrong goes too":  {serving(annotated(rayv1.AnnotationUpgradeTimeout, "soon"), deleted), []string{"delete " + old}},
		"a suspended one too":                     {serving(conditionWas(rayv1.ConditionRayServiceSuspended, metav1.ConditionTrue, "", 0), without(old), deleted), []string{"finalizers "}},
		"one without our finalizer is let alone":  {serving(deleted, func(s *Snapshot) { s.Service.Finalizers = nil }), nil},
		"one of another controller is let alone":  {serving(spec(func(s *rayv1.RayServiceSpec) { s.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })), nil},
		"but loses our finalizer when it has one": {serving(without(old), deleted, spec(func(s *rayv1.RayServiceSpec) { s.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })), []string{"finalizers "}},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if diff := cmp.Diff(c.want, verbs(decision.Actions)); diff != "" || decision.Status != nil {
				t.Errorf("status %v, actions (-want +got):\n%s", decision.Status, diff)
			}
		})
	}
}

// A cluster that never served can have the head Service, and must not keep the cluster from being made that the spec asks for by
// then: where no port led to Serve, or where the active cluster was lost while traffic moves step by step.
func TestTheHeadServiceKeepsNoClusterFromBeingMade(t *testing.T) {
	s := given(made(fresh), pendingIs(fresh))
	s.store(HeadService(s.Service, s.cluster(fresh).Object, settings().Clusters))
	image("ray:2")(&s)
	settle(&s)
	next := s.cluster(s.Service.Status.PendingServiceStatus.RayClusterName)
	if next == nil || next.name() == fresh {
		t.Fatalf("pending is %q, want another cluster than %s, and one that is made", s.Service.Status.PendingServiceStatus.RayClusterName, fresh)
	}
	if _, is := retiredAt(s.cluster(fresh)); !is || s.cluster(fresh).leaving() {
		t.Errorf("the first cluster has annotations %v, want it retired, and kept while the head Service leads to it", s.cluster(fresh).Object.Annotations)
	}
}
