package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestServeReadsWhatRayTells(t *testing.T) {
	cases := map[string]struct {
		body string
		want *dashboard.ServeDetails
	}{
		"given Serve was never started, then there is nothing": {
			body: `{"controller_info":{},"proxies":{},"applications":{},"target_capacity":null}`,
			want: &dashboard.ServeDetails{Proxies: map[string]dashboard.ServeProxy{}, Applications: map[string]dashboard.ServeApplication{}},
		},
		"given an older Ray says so, then neither": {
			body: `{"deploy_mode":"MULTI_APP","controller_info":{},"proxies":null,"applications":{},"target_capacity":null}`,
			want: &dashboard.ServeDetails{Proxies: map[string]dashboard.ServeProxy{}, Applications: map[string]dashboard.ServeApplication{}},
		},
		"given an application runs, then all of it is read and what is new is passed over": {
			body: `{"controller_info":{"node_id":"n1"},"proxy_location":"EveryNode","http_options":{"port":8000},"grpc_options":null,
				"target_capacity":50.0,"target_groups":[{"targets":[]}],"invented":{"a":[1]},
				"proxies":{"n1":{"node_id":"n1","node_ip":"10.0.0.1","node_instance_id":"pod-1","actor_id":"a","status":"HEALTHY"},
					"n2":{"node_id":"n2","node_ip":null,"status":"WARMING"}},
				"applications":{"shop":{"name":"shop","route_prefix":"/shop","docs_path":null,"status":"RUNNING","message":"m",
					"last_deployed_time_s":1795973720.5,"source":"declarative","invented":1,
					"deployed_app_config":{"name":"shop","import_path":"a:b","deployments":[{"name":"D","num_replicas":2}]},
					"deployments":{
						"A":{"name":"A","status":"HEALTHY","target_num_replicas":4,"deployment_config":{"autoscaling_config":{"min_replicas":3,"max_replicas":9}}},
						"B":{"name":"B","status":"HEALTHY","target_num_replicas":1,"deployment_config":{"num_replicas":"auto"}},
						"C":{"name":"C","status":"HEALTHY","target_num_replicas":1},
						"D":{"name":"D","status":"HEALTHY","status_trigger":"CONFIG_UPDATE_COMPLETED","message":"","target_num_replicas":2,
						"deployment_config":{"name":"D","num_replicas":4},"replicas":[{"replica_id":"r1","state":"RUNNING","node_ip":"10.0.0.1","start_time_s":1.5},
							{"replica_id":"r2","state":"HOPING","node_ip":null}]}}}}}`,
			want: &dashboard.ServeDetails{
				ProxyLocation: "EveryNode", TargetCapacity: ptr(50.0), HTTPOptions: map[string]any{"port": json.Number("8000")},
				Proxies: map[string]dashboard.ServeProxy{
					"n1": {NodeID: "n1", NodeIP: "10.0.0.1", NodeInstanceID: "pod-1", Status: "HEALTHY"},
					"n2": {NodeID: "n2", Status: "WARMING"},
				},
				Applications: map[string]dashboard.ServeApplication{"shop": {
					Name: "shop", RoutePrefix: "/shop", Status: "RUNNING", Message: "m", LastDeployed: time.UnixMilli(1795973720500).UTC(),
					DeployedConfig: map[string]any{"name": "shop", "import_path": "a:b",
						"deployments": []any{map[string]any{"name": "D", "num_replicas": json.Number("2")}}},
					Deployments: map[string]dashboard.ServeDeployment{
						"A": {Name: "A", Status: "HEALTHY", TargetNumReplicas: 4, FewestReplicas: 3},
						"B": {Name: "B", Status: "HEALTHY", TargetNumReplicas: 1},
						"C": {Name: "C", Status: "HEALTHY", TargetNumReplicas: 1},
						"D": {Name: "D", Status: "HEALTHY", StatusTrigger: "CONFIG_UPDATE_COMPLETED", TargetNumReplicas: 2, FewestReplicas: 4,
							Replicas: []dashboard.ServeReplica{{ID: "r1", State: "RUNNING", NodeIP: "10.0.0.1"}, {ID: "r2", State: "HOPING"}},
						}},
				}},
			},
		},
		"given an application of a program, then it is left out": {
			body: `{"applications":{"a":{"status":"RUNNING","source":"imperative"},"b":{"status":"DEPLOYING","source":"declarative"}}}`,
			want: &dashboard.ServeDetails{Proxies: map[string]dashboard.ServeProxy{}, Applications: map[string]dashboard.ServeApplication{
				"b": {Name: "b", Status: "DEPLOYING", Deployments: map[string]dashboard.ServeDeployment{}}}},
		},
		"given an application without a name, then it is the default one": {
			body: `{"applications":{"":{"status":"RUNNING","route_prefix":null}}}`,
			want: &dashboard.ServeDetails{Proxies: map[string]dashboard.ServeProxy{}, Applications: map[string]dashboard.ServeApplication{
				"default": {Name: "default", Status: "RUNNING", Deployments: map[string]dashboard.ServeDeployment{}}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := answering(t, http.StatusOK, tc.body).Serve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the report (-want +got):\n%s", d)
			}
		})
	}
}

