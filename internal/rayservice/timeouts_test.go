package rayservice

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// initializing means that the service has been starting for so long.
func initializing(ago time.Duration) func(*Snapshot) {
	return conditionWas(rayv1.ConditionRayServiceReady, metav1.ConditionFalse, rayv1.ReasonInitializing, ago)
}

func TestAServiceThatDoesNotStartInTimeIsGivenUp(t *testing.T) {
	minute := annotated(rayv1.AnnotationInitializingTimeout, "1m")
	stalled := conditionWas(rayv1.ConditionStalled, metav1.ConditionTrue, rayv1.ReasonConfigRefused, time.Minute)
	for name, c := range map[string]struct {
		given Snapshot
		want  bool
	}{
		"its time is over (RS-036)":                      {given(minute, initializing(time.Minute), made(fresh), pendingIs(fresh)), true},
		"it has a second left":                           {given(minute, initializing(59*time.Second), made(fresh), pendingIs(fresh)), false},
		"it has all the time there is":                   {given(initializing(24*time.Hour), made(fresh), pendingIs(fresh)), false},
		"there is not even a cluster":                    {given(minute, initializing(time.Minute), pendingIs(fresh)), true},
		"nor a head (RS-073)":                            {given(minute, initializing(time.Minute), made(fresh), pendingIs(fresh), of(fresh, func(c *Cluster) { c.Pods, c.HeadService = nil, nil })), true},
		"its config is wrong":                            {given(minute, initializing(time.Minute), config("applications: 7"), made(fresh), pendingIs(fresh)), true},
		"Serve refuses its config (RS-074)":              {given(minute, initializing(time.Minute), stalled, made(fresh), pendingIs(fresh), reports(fresh, "", ""), of(fresh, put(fruit, errServe, time.Second))), true},
		"a cluster serves, without an endpoint (RS-097)": {given(minute, initializing(time.Hour), made(old), serves(old), reports(old, fruit, "RUNNING"), withoutReady(serveService)), false},
		"it was ready once (RS-038)":                     {given(minute, conditionWas(rayv1.ConditionRayServiceReady, metav1.ConditionFalse, rayv1.ReasonZeroServeEndpoints, time.Hour), pendingIs(fresh)), false},
		"it is ready":                                    {serving(minute), false},
		"the limit itself is wrong":                      {given(annotated(rayv1.AnnotationInitializingTimeout, "-1"), initializing(time.Hour), made(fresh), pendingIs(fresh)), false},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			st := statusOf(c.given, decision)
			ready := conditionOf(st, rayv1.ConditionRayServiceReady)
			if got := ready.Reason == rayv1.ReasonInitializingTimeout; got != c.want {
				t.Fatalf("it is given up: %t, want %t (%s)", got, c.want, ready.Reason)
			}
			if !c.want {
				return
			}
			if st.PendingServiceStatus.RayClusterName != "" || st.ActiveServiceStatus.RayClusterName != "" {
				t.Errorf("the status still names clusters: %+v", st)
			}
			told := 0
			for _, event := range decision.Events {
				if event.Reason == "RayServiceInitializingTimeout" && event.Type == "Warning" {
					told++
				}
			}
			if told != 1 {
				t.Errorf("%d events tell of it, want one: %v", told, decision.Events)
			}
		})
	}
}

func TestAServiceThatWasGivenUpStaysSo(t *testing.T) {
	s := given(annotated(rayv1.AnnotationInitializingTimeout, "1m"), initializing(time.Minute), made(fresh), pendingIs(fresh), delay(0), of(fresh, idle))
	var all []string
	for range 5 {
		decision := Plan(s, settings(), now)
		all = append(all, verbs(decision.Actions)...)
		perform(&s, decision)
		image("ray:9")(&s) // a repair that comes too late (RS-037)
	}
	if diff := cmp.Diff([]string{"update " + fresh, "update " + fresh, "delete " + fresh}, all); diff != "" {
		t.Errorf("actions: its cluster goes, and nothing comes (-want +got):\n%s", diff)
	}
	if reason := conditionOf(s.Service.Status, rayv1.ConditionRayServiceReady).Reason; reason != rayv1.ReasonInitializingTimeout {
		t.Errorf("the reason is %q", reason)
	}
	settle(&s)
	again := Plan(s, settings(), now.Add(time.Hour))
	if again.Status != nil || len(again.Actions)+len(again.Events) > 0 {
		t.Errorf("there is no rest: %v %v", verbs(again.Actions), again.Events)
	}
}

