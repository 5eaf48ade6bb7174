package rayservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// errServe is what Serve says when it refuses a config.
var errServe = fmt.Errorf("%w: no module fruit", dashboard.ErrRefused)

// misspelt has a field that Serve does not know.
const misspelt = "applications: [{name: fruit, import_path: 'fruit:app', route_prefix: /fruit, max_replica: 3}]"

// lastGood records a config on a cluster as the last that Serve took there.
func lastGood(text string) func(*Cluster) {
	return clusterAnnotated(rayv1.AnnotationServeConfig, text)
}

func TestPlanGivesServeItsConfig(t *testing.T) {
	const running, deploying = "RUNNING", "DEPLOYING"
	none := strategy(rayv1.RayServiceUpgradeNone)
	starting := given(made(fresh), pendingIs(fresh))
	start := func(edits ...func(*Snapshot)) Snapshot {
		s := given(made(fresh), pendingIs(fresh))
		for _, edit := range edits {
			edit(&s)
		}
		return s
	}
	invalid := spec(func(s *rayv1.RayServiceSpec) { s.RayClusterDeletionDelaySeconds = ptr.To[int32](-1) })
	for name, c := range map[string]struct {
		given Snapshot
		// want are the import paths of what is sent, by cluster.
		want map[string]string
	}{
		"nothing before Serve has been asked":                     {starting, nil},
		"nothing while it does not answer":                        {start(reports(fresh, "", ""), of(fresh, silent)), nil},
		"nothing before the head is ready":                        {start(reports(fresh, "", ""), of(fresh, headNotReady)), nil},
		"the config as soon as it says that it has none (RS-004)": {start(reports(fresh, "", "")), map[string]string{fresh: "fruit:app"}},
		"nothing while it is on its way":                          {start(reports(fresh, "", ""), of(fresh, func(c *Cluster) { c.Sending = true })), nil},
		"nothing before Serve was asked again":                    {start(reports(fresh, "", ""), of(fresh, put(fruit, nil, 0))), nil},
		"nothing while applications start":                        {start(reports(fresh, fruit, deploying), of(fresh, put(fruit, nil, time.Minute))), nil},
		"nothing when they run (RS-011)":                          {start(reports(fresh, fruit, running)), nil},
		"another config (RS-010)":                                 {serving(config(fruit2)), map[string]string{old: "fruit:app2"}},
		"the config when Serve has lost it (RS-012, L51)":         {serving(reports(old, "", "")), map[string]string{old: "fruit:app"}},
		"the config when others have changed it (RS-078)":         {serving(reports(old, fruit2, running)), map[string]string{old: "fruit:app"}},
		"nothing to the active cluster in an upgrade (RS-017)":    {upgrading(config(fruit2), reports(fresh, "", "")), map[string]string{fresh: "fruit:app2"}},
		"nor while a cluster for it is only chosen":               {serving(image("ray:2"), config(fruit2)), nil},
		"but to the pending one when it has lost it":              {upgrading(reports(fresh, "", "")), map[string]string{fresh: "fruit:app"}},
		"the last good one when the active one has lost its": {
			upgrading(config(fruit2), of(old, lastGood(fruit)), reports(old, "", "")), map[string]string{old: "fruit:app"}},
		"nothing when there is no last good one": {upgrading(of(old, lastGood("")), reports(old, "", "")), nil},
		"the config without a second cluster, whatever the spec asks for (RS-018)": {
			serving(none, image("ray:2"), config(fruit2)), map[string]string{old: "fruit:app2"}},
		"nothing when it is wrong (RS-079)":                                  {serving(config("applications: {}")), nil},
		"nothing when it is empty (RS-077)":                                  {serving(config("")), nil},
		"the last good one when the new one is wrong and Serve has lost all": {serving(config("applications: {}"), reports(old, "", "")), map[string]string{old: "fruit:app"}},
		"the last good one while the spec is wrong":                          {serving(invalid, config(fruit2), reports(old, "", "")), map[string]string{old: "fruit:app"}},
		"nothing new while the spec is wrong":                                {serving(invalid, config(fruit2)), nil},
		"nothing a moment after Serve refused it":                            {serving(config(fruit2), of(old, put(fruit2, errServe, 10*time.Second))), nil},
		"the same again after a while":                                       {serving(config(fruit2), of(old, put(fruit2, errServe, refusedPause))), map[string]string{old: "fruit:app2"}},
		"another one at once":                                                {serving(config(fruit2), of(old, put(fruit, errServe, 10*time.Second))), map[string]string{old: "fruit:app2"}},
		"nothing a moment after Serve was away":                              {serving(config(fruit2), of(old, put(fruit2, errors.New("away"), time.Second))), nil},
		"the same again soon":                                                {serving(config(fruit2), of(old, put(fruit2, errors.New("away"), putAgain))), map[string]string{old: "fruit:app2"}},
		"nothing more when Serve has passed over a field":                    {serving(config(misspelt), of(old, put(misspelt, nil, time.Minute))), nil},
		"the config when that is not known to be so":                         {serving(config(misspelt)), map[string]string{old: "fruit:app"}},
		"the config when Serve was put something else":                       {serving(config(misspelt), of(old, put(fruit, nil, time.Minute))), map[string]string{old: "fruit:app"}},
		"nothing a moment after Serve has made something else of it":         {serving(config(fruit2), of(old, put(fruit2, nil, 2*time.Second))), nil},
		"nothing to a cluster that is leaving":                               {upgrading(reports(fresh, "", ""), of(fresh, func(c *Cluster) { c.Object.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })), nil},
		"nothing to a retired cluster":                                       {upgrading(pendingIs(""), image("ray:1"), reports(fresh, "", "")), nil},
		"nothing without a Service for the head":                             {start(reports(fresh, "", ""), of(fresh, func(c *Cluster) { c.HeadService = nil })), nil},
		"to one dashboard although the other is silent (W9)": {
			upgrading(of(old, silent), reports(fresh, "", "")), map[string]string{fresh: "fruit:app"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, put := range puts(Plan(c.given, settings(), now)) {
				got[put.Cluster.GetName()] = imported(t, put.Config)
				if want := "session_" + put.Cluster.GetName(); put.Session != want || !strings.Contains(put.BaseURL, put.Cluster.GetName()) {
					t.Errorf("the config is meant for %s and session %q, want its own dashboard and %q", put.BaseURL, put.Session, want)
				}
			}
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("configs that are sent (-want +got):\n%s", diff)
			}
		})
	}
}

