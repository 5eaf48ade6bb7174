package metrics

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

var born = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// fixed lists always the same.
type fixed struct {
	client.Reader
	items []rayv1.RayCluster
}

func (f fixed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*rayv1.RayClusterList).Items = f.items
	return nil
}

// informer keeps the handler.
type informer struct{ cache.ResourceEventHandler }

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.ResourceEventHandler = handler
	return nil, nil
}

func at(seconds int) metav1.Time {
	return metav1.NewTime(born.Add(time.Duration(seconds) * time.Second))
}

func cluster(name string, conditions ...metav1.Condition) *rayv1.RayCluster {
	c := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u-1", CreationTimestamp: at(0)}}
	c.Status.Conditions = conditions
	return c
}

func provisioned(status metav1.ConditionStatus, seconds int) metav1.Condition {
	return metav1.Condition{Type: rayv1.ConditionRayClusterProvisioned, Status: status, LastTransitionTime: at(seconds)}
}

// scrape returns the samples whose names begin with one of the prefixes, as the metrics endpoint prints them.
func scrape(t *testing.T, c prometheus.Collector, prefixes ...string) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

func TestClusterSeries(t *testing.T) {
	plain := cluster("plain", provisioned("True", 42))
	ofJob := cluster("of-job", provisioned("False", 1))
	ofJob.Labels = map[string]string{rayv1.LabelOriginatedFromKind: "RayJob"}
	lead := true
	c := NewClusters(fixed{items: []rayv1.RayCluster{*plain, *ofJob, *cluster("new")}}, func() bool { return lead }, logr.Discard())
	want := []string{
		`kuberay_cluster_condition_provisioned{condition="false",name="new",namespace="ns",uid="u-1"} 1`,
		`kuberay_cluster_condition_provisioned{condition="false",name="of-job",namespace="ns",uid="u-1"} 1`,
		`kuberay_cluster_condition_provisioned{condition="true",name="plain",namespace="ns",uid="u-1"} 1`,
		`kuberay_cluster_info{name="new",namespace="ns",owner_kind="None",uid="u-1"} 1`,
		`kuberay_cluster_info{name="of-job",namespace="ns",owner_kind="RayJob",uid="u-1"} 1`,
		`kuberay_cluster_info{name="plain",namespace="ns",owner_kind="None",uid="u-1"} 1`,
		`kuberay_cluster_provisioned_duration_seconds{name="plain",namespace="ns",uid="u-1"} 42`,
	}
	if diff := cmp.Diff(want, scrape(t, c, "kuberay_")); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	lead = false
	if got := scrape(t, c, "kuberay_"); len(got) > 0 {
		t.Errorf("a standby has series: %v", got)
	}
}

func TestProvisioningCountsFromTheStartOrTheResume(t *testing.T) {
	resumed := cluster("demo", provisioned("True", 1030),
		metav1.Condition{Type: rayv1.ConditionRayClusterSuspended, Status: "False", LastTransitionTime: at(1000)})
	resumed.Status.StateTransitionTimes = map[rayv1.ClusterState]*metav1.Time{rayv1.ClusterStateSuspended: {}}
	neverSuspended := cluster("demo", provisioned("True", 7),
		metav1.Condition{Type: rayv1.ConditionRayClusterSuspended, Status: "False", LastTransitionTime: at(5)})
	other := cluster("demo", provisioned("False", 0))
	other.UID = "u-2"
	for name, tc := range map[string]struct {
		before, after *rayv1.RayCluster
		standby       bool
		want          string
	}{
		"a new cluster":                      {before: cluster("demo"), after: neverSuspended, want: "7"},
		"a resumed one":                      {before: cluster("demo", provisioned("False", 900)), after: resumed, want: "30"},
		"one that was provisioned before":    {before: neverSuspended, after: neverSuspended, want: "0"},
		"one that is not":                    {before: cluster("demo"), after: cluster("demo"), want: "0"},
		"another one of that name":           {before: other, after: neverSuspended, want: "0"},
		"on a standby, the leader counts it": {before: cluster("demo"), after: neverSuspended, standby: true, want: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewClusters(fixed{}, func() bool { return !tc.standby }, logr.Discard())
			i := &informer{}
			if err := c.Watch(i); err != nil {
				t.Fatal(err)
			}
			i.OnUpdate(tc.before, tc.after)
			want := []string{"heliostat_cluster_provisioning_duration_seconds_sum " + tc.want}
			if diff := cmp.Diff(want, scrape(t, c, "heliostat_cluster_provisioning_duration_seconds_sum")); diff != "" {
				t.Errorf("sum (-want +got):\n%s", diff)
			}
		})
	}
}