func TestAnUpgradeThatTakesTooLongIsGivenUp(t *testing.T) {
	s := upgrading(annotated(rayv1.AnnotationUpgradeTimeout, "5m"), reports(fresh, fruit, "DEPLOYING"))
	decision := Plan(s, settings(), now)
	st := statusOf(s, decision)
	want := &rayv1.RayServiceAbandonedUpgrade{Goal: Goal(&s.Service.Spec.RayClusterConfig), Generation: s.Service.Generation, RayClusterName: fresh,
		Reason: rayv1.ReasonUpgradeTimeout, Message: "application fruit on RayCluster shop-bbbbb is DEPLOYING", Time: metav1.NewTime(now)}
	if diff := cmp.Diff(want, st.AbandonedUpgrade); diff != "" {
		t.Fatalf("the upgrade that was given up (-want +got):\n%s", diff)
	}
	if st.PendingServiceStatus.RayClusterName != "" || st.ActiveServiceStatus.RayClusterName != old {
		t.Errorf("active is %q and pending %q", st.ActiveServiceStatus.RayClusterName, st.PendingServiceStatus.RayClusterName)
	}
	for kind, want := range map[string]string{"Ready": "True/NonZeroServeEndpoints", "UpgradeInProgress": "False/NoPendingCluster", "Stalled": "True/UpgradeTimeout"} {
		if c := conditionOf(st, kind); string(c.Status)+"/"+c.Reason != want {
			t.Errorf("%s is %s/%s, want %s", kind, c.Status, c.Reason, want)
		}
	}
	settle(&s)
	proved(&s) // it gets ready too late
	if moved := movedTo(Plan(s, settings(), now)); moved != "" {
		t.Errorf("traffic moves to %s, which was given up", moved)
	}
	image("ray:1")(&s)
	if st := statusOf(s, Plan(s, settings(), now)); st.AbandonedUpgrade != nil {
		t.Error("another goal must end the memory of the upgrade that was given up")
	}
}

// The limit counts from when the upgrade began, not from when a cluster that is taken up again was made.
func TestTheTimeOfAnUpgradeBeginsWithIt(t *testing.T) {
	limit := annotated(rayv1.AnnotationUpgradeTimeout, "5m")
	began := func(ago time.Duration) func(*Snapshot) {
		return status(func(st *rayv1.RayServiceStatuses) {
			for i := range st.Conditions {
				if st.Conditions[i].Type == rayv1.ConditionUpgradeInProgress {
					st.Conditions[i].Status, st.Conditions[i].LastTransitionTime = metav1.ConditionTrue, metav1.NewTime(now.Add(-ago))
				}
			}
		})
	}
	for name, c := range map[string]struct {
		given Snapshot
		want  bool
	}{
		"a minute ago":    {upgrading(limit, began(time.Minute)), false},
		"six minutes ago": {upgrading(limit, began(6*time.Minute)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := statusOf(c.given, Plan(c.given, settings(), now)).AbandonedUpgrade != nil; got != c.want {
				t.Errorf("it is given up: %t, want %t", got, c.want)
			}
		})
	}
}

func TestTimeoutsAreDurationsOrSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "90": 90 * time.Second, "1m30s": 90 * time.Second, "1ms": time.Millisecond} {
		if got, err := timeout(text); got != want || err != nil {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"abc", "-5", "0", "0s", "-1m", "1.5", "99999999999", " 5", "5 m"} {
		if got, err := timeout(text); err == nil {
			t.Errorf("%q is taken for %s, want an error", text, got)
		}
	}
}
