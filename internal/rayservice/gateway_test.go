package rayservice

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// asJSON is an object as the API server gets it.
func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheGatewayAndTheRouteAreAsKubeRayMakesThem(t *testing.T) {
	s := given(steps(50, 25, 5), made(old), made(fresh))
	gateway := Gateway(s.Service)
	if diff := cmp.Diff(`{"gatewayClassName":"traefik","listeners":[{"name":"http","port":80,"protocol":"HTTP"}]}`, asJSON(t, gateway.Spec)); diff != "" {
		t.Errorf("Gateway (-want +got):\n%s", diff)
	}
	route, err := Route(s.Service, backend{s.cluster(old).Object, 75}, backend{s.cluster(fresh).Object, 0})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"parentRefs":[{"namespace":"ml","name":"shop-gateway"}],"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"backendRefs":[` +
		`{"name":"shop-aaaaa-serve-svc","namespace":"ml","port":8000,"weight":75},{"name":"shop-bbbbb-serve-svc","namespace":"ml","port":8000,"weight":0}]}]}`
	if diff := cmp.Diff(want, asJSON(t, route.Spec)); diff != "" {
		t.Errorf("HTTPRoute (-want +got):\n%s", diff)
	}
	if gateway.Name != "shop-gateway" || route.Name != "shop-httproute" || !s.owns(gateway) || !s.owns(route) {
		t.Errorf("names %s and %s, owners %v and %v", gateway.Name, route.Name, gateway.OwnerReferences, route.OwnerReferences)
	}
}

func TestTheRouteLeadsToTheServePort(t *testing.T) {
	for name, c := range map[string]struct {
		ports []corev1.ContainerPort
		want  int32
		fails bool
	}{
		"none is declared":            {want: 8000},
		"one":                         {ports: []corev1.ContainerPort{{Name: "serve", ContainerPort: 9000}}, want: 9000},
		"the one for HTTP among more": {ports: []corev1.ContainerPort{{Name: "serve-a", ContainerPort: 1}, {Name: "serve", ContainerPort: 2}}, want: 2},
		"only others":                 {ports: []corev1.ContainerPort{{Name: "serve-b", ContainerPort: 3}, {Name: "serve-c", ContainerPort: 4}}, want: 3},
		"none leads to Serve":         {ports: []corev1.ContainerPort{{Name: "dashboard", ContainerPort: 8265}}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := given()
			s.Service.Spec.RayClusterConfig.HeadGroupSpec.Template.Spec.Containers[0].Ports = c.ports
			got, err := backendPort(rayCluster(s.Service, old, "", "1.0"))
			if got != c.want || errors.Is(err, errNoServePort) != c.fails {
				t.Errorf("port %d, error %v; want %d, an error: %v", got, err, c.want, c.fails)
			}
		})
	}
}

func TestOnlyTheVerdictOnThePresentGenerationCounts(t *testing.T) {
	condition := func(kind string, is metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, ObservedGeneration: generation, Reason: "Because"}
	}
	yes, no, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, c := range map[string]struct {
		given []metav1.Condition
		// want is a part of what is missing; empty if nothing is.
		want  string
		stale bool
	}{
		"all is well":                    {given: []metav1.Condition{condition("Accepted", yes, 3), condition("Programmed", yes, 3)}},
		"nobody has looked at it":        {want: "no condition Accepted"},
		"half of it is missing":          {given: []metav1.Condition{condition("Accepted", yes, 3)}, want: "no condition Programmed"},
		"it is refused":                  {given: []metav1.Condition{condition("Accepted", no, 3), condition("Programmed", yes, 3)}, want: "Accepted of Gateway g is False, Because"},
		"it is as the API server has it": {given: []metav1.Condition{condition("Accepted", unknown, 0), condition("Programmed", unknown, 0)}, want: "is Unknown"},
		"an older generation (RS-094)":   {given: []metav1.Condition{condition("Accepted", yes, 3), condition("Programmed", yes, 2)}, want: "not been taken up", stale: true},
		"no generation at all":           {given: []metav1.Condition{condition("Accepted", yes, 0), condition("Programmed", yes, 0)}, want: "not been taken up", stale: true},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: "g", Generation: 3}}
			gateway.Status.Conditions = c.given
			got := gatewayVerdict(gateway)
			if (got.why == "") != (c.want == "") || !strings.Contains(got.why, c.want) || got.stale != c.stale {
				t.Errorf("verdict %+v, want %q, stale %v", got, c.want, c.stale)
			}
		})
	}
}

