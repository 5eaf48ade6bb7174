package rayservice

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// unheard is what somebody sees of a service who has heard nothing and remembers nothing.
func unheard(s Snapshot) Snapshot {
	s.Holds = nil
	s.Clusters = slices.Clone(s.Clusters)
	for i := range s.Clusters {
		c := &s.Clusters[i]
		c.Report, c.Put, c.Sending = nil, nil, false
		c.Pods = slices.Clone(c.Pods)
		for j := range c.Pods {
			c.Pods[j].Health, c.Pods[j].Traffic = nil, nil
		}
	}
	return s
}

// doesWhatIsForeseen checks that each write which is foreseen is one of a decision, and says the same of who serves.
func doesWhatIsForeseen(t failer, foreseen action.Outlook, s Snapshot, decision Decision) {
	t.Helper()
	does := verbs(decision.Actions)
	for _, verb := range verbs(foreseen.Actions) {
		if !slices.Contains(does, verb) {
			t.Fatalf("%q is foreseen, and done are %v", verb, does)
		}
	}
	if foreseen.Status == nil {
		return
	}
	want, got := statusOf(s, decision), foreseen.Status.Object.(*rayv1.RayService).Status
	for _, pair := range [][2]rayv1.RayServiceStatus{{want.ActiveServiceStatus, got.ActiveServiceStatus}, {want.PendingServiceStatus, got.PendingServiceStatus}} {
		if pair[0].RayClusterName != pair[1].RayClusterName || ptr.Deref(pair[0].TargetCapacity, -1) != ptr.Deref(pair[1].TargetCapacity, -1) {
			t.Fatalf("%q with capacity %d is foreseen, and it is %q with %d", pair[1].RayClusterName, ptr.Deref(pair[1].TargetCapacity, -1),
				pair[0].RayClusterName, ptr.Deref(pair[0].TargetCapacity, -1))
		}
	}
}

func TestForesee(t *testing.T) {
	refused := func(s *Snapshot) {
		s.Holds = map[string]action.Hold{clusterKey(s.Service.Status.PendingServiceStatus.RayClusterName): {
			Until: now.Add(time.Minute), Reason: "FailedToCreateRayCluster", Message: "exceeded quota"}}
		settle(s)
	}
	for name, test := range map[string]struct {
		given Snapshot
		// does are the actions, and writes tells whether the status is written.
		does   []string
		writes bool
		// asks, waits and unknown are parts of the sentences, one for each sentence.
		asks, waits, unknown []string
	}{
		"a service that serves is at rest": {given: serving(), asks: []string{"Serve on RayCluster shop-aaaaa at http", "the Serve proxies of 2 Pods"}},
		"a new one chooses a name":         {given: given(), writes: true, waits: []string{"the applications on RayCluster shop-"}},
		"one that is starting": {given: given(made(old), pendingIs(old), reports(old, fruit, "DEPLOYING"), func(s *Snapshot) { settle(s) }),
			asks: []string{"Serve on RayCluster shop-aaaaa", "proxies"}, waits: []string{"the applications on RayCluster shop-aaaaa to run"}},
		"an upgrade under way": {given: upgrading(func(s *Snapshot) { settle(s) }), asks: []string{"shop-aaaaa", "shop-bbbbb", "proxies of 4 Pods"},
			waits: []string{"before it takes over from shop-aaaaa"}},
		"a changed spec begins an upgrade": {given: serving(image("ray:2")), writes: true, asks: []string{"shop-aaaaa", "proxies"}, waits: []string{"to run, and its Pods"}},
		"a refused config is still refused": {given: serving(config(fruit2), of(old, put(fruit2, dashboard.ErrRefused, time.Second)), func(s *Snapshot) { settle(s) }),
			asks: []string{"shop-aaaaa", "proxies"}},
		"an application that is sick stays so": {given: serving(reports(old, fruit, "UNHEALTHY"), func(s *Snapshot) { settle(s) }), asks: []string{"shop-aaaaa", "proxies"}},
		"a Serve that does not answer":         {given: serving(of(old, silent), func(s *Snapshot) { settle(s) }), asks: []string{"shop-aaaaa", "proxies"}},
		"another operator's version":           {given: serving(of(old, clusterAnnotated(rayv1.AnnotationOperatorVersion, "0.9"))), asks: []string{"shop-aaaaa", "proxies"}},
		"a refused cluster": {given: given(settleOnce, refused), does: []string{"create"}, waits: []string{"the applications"},
			unknown: []string{"exceeded quota"}},
		"a retired cluster": {given: switched(time.Second, func(s *Snapshot) { settle(s) }), asks: []string{"shop-bbbbb", "proxies", "2 Pods of retired"},
			waits: []string{"RayCluster shop-aaaaa to be idle"}},
		"a suspended one":  {given: serving(suspend(true), func(s *Snapshot) { settle(s) }), waits: []string{"spec.suspend to be false"}},
		"a deleted one":    {given: serving(terminatingService), does: []string{"delete shop-aaaaa"}, waits: []string{"its RayClusters to be gone"}},
		"others manage it": {given: given(func(s *Snapshot) { s.Service.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }), waits: []string{"spec.managedBy leaves"}},
		"there is no such": {},
	} {
		t.Run(name, func(t *testing.T) {
			o := Foresee(unheard(test.given), settings(), now)
			if does := verbs(o.Actions); !slices.EqualFunc(does, test.does, strings.HasPrefix) {
				t.Errorf("it does %v, want %v", does, test.does)
			}
			if writes := o.Status != nil; writes != test.writes {
				t.Errorf("it writes the status: %t, want %t: %+v", writes, test.writes, o.Status)
			}
			for what, sentences := range map[string][2][]string{"asks": {o.Asks, test.asks}, "waits": {o.Waits, test.waits}, "unknown": {o.Unknown, test.unknown}} {
				if !slices.EqualFunc(sentences[0], sentences[1], strings.Contains) {
					t.Errorf("%s: %q, want %q", what, sentences[0], sentences[1])
				}
			}
		})
	}
}