func puts(decision Decision) []action.PutServe {
	var found []action.PutServe
	for _, a := range decision.Actions {
		if put, ok := a.(action.PutServe); ok {
			found = append(found, put)
		}
	}
	return found
}

func imported(t *testing.T, body json.RawMessage) string {
	t.Helper()
	var sent struct {
		Applications []struct {
			ImportPath string `json:"import_path"`
		}
		TargetCapacity *float64 `json:"target_capacity"`
	}
	if err := json.Unmarshal(body, &sent); err != nil || len(sent.Applications) != 1 || sent.TargetCapacity != nil {
		t.Fatalf("%s is sent (%v), want one application and no capacity", body, err)
	}
	return sent.Applications[0].ImportPath
}

func headNotReady(c *Cluster) {
	for i := range c.Pods[0].Status.Conditions {
		c.Pods[0].Status.Conditions[i].Status = corev1.ConditionFalse
	}
	delete(c.Object.Annotations, rayv1.AnnotationServeConfig)
}

// The head's own probe fails when its proxy dies. Serve must go on being asked then, and repaired.
func TestAHeadThatHasServedIsAskedAlthoughItIsNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		given Snapshot
		want  bool
	}{
		"a head that never was ready":  {given(made(fresh), pendingIs(fresh), of(fresh, headNotReady)), false},
		"a head that has served":       {serving(of(old, headNotReady, lastGood(fruit))), true},
		"a head without an address":    {serving(of(old, func(c *Cluster) { c.Pods[0].Status.PodIP = "" })), false},
		"a head that is being deleted": {serving(of(old, func(c *Cluster) { c.Pods[0].DeletionTimestamp = ptr.To(metav1.NewTime(now)) })), false},
		"a cluster without a head":     {serving(of(old, func(c *Cluster) { c.Pods = c.Pods[1:] })), false},
		"a head beside one that is being deleted": {serving(of(old, func(c *Cluster) {
			gone := node(old, rayv1.NodeTypeHead, "10.0.0.9")
			gone.Name, gone.DeletionTimestamp = "a-gone", ptr.To(metav1.NewTime(now))
			c.Pods = append([]Pod{gone}, c.Pods...)
		})), true},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if got := len(decision.Reports) == 1; got != c.want {
				t.Errorf("Serve is asked: %t, want %t", got, c.want)
			}
		})
	}
}

func TestWhatServeHasTakenIsRecorded(t *testing.T) {
	long := strings.Replace(fruit, "]", ", args: {a: "+strings.Repeat("x", maxRecorded)+"}]", 1)
	long = strings.Replace(long, "}, args", ", args", 1) + "\n"
	long = strings.Replace(long, "}]\n", "}}]\n", 1)
	for name, c := range map[string]struct {
		given      Snapshot
		want       []string
		wantRecord string
		wantReason string
	}{
		"a config that Serve has":                      {given: serving(of(old, lastGood(""))), want: []string{"update " + old}, wantRecord: fruit, wantReason: rayv1.ReasonSpecValid},
		"not one that Serve does not have":             {given: serving(config(fruit2), of(old, put(fruit2, nil, 0))), wantRecord: fruit, wantReason: rayv1.ReasonSpecValid},
		"not one that is too long, which is told":      {given: serving(config(long), reports(old, long, "RUNNING")), wantRecord: fruit, wantReason: rayv1.ReasonPartlyServed},
		"not the spec's on a cluster that has another": {given: upgrading(config(fruit2)), wantRecord: fruit, wantReason: rayv1.ReasonSpecValid},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if diff := cmp.Diff(c.want, verbs(decision.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			valid := conditionOf(statusOf(c.given, decision), rayv1.ConditionValid)
			if valid.Reason != c.wantReason {
				t.Errorf("Valid has the reason %q, want %q: %s", valid.Reason, c.wantReason, valid.Message)
			}
			perform(&c.given, decision)
			if got := c.given.cluster(old).Object.Annotations[rayv1.AnnotationServeConfig]; got != c.wantRecord {
				t.Errorf("recorded is %q, want %q", got, c.wantRecord)
			}
		})
	}
}

func conditionOf(st rayv1.RayServiceStatuses, kind string) metav1.Condition {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