func TestAVerdictOfAnotherGatewayDoesNotCount(t *testing.T) {
	parent := func(name string, namespace *gatewayv1.Namespace) gatewayv1.RouteParentStatus {
		return gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name), Namespace: namespace},
			Conditions: accepted(1, "Accepted", "ResolvedRefs")}
	}
	for name, c := range map[string]struct {
		given []gatewayv1.RouteParentStatus
		used  bool
	}{
		"none":                            {},
		"its own":                         {given: []gatewayv1.RouteParentStatus{parent("g", ptr.To(gatewayv1.Namespace("ml")))}, used: true},
		"its own, without a namespace":    {given: []gatewayv1.RouteParentStatus{parent("other", nil), parent("g", nil)}, used: true},
		"another one":                     {given: []gatewayv1.RouteParentStatus{parent("other", nil)}},
		"one of this name somewhere else": {given: []gatewayv1.RouteParentStatus{parent("g", ptr.To(gatewayv1.Namespace("elsewhere")))}},
	} {
		t.Run(name, func(t *testing.T) {
			route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "r", Generation: 1}}
			route.Status.Parents = c.given
			if got := routeVerdict(route, "g"); (got.why == "") != c.used {
				t.Errorf("verdict %+v, want in use: %v", got, c.used)
			}
		})
	}
}

// What Serve reports is not taken for the outcome of a new target capacity before its next round of control.
func TestWhatACapacityNeeds(t *testing.T) {
	deployment := func(target, fewest, running int, status string) func(*Cluster) {
		return func(c *Cluster) {
			is := dashboard.ServeDeployment{Name: "D", Status: status, TargetNumReplicas: target, FewestReplicas: fewest,
				Replicas: []dashboard.ServeReplica{{State: "STARTING"}, {State: "STOPPING"}}}
			for range running {
				is.Replicas = append(is.Replicas, dashboard.ServeReplica{State: dashboard.ReplicaRunning})
			}
			c.Report.Serve.Applications["fruit"].Deployments["D"] = is
		}
	}
	capacity := func(percent float64) func(*Cluster) {
		return func(c *Cluster) { c.Report.Serve.TargetCapacity = &percent }
	}
	const healthy = "HEALTHY"
	half := capacity(50)
	for name, c := range map[string]struct {
		given []func(*Cluster)
		// want is a part of what is missing at half of the capacity; empty if nothing is.
		want string
	}{
		"all replicas run":                               {given: []func(*Cluster){half, deployment(2, 4, 2, healthy)}},
		"more than that":                                 {given: []func(*Cluster){half, deployment(2, 4, 4, "DOWNSCALING")}},
		"one still starts":                               {given: []func(*Cluster){half, deployment(2, 4, 1, "UPSCALING")}, want: "does not have the 2 replicas"},
		"the load asks for more":                         {given: []func(*Cluster){half, deployment(3, 4, 2, "UPSCALING")}, want: "does not have the 3 replicas"},
		"the number is still that of no capacity":        {given: []func(*Cluster){half, deployment(0, 4, 0, healthy)}, want: "does not have the 2 replicas"},
		"it may scale to nothing":                        {given: []func(*Cluster){half, deployment(0, 0, 0, healthy)}},
		"half of one replica is one":                     {given: []func(*Cluster){half, deployment(1, 1, 0, healthy)}, want: "does not have the 1 replicas"},
		"it is broken, and no wait mends it":             {given: []func(*Cluster){half, deployment(2, 4, 0, "UNHEALTHY")}},
		"Serve has another capacity":                     {given: []func(*Cluster){capacity(25), deployment(2, 4, 2, healthy)}, want: "target capacity of 50%"},
		"Serve has all of it, and says nothing":          {given: []func(*Cluster){deployment(4, 4, 4, healthy)}, want: "target capacity of 50%"},
		"it was given the capacity a moment ago":         {given: []func(*Cluster){half, deployment(2, 4, 2, healthy), put(fruit, nil, 2*time.Second)}, want: "a moment ago"},
		"it was given the capacity some time ago":        {given: []func(*Cluster){half, deployment(2, 4, 2, healthy), put(fruit, nil, 5*time.Second)}},
		"Serve does not answer":                          {given: []func(*Cluster){silent}, want: "does not answer"},
		"Serve has lost its applications":                {given: []func(*Cluster){half, func(c *Cluster) { c.Report.Serve.Applications = nil }}, want: "no application"},
		"Serve does not take the capacity (and says so)": {given: []func(*Cluster){put(fruit, errServe, time.Minute)}, want: "no module fruit"},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(made(old), reports(old, fruit, "RUNNING"), of(old, c.given...))
			got := newPlanner(s, settings(), now).shortOfReplicas(s.cluster(old), 50)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("missing is %q, want %q", got, c.want)
			}
		})
	}
}

func TestACapacityThatServeDoesNotTakeIsToldOnce(t *testing.T) {
	w, before, after := upgradingWorld(t, "100/100 50/0")
	w.nodes[after].put = &action.Outcome{ID: "x", At: w.now, Err: errServe}
	w.nodes[after].capacity = nil
	told := 0
	w.watch = func(d Decision) {
		for _, event := range d.Events {
			if event.Reason == "FailedToUpdateTargetCapacity" {
				told++
			}
		}
	}
	w.loses = func(what string) bool { return strings.HasPrefix(what, "put ") }
	w.passes(20)
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
	w.loses = nil
	w.settle()
	if w.active() == before {
		t.Error("the upgrade did not go on")
	}
}
