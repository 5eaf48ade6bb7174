package metrics

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// fixedServices lists always the same.
type fixedServices struct {
	client.Reader
	items []rayv1.RayService
}

func (f fixedServices) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*rayv1.RayServiceList).Items = f.items
	return nil
}

func service(name string, conditions ...metav1.Condition) *rayv1.RayService {
	s := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u-1"}}
	s.Status.Conditions = conditions
	return s
}

// moved is a service whose traffic moved at these seconds, newest first.
func moved(seconds ...int) *rayv1.RayService {
	s := service("chat")
	for _, second := range seconds {
		s.Status.CutOvers = append(s.Status.CutOvers, rayv1.RayServiceCutOver{Time: at(second), To: "chat-b"})
	}
	return s
}

func TestServiceSeries(t *testing.T) {
	upgrading := metav1.Condition{Type: rayv1.ConditionUpgradeInProgress, Status: "True", LastTransitionTime: at(10)}
	ready := metav1.Condition{Type: rayv1.ConditionRayServiceReady, Status: "True"}
	lead := true
	services := NewServices(fixedServices{items: []rayv1.RayService{*service("new"), *service("chat", ready, upgrading)}},
		func() bool { return lead }, clocktesting.NewFakePassiveClock(born.Add(52*time.Second)), logr.Discard())
	want := []string{
		`heliostat_rayservice_cutovers_total{name="chat",namespace="ns",uid="u-1"} 0`,
		`heliostat_rayservice_cutovers_total{name="new",namespace="ns",uid="u-1"} 0`,
		`heliostat_rayservice_upgrade_age_seconds{name="chat",namespace="ns",uid="u-1"} 42`,
		`kuberay_service_condition_ready{condition="false",name="new",namespace="ns",uid="u-1"} 1`,
		`kuberay_service_condition_ready{condition="true",name="chat",namespace="ns",uid="u-1"} 1`,
		`kuberay_service_condition_upgrade_in_progress{condition="false",name="new",namespace="ns",uid="u-1"} 1`,
		`kuberay_service_condition_upgrade_in_progress{condition="true",name="chat",namespace="ns",uid="u-1"} 1`,
		`kuberay_service_info{name="chat",namespace="ns",uid="u-1"} 1`,
		`kuberay_service_info{name="new",namespace="ns",uid="u-1"} 1`,
	}
	if diff := cmp.Diff(want, scrape(t, services, "kuberay_", "heliostat_")); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	lead = false
	if got := scrape(t, services, "kuberay_", "heliostat_"); len(got) > 0 {
		t.Errorf("a standby has series: %v", got)
	}
}

// Given a service whose traffic moves, each move is counted once until the service is gone, also on a replica that was a
// standby meanwhile.
func TestCutOversAreCounted(t *testing.T) {
	tests := map[string]struct {
		changes [][2]*rayv1.RayService
		deleted any
		want    string
	}{
		"no move":                            {changes: [][2]*rayv1.RayService{{moved(), moved()}, {moved(5), moved(5)}}, want: "0"},
		"the first start and two upgrades":   {changes: [][2]*rayv1.RayService{{moved(), moved(5)}, {moved(5), moved(9, 5)}, {moved(9, 5), moved(12, 9, 5)}}, want: "3"},
		"two moves of which one was missed":  {changes: [][2]*rayv1.RayService{{moved(5), moved(12, 9, 5)}}, want: "2"},
		"a history that forgets the oldest":  {changes: [][2]*rayv1.RayService{{moved(9, 5), moved(12, 9)}}, want: "1"},
		"nothing in common with the history": {changes: [][2]*rayv1.RayService{{moved(5), moved(12, 9)}}, want: "2"},
		"a service that is gone": {
			changes: [][2]*rayv1.RayService{{moved(), moved(5)}}, deleted: cache.DeletedFinalStateUnknown{Key: "ns/chat", Obj: moved(5)}, want: "0",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lead, events := false, &informer{}
			services := NewServices(fixedServices{items: []rayv1.RayService{*service("chat")}}, func() bool { return lead },
				clocktesting.NewFakePassiveClock(born), logr.Discard())
			if err := services.Watch(events); err != nil {
				t.Fatal(err)
			}
			for _, change := range test.changes {
				events.OnUpdate(change[0], change[1])
			}
			if test.deleted != nil {
				events.OnDelete(test.deleted)
			}
			lead = true
			want := []string{`heliostat_rayservice_cutovers_total{name="chat",namespace="ns",uid="u-1"} ` + test.want}
			if diff := cmp.Diff(want, scrape(t, services, "heliostat_rayservice_cutovers_total")); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("another service of that name begins at nothing", func(t *testing.T) {
		events := &informer{}
		services := NewServices(fixedServices{items: []rayv1.RayService{*service("chat")}}, func() bool { return true },
			clocktesting.NewFakePassiveClock(born), logr.Discard())
		if err := services.Watch(events); err != nil {
			t.Fatal(err)
		}
		other := moved(7)
		other.UID = "u-2"
		events.OnUpdate(moved(), moved(5))
		events.OnUpdate(moved(5), other)
		want := []string{`heliostat_rayservice_cutovers_total{name="chat",namespace="ns",uid="u-1"} 0`}
		if diff := cmp.Diff(want, scrape(t, services, "heliostat_rayservice_cutovers_total")); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
	})
}
