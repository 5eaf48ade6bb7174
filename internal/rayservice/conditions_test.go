package rayservice

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

func TestConditionsSayWhatIsAndWhy(t *testing.T) {
	const running = "RUNNING"
	wrong := annotated(rayv1.AnnotationUpgradeTimeout, "soon")
	starting := func(edits ...func(*Snapshot)) Snapshot {
		s := given(made(fresh), pendingIs(fresh))
		for _, edit := range edits {
			edit(&s)
		}
		return s
	}
	trouble := func(c *Cluster) {
		c.Object.Status.Conditions = []metav1.Condition{{Type: rayv1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "ImagePullBackOff", Message: "no such image"}}
	}
	for name, c := range map[string]struct {
		given Snapshot
		want  map[string]string
	}{
		"a service that serves": {serving(), map[string]string{
			"Ready": "True/NonZeroServeEndpoints", "UpgradeInProgress": "False/NoPendingCluster", "Valid": "True/SpecValid", "ConfigApplied": "True/ConfigApplied",
			"ApplicationsHealthy": "True/ApplicationsRunning", "EndpointsReady": "True/NonZeroServeEndpoints", "Reconciling": "False/Serving", "Stalled": "False/Serving"}},
		"a service that begins": {given(), map[string]string{
			"Ready": "False/Initializing", "UpgradeInProgress": "False/Initializing", "Valid": "True/SpecValid", "ConfigApplied": "False/ConfigPending",
			"ApplicationsHealthy": "Unknown/NoReport", "EndpointsReady": "False/ZeroServeEndpoints", "Reconciling": "True/Initializing", "Stalled": "False/Initializing"}},
		"an upgrade": {upgrading(reports(fresh, fruit, "DEPLOYING")), map[string]string{
			"Ready": "True/NonZeroServeEndpoints", "UpgradeInProgress": "True/BothActivePendingClustersExist", "ApplicationsHealthy": "True/ApplicationsRunning",
			"Reconciling": "True/Upgrading", "Stalled": "False/Upgrading"}},
		"no endpoint any more (RS-009)": {serving(withoutReady(serveService)), map[string]string{
			"Ready": "False/ZeroServeEndpoints", "EndpointsReady": "False/ZeroServeEndpoints", "Reconciling": "True/ZeroServeEndpoints"}},
		"the same while the pending dashboard is silent (RS-072)": {upgrading(withoutReady(serveService), reports(fresh, "", ""), of(fresh, silent)), map[string]string{
			"Ready": "False/ZeroServeEndpoints", "UpgradeInProgress": "True/BothActivePendingClustersExist"}},
		"an application that fails (RS-075)": {serving(reports(old, fruit, "DEPLOY_FAILED")), map[string]string{
			"Ready": "True/NonZeroServeEndpoints", "ApplicationsHealthy": "False/ApplicationsNotRunning", "ConfigApplied": "True/ConfigApplied"}},
		"Serve does not answer": {serving(of(old, silent)), map[string]string{
			"Ready": "True/NonZeroServeEndpoints", "ApplicationsHealthy": "Unknown/NoReport", "ConfigApplied": "True/ConfigApplied"}},
		"Serve does not answer about another config": {serving(config(fruit2), of(old, silent)), map[string]string{"ConfigApplied": "False/ConfigPending"}},
		"another config that is sent":                {serving(config(fruit2)), map[string]string{"ConfigApplied": "False/ConfigPending", "Reconciling": "True/ConfigPending"}},
		"a config that Serve refuses": {serving(config(fruit2), of(old, put(fruit2, errServe, time.Second))), map[string]string{
			"ConfigApplied": "False/ConfigRefused", "Stalled": "True/ConfigRefused", "Reconciling": "False/Stalled", "Ready": "True/NonZeroServeEndpoints", "Valid": "True/SpecValid"}},
		"a config that is wrong (RS-079)": {serving(config("applications: 7")), map[string]string{
			"ConfigApplied": "False/ConfigInvalid", "Stalled": "True/ConfigInvalid", "Ready": "True/NonZeroServeEndpoints", "Valid": "True/SpecValid"}},
		"a config that is empty (RS-077)": {starting(config("")), map[string]string{
			"ConfigApplied": "False/ConfigInvalid", "Stalled": "True/ConfigInvalid", "Ready": "False/Initializing"}},
		"a config that somebody changed (RS-078)": {serving(reports(old, fruit2, running)), map[string]string{"ConfigApplied": "False/ConfigDrifted"}},
		"a spec that is wrong while it serves (RS-087)": {serving(wrong), map[string]string{
			"Valid": "False/SpecInvalid", "Ready": "True/NonZeroServeEndpoints", "Stalled": "True/SpecInvalid", "Reconciling": "False/Stalled"}},
		"a spec that is wrong from the start (RS-040)": {given(wrong), map[string]string{
			"Valid": "False/SpecInvalid", "Ready": "False/ValidationFailed", "UpgradeInProgress": "False/Initializing", "Stalled": "True/SpecInvalid"}},
		"and was repaired (RS-088)": {given(conditionWas(rayv1.ConditionRayServiceReady, metav1.ConditionFalse, rayv1.ReasonValidationFailed, time.Hour),
			conditionWas(rayv1.ConditionUpgradeInProgress, metav1.ConditionFalse, rayv1.ReasonInitializing, time.Hour)), map[string]string{
			"Ready": "False/Initializing", "UpgradeInProgress": "False/Initializing"}},
		"a service that lost its cluster": {serving(without(old), noServices), map[string]string{"UpgradeInProgress": "Unknown/NoActiveCluster", "Ready": "False/ZeroServeEndpoints"}},
		"a pending cluster in trouble":    {upgrading(of(fresh, trouble)), map[string]string{"Stalled": "True/ImagePullBackOff", "Ready": "True/NonZeroServeEndpoints"}},
		"a service that is suspended": {serving(conditionWas(rayv1.ConditionRayServiceSuspended, metav1.ConditionTrue, rayv1.ReasonSuspendComplete, 0), suspend(true)), map[string]string{
			"Suspended": "True/SuspendComplete", "ConfigApplied": "", "ApplicationsHealthy": "", "EndpointsReady": "", "Reconciling": "False/Suspended"}},
		"a cluster that was refused": {given(pendingIs(fresh), func(s *Snapshot) {
			s.Holds = map[string]action.Hold{clusterKey(fresh): {Reason: "Forbidden", Message: "exceeded quota", Until: now.Add(time.Minute)}}
		}), map[string]string{"Stalled": "True/Forbidden", "Ready": "False/Initializing"}},
	} {
		t.Run(name, func(t *testing.T) {
			st := statusOf(c.given, Plan(c.given, settings(), now))
			got := map[string]string{}
			for kind := range c.want {
				got[kind] = ""
				if is := conditionOf(st, kind); is.Type != "" {
					got[kind] = string(is.Status) + "/" + is.Reason
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			for _, is := range st.Conditions {
				if is.Status == metav1.ConditionTrue && is.Type == rayv1.ConditionStalled && is.Message == "" {
					t.Errorf("Stalled/%s does not say what to do", is.Reason)
				}
			}
			ready := got["Ready"] == "True/NonZeroServeEndpoints"
			if _, asked := c.want["Ready"]; asked && ready != (st.ServiceStatus == rayv1.ServiceStatusRunning) {
				t.Errorf("serviceStatus is %q", st.ServiceStatus)
			}
		})
	}
}

func TestConditionsNameTheGenerationAndTheTrouble(t *testing.T) {
	s := serving(config("applications: 7"))
	c := conditionOf(statusOf(s, Plan(s, settings(), now)), rayv1.ConditionConfigApplied)
	if c.ObservedGeneration != s.Service.Generation || !strings.Contains(c.Message, "applications") {
		t.Errorf("ConfigApplied speaks of generation %d: %q", c.ObservedGeneration, c.Message)
	}
	s = serving(config(fruit2), of(old, put(fruit2, errServe, time.Second)))
	if c := conditionOf(statusOf(s, Plan(s, settings(), now)), rayv1.ConditionStalled); !strings.Contains(c.Message, "no module fruit") {
		t.Errorf("Stalled does not pass on what Serve said: %q", c.Message)
	}
	s = serving(config(fruit2), of(old, put(fruit2, errors.New("connection reset"), time.Second)))
	if c := conditionOf(statusOf(s, Plan(s, settings(), now)), rayv1.ConditionConfigApplied); !strings.Contains(c.Message, "connection reset") {
		t.Errorf("ConfigApplied does not say why Serve has not got the config: %q", c.Message)
	}
}

// events are the reasons of the events of several plans, one after the other, over a service as it changes.
func events(s Snapshot, changes ...func(*Snapshot)) []string {
	var reasons []string
	for _, change := range changes {
		change(&s)
		decision := Plan(s, settings(), now)
		for _, event := range decision.Events {
			reasons = append(reasons, event.Reason)
		}
		perform(&s, decision)
	}
	return reasons
}

func TestEachThingIsToldOnce(t *testing.T) {
	nothing := func(*Snapshot) {}
	for name, c := range map[string]struct {
		given   Snapshot
		changes []func(*Snapshot)
		want    []string
	}{
		"a config that is applied": {given(made(fresh), pendingIs(fresh)), []func(*Snapshot){nothing, reports(fresh, "", ""), reports(fresh, fruit, "DEPLOYING"), nothing, reports(fresh, fruit, "RUNNING"), nothing},
			[]string{"UpdatedServeApplications"}},
		"another one": {serving(), []func(*Snapshot){config(fruit2), nothing, reports(old, fruit2, "RUNNING"), nothing}, []string{"UpdatedServeApplications"}},
		"a refusal":   {serving(), []func(*Snapshot){config(fruit2), of(old, put(fruit2, errServe, time.Second)), nothing, nothing}, []string{"FailedToUpdateServeApplications"}},
		"a config that is wrong, and another that is": {serving(), []func(*Snapshot){config("applications: 7"), nothing, config("applications: 8"), nothing},
			[]string{"FailedToUpdateServeApplications", "FailedToUpdateServeApplications"}},
		"a rest":                            {serving(), []func(*Snapshot){nothing, nothing, nothing}, nil},
		"another spec with the same config": {serving(), []func(*Snapshot){delay(7), nothing}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, events(c.given, c.changes...)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusTellsOfBothClusters(t *testing.T) {
	s := upgrading(reports(fresh, "applications: [{import_path: 'a:b'}]", "DEPLOYING"), of(old, silent))
	st := statusOf(s, Plan(s, settings(), now))
	apps := func(name, status string) map[string]rayv1.AppStatus {
		return map[string]rayv1.AppStatus{name: {Status: status, ServeDeploymentStatuses: map[string]rayv1.ServeDeploymentStatus{"D": {Status: "HEALTHY"}}}}
	}
	if diff := cmp.Diff(apps("fruit", "RUNNING"), st.ActiveServiceStatus.ApplicationStatuses); diff != "" {
		t.Errorf("the last word of a Serve that is silent stands (RS-076; -want +got):\n%s", diff)
	}
	if diff := cmp.Diff(apps("default", "DEPLOYING"), st.PendingServiceStatus.ApplicationStatuses); diff != "" {
		t.Errorf("applications of the pending cluster (-want +got):\n%s", diff)
	}
	if st.ActiveServiceStatus.ReadyServeEndpoints != 2 || st.PendingServiceStatus.ReadyServeEndpoints != 2 || st.NumServeEndpoints != 2 {
		t.Errorf("endpoints are %d and %d, and %d take requests", st.ActiveServiceStatus.ReadyServeEndpoints, st.PendingServiceStatus.ReadyServeEndpoints, st.NumServeEndpoints)
	}
	if st.PendingServiceStatus.Goal != Goal(&s.Service.Spec.RayClusterConfig) || st.ActiveServiceStatus.Goal == st.PendingServiceStatus.Goal {
		t.Errorf("goals are %q and %q", st.ActiveServiceStatus.Goal, st.PendingServiceStatus.Goal)
	}
	if st.ObservedGeneration != s.Service.Generation || st.LastUpdateTime == nil {
		t.Errorf("it is of generation %d, at %v", st.ObservedGeneration, st.LastUpdateTime)
	}
}

func TestAStatusIsNotWrittenForATimeAlone(t *testing.T) {
	s := serving()
	later := metav1.NewTime(now.Add(time.Hour))
	s.cluster(old).Object.Status.LastUpdateTime = &later
	if decision := Plan(s, settings(), now); decision.Status != nil {
		t.Errorf("the status is written because the cluster's was touched: %s", decision.Status.Why)
	}
	s.cluster(old).Object.Status.ReadyWorkerReplicas++
	if decision := Plan(s, settings(), now); decision.Status == nil {
		t.Error("the status is not written although the cluster's says something else")
	}
}

// A leader that has just begun to ask knows less than what the status says already (L59).
func TestANewLeaderDoesNotTakeBackWhatWasTold(t *testing.T) {
	forgotten := func(c *Cluster) {
		c.Report, c.Put = nil, nil
		for i := range c.Pods {
			c.Pods[i].Health = nil
		}
	}
	for name, c := range map[string]struct {
		given  Snapshot
		forget []string
	}{
		"of a service that serves":              {serving(), []string{old}},
		"of an upgrade":                         {upgrading(reports(fresh, fruit, "DEPLOYING")), []string{old, fresh}},
		"of an upgrade that is ready":           {upgrading(proved), []string{old, fresh}},
		"of a service that starts":              {given(made(fresh), pendingIs(fresh), reports(fresh, fruit, "DEPLOYING")), []string{fresh}},
		"when it has the report but no answers": {upgrading(reports(fresh, fruit, "DEPLOYING")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(c.given, settings(), now)
			if decision.Status != nil {
				c.given.Service = decision.Status.Object.(*rayv1.RayService)
			}
			of(c.given.Clusters[len(c.given.Clusters)-1].name(), func(c *Cluster) { c.Pods[0].Health = nil })(&c.given)
			for _, cluster := range c.forget {
				of(cluster, forgotten)(&c.given)
			}
			again := Plan(c.given, settings(), now)
			if again.Status != nil {
				t.Errorf("the status is written: %s", cmp.Diff(c.given.Service.Status, again.Status.Object.(*rayv1.RayService).Status))
			}
			if moved := movedTo(again); moved != "" {
				t.Errorf("traffic moves to %s, of which nothing is known", moved)
			}
			if again.LookAgain <= 0 || again.LookAgain > pollAgain {
				t.Errorf("the next look is in %s: an answer that is the same as in the last term wakes nobody", again.LookAgain)
			}
		})
	}
}