func TestServeBelievesOnlyWhatRaySays(t *testing.T) {
	cases := map[string]struct {
		code int
		body string
		want error
	}{
		"given the controller of Serve does not answer, then that is said": {503, "Failed to get a response from the controller. The GCS may be down, please retry later: x", dashboard.ErrServeSilent},
		"given a proxy in between answers 503, then it is not":             {503, "upstream connect error", nil},
		"given Serve is not installed, then that is said":                  {501, "Serve dependencies are not installed. Please run `pip install`.", dashboard.ErrNoServe},
		"given the API server answers, then it is not taken for Ray":       {503, `{"kind":"Status","message":"no endpoints available"}`, dashboard.ErrNotRay},
		"given the token is wrong, then that is said":                      {403, "Forbidden: Invalid authentication token", dashboard.ErrUnauthorized},
		"given no word about applications, then it is no report":           {200, `{"proxies":{}}`, dashboard.ErrUnexpectedAnswer},
		"given null for the applications, then it is no report":            {200, `{"applications":null}`, dashboard.ErrUnexpectedAnswer},
		"given a config that is no object, then it is no report":           {200, `{"applications":{"a":{"deployed_app_config":[1]}}}`, dashboard.ErrUnexpectedAnswer},
		"given options that are no object, then it is no report":           {200, `{"applications":{},"http_options":3}`, dashboard.ErrUnexpectedAnswer},
		"given other options that are none, then neither":                  {200, `{"applications":{},"grpc_options":3}`, dashboard.ErrUnexpectedAnswer},
		"given no JSON, then it is no report":                              {200, `<html>`, dashboard.ErrUnexpectedAnswer},
		"given an answer without end, then only a part of it is read":      {200, strings.Repeat(" ", 20<<20), dashboard.ErrUnexpectedAnswer},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report, err := answering(t, tc.code, tc.body).Serve(t.Context())
			if err == nil {
				t.Fatalf("Serve returned %+v, want an error", report)
			}
			known := []error{dashboard.ErrServeSilent, dashboard.ErrNoServe, dashboard.ErrNotRay, dashboard.ErrUnauthorized, dashboard.ErrUnexpectedAnswer}
			for _, kind := range known {
				if got, want := errors.Is(err, kind), tc.want == kind; got != want {
					t.Errorf("errors.Is(%q, %q) = %v, want %v", err, kind, got, want)
				}
			}
		})
	}
}

func TestALongReportIsReadWhole(t *testing.T) {
	message := strings.Repeat("x", 3<<20)
	body := `{"applications":{"a":{"status":"DEPLOY_FAILED","message":"` + message + `"}}}`
	report, err := answering(t, http.StatusOK, body).Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(report.Applications["a"].Message); got != len(message) {
		t.Errorf("%d bytes of the message were read, want %d", got, len(message))
	}
}

func TestACloneOfAReportIsIndependent(t *testing.T) {
	report := func() *dashboard.ServeDetails {
		return &dashboard.ServeDetails{
			TargetCapacity: ptr(50.0),
			HTTPOptions:    map[string]any{"list": []any{map[string]any{"a": "b"}}},
			GRPCOptions:    map[string]any{"port": "9000"},
			Proxies:        map[string]dashboard.ServeProxy{"n": {Status: "HEALTHY"}},
			Applications: map[string]dashboard.ServeApplication{"a": {
				DeployedConfig: map[string]any{"args": map[string]any{"x": "y"}},
				Deployments:    map[string]dashboard.ServeDeployment{"D": {Replicas: []dashboard.ServeReplica{{ID: "r"}}}},
			}},
		}
	}
	original := report()
	clone := original.Clone()
	if d := cmp.Diff(original, clone); d != "" {
		t.Fatalf("the clone differs (-original +clone):\n%s", d)
	}
	*clone.TargetCapacity = 1
	clone.HTTPOptions["list"].([]any)[0].(map[string]any)["a"] = "changed"
	clone.GRPCOptions["port"] = "changed"
	clone.Proxies["n"] = dashboard.ServeProxy{}
	clone.Applications["a"].DeployedConfig["args"].(map[string]any)["x"] = "changed"
	clone.Applications["a"].Deployments["D"].Replicas[0].ID = "changed"
	clone.Applications["a"].Deployments["E"] = dashboard.ServeDeployment{}
	clone.Applications["b"] = dashboard.ServeApplication{}
	if d := cmp.Diff(report(), original); d != "" {
		t.Errorf("changes of the clone changed the original (-want +got):\n%s", d)
	}
	if (*dashboard.ServeDetails)(nil).Clone() != nil {
		t.Error("the clone of nothing is something")
	}
}