// TestWhatIsForeseenIsDone compares the plan of somebody who knows nothing with that of an operator which does. So does the
// world of the step by step take-overs, in each pass.
func TestWhatIsForeseenIsDone(t *testing.T) {
	rest := func(s *Snapshot) { settle(s) }
	states := map[string]Snapshot{
		"nothing yet": given(), "a start": given(made(old), pendingIs(old), reports(old, fruit, "DEPLOYING"), rest),
		"a service": serving(), "an upgrade": upgrading(rest), "a proved one": upgrading(rest, proved), "a switched one": switched(time.Second, rest),
		"a replaced one": switched(time.Hour), "a busy one": switched(time.Minute, of(old, busy)),
	}
	edits := map[string]func(*Snapshot){
		"none": func(*Snapshot) {}, "image": image("ray:3"), "config": config(fruit2), "no config": config("nonsense: ["),
		"suspended": suspend(true), "no upgrade": strategy(rayv1.RayServiceUpgradeNone), "steps": strategy(rayv1.RayServiceNewClusterWithIncrementalUpgrade),
		"deleted":  terminatingService,
		"given up": annotated(rayv1.AnnotationUpgradeTimeout, "1s"), "not started": annotated(rayv1.AnnotationInitializingTimeout, "1s"),
		"no Services": noServices,
		"silence": func(s *Snapshot) {
			for i := range s.Clusters {
				silent(&s.Clusters[i])
			}
		},
		"refusals": func(s *Snapshot) {
			for i := range s.Clusters {
				put(fruit, errors.Join(dashboard.ErrRefused), time.Second)(&s.Clusters[i])
			}
		},
	}
	for state, s := range states {
		for name, edit := range edits {
			t.Run(state+"/"+name, func(t *testing.T) {
				s := s
				s.Service = s.Service.DeepCopy()
				s.Clusters, s.Services = slices.Clone(s.Clusters), slices.Clone(s.Services)
				edit(&s)
				doesWhatIsForeseen(t, Foresee(unheard(s), settings(), now), s, Plan(s, settings(), now))
			})
		}
	}
}

func terminatingService(s *Snapshot) { s.Service.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }
