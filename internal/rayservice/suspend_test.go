package rayservice

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// suspend asks for the suspension, or takes the wish back.
func suspend(is bool) func(*Snapshot) {
	return spec(func(s *rayv1.RayServiceSpec) { s.Suspend = is })
}

// conditionsOf are the conditions of a status that suspending sets, in short.
func conditionsOf(st rayv1.RayServiceStatuses) map[string]string {
	short := map[string]string{}
	for _, kind := range []string{rayv1.ConditionRayServiceReady, rayv1.ConditionUpgradeInProgress, rayv1.ConditionRollbackInProgress,
		rayv1.ConditionRayServiceSuspending, rayv1.ConditionRayServiceSuspended} {
		if c := conditionOf(st, kind); c.Type != "" {
			short[kind] = string(c.Status) + "/" + c.Reason
		}
	}
	return short
}

func TestASuspendedServiceLosesAllThatItOwns(t *testing.T) {
	s := upgrading(suspend(true))
	first := Plan(s, settings(), now)
	if got := verbs(first.Actions); got != nil {
		t.Errorf("the first pass only says what is to come, but wants %v", got)
	}
	want := map[string]string{"Ready": "False/SuspendInProgress", "UpgradeInProgress": "False/SuspendInProgress", "RollbackInProgress": "False/SuspendInProgress",
		"Suspending": "True/SuspendRequested"}
	if diff := cmp.Diff(want, conditionsOf(statusOf(s, first))); diff != "" {
		t.Errorf("conditions of the first pass (-want +got):\n%s", diff)
	}
	perform(&s, first)
	st := s.Service.Status
	if st.ActiveServiceStatus.RayClusterName != "" || st.PendingServiceStatus.RayClusterName != "" || st.NumServeEndpoints != 0 || st.ServiceStatus != "" {
		t.Errorf("the status still speaks of clusters: %+v", st)
	}

	suspend(false)(&s) // a wish that comes too late
	owner := []metav1.OwnerReference{ownerReference(s.Service)}
	s.Gateway = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "shop-gateway", OwnerReferences: owner}}
	s.Route = &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "shop-httproute"}}
	second := Plan(s, settings(), now)
	wantVerbs := []string{"delete " + old, "delete " + fresh, "delete shop-serve-svc", "delete shop-head-svc", "delete shop-gateway"}
	if diff := cmp.Diff(sorted(wantVerbs), sorted(verbs(second.Actions))); diff != "" {
		t.Errorf("actions of the second pass: all that is owned goes, and nothing else (-want +got):\n%s", diff)
	}
	perform(&s, second)
	s.Gateway = nil

	third := Plan(s, settings(), now)
	want = map[string]string{"Ready": "False/SuspendComplete", "UpgradeInProgress": "False/SuspendComplete", "RollbackInProgress": "False/SuspendComplete",
		"Suspending": "False/SuspendComplete", "Suspended": "True/SuspendComplete"}
	if diff := cmp.Diff(want, conditionsOf(statusOf(s, third))); diff != "" {
		t.Errorf("conditions of the third pass (-want +got):\n%s", diff)
	}
	if len(third.Reports)+len(third.Pods) != 0 {
		t.Error("nothing is left to be asked")
	}
}

func TestASuspensionIsBroughtToItsEnd(t *testing.T) {
	suspending := conditionWas(rayv1.ConditionRayServiceSuspending, metav1.ConditionTrue, rayv1.ReasonSuspendInProgress, time.Minute)
	suspended := conditionWas(rayv1.ConditionRayServiceSuspended, metav1.ConditionTrue, rayv1.ReasonSuspendComplete, time.Minute)
	ready := conditionWas(rayv1.ConditionRayServiceReady, metav1.ConditionFalse, rayv1.ReasonSuspendComplete, time.Minute)
	for name, c := range map[string]struct {
		given Snapshot
		want  map[string]string
	}{
		"what is terminating is waited for (RS-043)": {given(suspending, made(old), of(old, terminating), noServices),
			map[string]string{"Suspending": "True/SuspendInProgress", "Ready": "False/SuspendInProgress", "UpgradeInProgress": "False/SuspendInProgress", "RollbackInProgress": "False/SuspendInProgress"}},
		"a suspended one rests": {given(suspended, ready, suspend(true)),
			map[string]string{"Suspended": "True/SuspendComplete", "Ready": "False/SuspendComplete"}},
		"one that is resumed begins anew (RS-044)": {given(suspended, ready, suspend(false)),
			map[string]string{"Suspended": "False/RayServiceResumed", "Ready": "False/Initializing", "UpgradeInProgress": "False/Initializing"}},
		"a spec that is wrong is not suspended": {given(suspend(true), annotated(rayv1.AnnotationUpgradeTimeout, "soon")),
			map[string]string{"Ready": "False/ValidationFailed", "UpgradeInProgress": "False/Initializing"}},
		"one that was given up is suspended": {given(suspend(true), conditionWas(rayv1.ConditionRayServiceReady, metav1.ConditionFalse, rayv1.ReasonInitializingTimeout, time.Minute)),
			map[string]string{"Suspending": "True/SuspendRequested", "Ready": "False/SuspendInProgress", "UpgradeInProgress": "False/SuspendInProgress", "RollbackInProgress": "False/SuspendInProgress"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, conditionsOf(statusOf(c.given, Plan(c.given, settings(), now)))); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func noServices(s *Snapshot) { s.Services, s.Endpoints = nil, map[string][]Endpoint{} }

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

// The time for the start counts anew: the transition is new although the condition is False before and after.
func TestAResumedServiceHasAllItsTime(t *testing.T) {
	s := given(annotated(rayv1.AnnotationInitializingTimeout, "60"),
		conditionWas(rayv1.ConditionRayServiceSuspended, metav1.ConditionTrue, rayv1.ReasonSuspendComplete, time.Hour),
		conditionWas(rayv1.ConditionRayServiceReady, metav1.ConditionFalse, rayv1.ReasonSuspendComplete, time.Hour))
	perform(&s, Plan(s, settings(), now))
	if at := conditionOf(s.Service.Status, rayv1.ConditionRayServiceReady).LastTransitionTime; !at.Time.Equal(now) {
		t.Errorf("it is Initializing since %v, want %v", at, now)
	}
	if s.Service.Status.PendingServiceStatus.RayClusterName == "" {
		t.Error("no cluster is chosen")
	}
	later := statusOf(s, Plan(s, settings(), now.Add(59*time.Second)))
	if reason := conditionOf(later, rayv1.ConditionRayServiceReady).Reason; reason != rayv1.ReasonInitializing {
		t.Errorf("after 59 of 60 seconds the reason is %q", reason)
	}
}