func TestAConfigIsPutAsRayWantsIt(t *testing.T) {
	var got struct{ method, path, content, agent, body string }
	client := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.method, got.path, got.content, got.agent, got.body = r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.UserAgent(), string(body)
	})
	if err := client.PutServe(t.Context(), json.RawMessage(`{"applications":[]}`)); err != nil {
		t.Fatal(err)
	}
	want := got
	want.method, want.path, want.content, want.agent, want.body = "PUT", "/api/serve/applications/", "application/json", "heliostat", `{"applications":[]}`
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Ray got %+v, want %+v", got, want)
	}
}

func TestTheAnswerToAConfigIsUnderstood(t *testing.T) {
	cases := map[string]struct {
		code int
		body string
		want error
		text string
	}{
		"given Ray finds it invalid, then it is refused": {code: 400, want: dashboard.ErrRefused,
			body: "1 validation error for ServeDeploySchema\napplications\n  Field required", text: "Field required"},
		"given the controller of Serve does, then it is refused with the cause alone": {code: 400, want: dashboard.ErrRefused,
			body: "Traceback (most recent call last):\n  File \"x.py\", line 1\nValueError: two applications with one route", text: "ValueError: two applications with one route"},
		"given Serve is not installed, then that is said":     {code: 501, body: "Serve dependencies are not installed.", want: dashboard.ErrNoServe},
		"given an inner error, then the outcome is not known": {code: 500, body: "Server got itself in trouble", text: "500"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := answering(t, tc.code, tc.body).PutServe(t.Context(), json.RawMessage(`{}`))
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error is %v, want %q in it", err, tc.text)
			}
			for _, kind := range []error{dashboard.ErrRefused, dashboard.ErrNoServe} {
				if got, want := errors.Is(err, kind), tc.want == kind; got != want {
					t.Errorf("errors.Is(%q, %q) = %v, want %v", err, kind, got, want)
				}
			}
		})
	}
}

func TestAnEmptyConfigIsNotSent(t *testing.T) {
	client := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	if err := client.PutServe(t.Context(), nil); err == nil {
		t.Error("an empty config was put")
	}
}

func TestTheFirstConfigMayTakeRayAMinute(t *testing.T) {
	cases := map[string]struct {
		delay time.Duration
		err   error
		took  time.Duration
	}{
		"given a minute, then it is waited for":       {delay: time.Minute, took: time.Minute},
		"given much longer, then it is given up upon": {delay: time.Hour, err: context.DeadlineExceeded, took: 70 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, network := fakedashboard.NewInProcess(), fakedashboard.NewNetwork()
				network.Add("c:8265", fake)
				fake.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointPutServe, TakesEffect: true, Delay: tc.delay})
				client := dashboard.New("http://c:8265", dashboard.WithHTTPClient(network.Client()))
				began := time.Now()
				err := client.PutServe(t.Context(), json.RawMessage(`{"applications":[{"import_path":"a:b"}]}`))
				if took := time.Since(began); !errors.Is(err, tc.err) || took != tc.took {
					t.Errorf("took %s and returned %v, want %s and %v", took, err, tc.took, tc.err)
				}
				if got := fake.ServePuts(); got != 1 {
					t.Errorf("Serve took %d configs, want 1", got)
				}
			})
		})
	}
}

func TestTheHealthOfAProxyIsItsStatus(t *testing.T) {
	cases := map[string]struct {
		code    int
		body    string
		healthy bool
	}{
		"given it takes requests":           {200, "success", true},
		"given it is being drained":         {503, "This node is being drained.", false},
		"given it has nobody to pass on to": {503, "No replicas are available yet.", false},
		"given another program listens":     {404, "not found", false},
		"given the API server answers":      {503, `{"kind":"Status","message":"error trying to reach service"}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := answering(t, tc.code, tc.body).ProxyHealth(t.Context())
			if (err == nil) != tc.healthy {
				t.Errorf("error is %v", err)
			}
		})
	}
}
