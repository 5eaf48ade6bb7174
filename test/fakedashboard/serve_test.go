package fakedashboard_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

const (
	applications = "http://c:8265/api/serve/applications/"
	shop         = `{"applications":[{"name":"shop","import_path":"m:a","deployments":[{"name":"D","num_replicas":4}]}]}`
)

// report is what a test looks at in a report of Serve.
type report struct {
	Capacity     *float64          `json:"target_capacity"`
	Location     string            `json:"proxy_location"`
	Proxies      map[string]proxy  `json:"proxies"`
	Applications map[string]served `json:"applications"`
}

type proxy struct {
	IP     string `json:"node_ip"`
	Status string `json:"status"`
}

type served struct {
	Status, Message string
	Config          map[string]any `json:"deployed_app_config"`
	Deployments     map[string]struct {
		Status   string
		Target   int `json:"target_num_replicas"`
		Replicas []struct{ State string }
	}
}

// serving returns a dashboard that is reached as "c:8265".
func serving() (*fakedashboard.Network, *fakedashboard.Dashboard) {
	network, d := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
	network.Add("c:8265", d)
	return network, d
}

func put(t *testing.T, network *fakedashboard.Network, config string) {
	t.Helper()
	if code, body := send(t, network, http.MethodPut, applications, config); code != http.StatusOK || body != "" {
		t.Fatalf("PUT = %d %s", code, body)
	}
}

func read(t *testing.T, network *fakedashboard.Network) report {
	t.Helper()
	code, body := send(t, network, http.MethodGet, applications+"?api_type=declarative", "")
	if code != http.StatusOK {
		t.Fatalf("GET = %d %s", code, body)
	}
	var out report
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

func TestServeAnswersAsRayDoes(t *testing.T) {
	cases := map[string]struct {
		method, body string
		given        func(*fakedashboard.Dashboard)
		wantCode     int
		wantBody     string
	}{
		"nothing before the first config": {method: "GET", wantCode: 200, wantBody: `{"applications":{},"controller_info":{},"proxies":{},"target_capacity":null}`},
		"nothing after all was lost": {method: "GET", wantCode: 200, wantBody: `"applications":{},`,
			given: func(d *fakedashboard.Dashboard) { d.DeployServe(shop); d.LoseServe() }},
		"a config with its unknown keys":        {method: "PUT", body: `{"x":1,"applications":[{"import_path":"m:a","y":2}]}`, wantCode: 200},
		"a config without applications":         {method: "PUT", body: `{}`, wantCode: 400, wantBody: "1 validation error for ServeDeploySchema\napplications\n  Field required"},
		"a config of a wrong type":              {method: "PUT", body: `{"applications":5}`, wantCode: 400, wantBody: "1 validation error for ServeDeploySchema"},
		"an application without an import path": {method: "PUT", body: `{"applications":[{"name":"a"}]}`, wantCode: 400, wantBody: "applications.0.import_path"},
		"two applications of one name":          {method: "PUT", body: `{"applications":[{"import_path":"m:a"},{"import_path":"m:a"}]}`, wantCode: 400, wantBody: `Found multiple configs for application "default"`},
		"a body that is no JSON":                {method: "PUT", body: `x`, wantCode: 500, wantBody: "Server got itself in trouble"},
		"a refusal that the test wants": {method: "PUT", body: shop, wantCode: 400, wantBody: "no such module",
			given: func(d *fakedashboard.Dashboard) { d.RefuseServe("no such module") }},
		"a controller that does not answer": {method: "GET", wantCode: 503, wantBody: "Failed to get a response from the controller",
			given: func(d *fakedashboard.Dashboard) { d.Inject(fakedashboard.ServeSilent(1)) }},
		"an image without Serve": {method: "GET", wantCode: 501, wantBody: "Serve dependencies are not installed",
			given: func(d *fakedashboard.Dashboard) { d.Inject(fakedashboard.NoServe()) }},
		"a caller without the token": {method: "PUT", body: shop, wantCode: 401, wantBody: "Missing authentication token",
			given: func(d *fakedashboard.Dashboard) { d.RequireToken("secret") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, d := serving()
			if tc.given != nil {
				tc.given(d)
			}
			code, body := send(t, network, tc.method, applications, tc.body)
			if code != tc.wantCode || !strings.Contains(body, tc.wantBody) {
				t.Errorf("%s = %d %s, want %d with %q", tc.method, code, body, tc.wantCode, tc.wantBody)
			}
		})
	}
}

func TestAConfigIsReadBackAsSent(t *testing.T) {
	network, d := serving()
	put(t, network, `{"proxy_location":"HeadOnly","target_capacity":100,"logging_config":{"log_level":"INFO"},
		"applications":[{"name":"a","import_path":"m:a","typo":1,"args":{"any":[1,null]},"deployments":[{"name":"D","typo":1,"user_config":{"x":{}}}]},
			{"name":"b","route_prefix":null,"import_path":"m:b","logging_config":{"log_level":"DEBUG"}}]}`)
	got := read(t, network)
	if got.Location != "HeadOnly" || got.Capacity == nil || *got.Capacity != 100 {
		t.Errorf("Serve reports %+v", got)
	}
	want := map[string]map[string]any{
		"a": {"name": "a", "import_path": "m:a", "args": map[string]any{"any": []any{1.0, nil}}, "logging_config": map[string]any{"log_level": "INFO"},
			"deployments": []any{map[string]any{"name": "D", "user_config": map[string]any{"x": map[string]any{}}}}},
		"b": {"name": "b", "route_prefix": nil, "import_path": "m:b", "logging_config": map[string]any{"log_level": "DEBUG"}},
	}
	for name, config := range want {
		if diff := cmp.Diff(config, got.Applications[name].Config); diff != "" {
			t.Errorf("config of %s (-want +got):\n%s", name, diff)
		}
	}
	if !strings.Contains(string(d.LastServePut()), `"typo":1`) || d.ServePuts() != 1 || d.Requests(fakedashboard.EndpointPutServe) != 1 {
		t.Errorf("taken %d times, the last time: %s", d.ServePuts(), d.LastServePut())
	}
	put(t, network, `{"proxy_location":"EveryNode","applications":[{"name":"b","import_path":"m:b"}]}`)
	if got := read(t, network); got.Location != "HeadOnly" || len(got.Applications) != 1 {
		t.Errorf("after another config: %+v", got)
	}
}

func TestApplicationsFollowTheirScripts(t *testing.T) {
	steps := func(steps ...fakedashboard.ServeStep) []fakedashboard.ServeStep { return steps }
	cases := map[string]struct {
		given func(*fakedashboard.Dashboard)
		// before and again are configs that are put; the statuses are read after the second one.
		before, again string
		want          []string
	}{
		"given no script, then it deploys and runs": {again: shop, want: []string{"DEPLOYING", "RUNNING", "RUNNING"}},
		"given a default script, then it is followed": {again: shop, want: []string{"DEPLOYING", "DEPLOYING", "DEPLOY_FAILED", "DEPLOY_FAILED"},
			given: func(d *fakedashboard.Dashboard) {
				d.SetDefaultServeScript(steps(fakedashboard.ServeStep{Status: "DEPLOYING", Reads: 2}, fakedashboard.ServeStep{Status: "DEPLOY_FAILED"})...)
			}},
		"given one of its own, then that": {again: shop, want: []string{"NOT_STARTED", "UNHEALTHY"},
			given: func(d *fakedashboard.Dashboard) {
				d.ScriptServe("shop", fakedashboard.ServeSteps("NOT_STARTED", "UNHEALTHY")...)
			}},
		"given the same config again, then it runs on": {before: shop, again: shop, want: []string{"RUNNING"}},
		"given another config, then it deploys again":  {before: shop, again: strings.Replace(shop, "4", "5", 1), want: []string{"DEPLOYING", "RUNNING"}},
		"given another capacity, then it runs on":      {before: shop, again: `{"target_capacity":50,` + shop[1:], want: []string{"RUNNING"}},
		"given another application, then it runs on":   {before: shop, again: shop[:len(shop)-2] + `,{"name":"b","import_path":"m:b"}]}`, want: []string{"RUNNING"}},
		"given it had failed, then it is tried once more": {before: shop, again: shop, want: []string{"DEPLOY_FAILED", "DEPLOY_FAILED"},
			given: func(d *fakedashboard.Dashboard) { d.ScriptServe("shop", fakedashboard.ServeSteps("DEPLOY_FAILED")...) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, d := serving()
			if tc.given != nil {
				tc.given(d)
			}
			if tc.before != "" {
				put(t, network, tc.before)
				read(t, network)
			}
			put(t, network, tc.again)
			for i, want := range tc.want {
				if got := read(t, network).Applications["shop"].Status; got != want {
					t.Errorf("read %d: %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

func TestAnApplicationIsPutIntoAStep(t *testing.T) {
	network, d := serving()
	d.DeployServe(shop)
	d.SetServeStep("shop", fakedashboard.ServeStep{Status: "UNHEALTHY", Message: "the deployments [D] are UNHEALTHY"})
	for range 3 {
		if got := read(t, network).Applications["shop"]; got.Status != "UNHEALTHY" || got.Message == "" || got.Deployments["D"].Status != "UNHEALTHY" {
			t.Errorf("it is %+v", got)
		}
	}
	d.ScriptServe("shop", fakedashboard.ServeSteps("RUNNING")...)
	if got := read(t, network).Applications["shop"].Status; got != "RUNNING" {
		t.Errorf("with another script it is %s", got)
	}
	if d.ServePuts() != 0 {
		t.Error("a config of someone else is counted")
	}
}

func TestReplicasFollowTheTargetCapacity(t *testing.T) {
	cases := map[string]struct {
		capacity string
		want     int
	}{
		"given all": {capacity: "100", want: 4}, "given no word": {capacity: "null", want: 4}, "given half": {capacity: "50", want: 2},
		"given it must be rounded up": {capacity: "38", want: 2}, "given little": {capacity: "1", want: 1}, "given none": {capacity: "0", want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, d := serving()
			d.SetDefaultServeScript(fakedashboard.ServeSteps("RUNNING")...)
			put(t, network, shop)
			put(t, network, `{"target_capacity":`+tc.capacity+`,`+shop[1:])
			got := read(t, network).Applications["shop"].Deployments["D"]
			if got.Target != tc.want || len(got.Replicas) != tc.want || got.Status != "HEALTHY" {
				t.Errorf("it is %+v, want %d replicas", got, tc.want)
			}
		})
	}
}

func TestReplicasFollowSlowly(t *testing.T) {
	network, d := serving()
	d.SetDefaultServeScript(fakedashboard.ServeSteps("RUNNING")...)
	d.SetServeLag(2)
	put(t, network, `{"target_capacity":50,`+shop[1:])
	running := func() []any {
		got := read(t, network).Applications["shop"].Deployments["D"]
		return []any{got.Target, len(got.Replicas), got.Status}
	}
	if got := running(); !slices.Equal(got, []any{2, 2, "HEALTHY"}) {
		t.Errorf("at first: %v", got)
	}
	put(t, network, `{"target_capacity":100,`+shop[1:])
	for i, want := range [][]any{{4, 2, "UPSCALING"}, {4, 2, "UPSCALING"}, {4, 4, "HEALTHY"}} {
		if got := running(); !slices.Equal(got, want) {
			t.Errorf("up, read %d: %v, want %v", i+1, got, want)
		}
	}
	put(t, network, `{"target_capacity":0,`+shop[1:])
	for i, want := range [][]any{{0, 4, "DOWNSCALING"}, {0, 4, "DOWNSCALING"}, {0, 0, "HEALTHY"}} {
		if got := running(); !slices.Equal(got, want) {
			t.Errorf("down, read %d: %v, want %v", i+1, got, want)
		}
	}
}

func TestProxiesAreThoseOfTheTest(t *testing.T) {
	network, d := serving()
	d.SetServeProxies(fakedashboard.ServeProxy{NodeIP: "10.0.0.1", Status: "HEALTHY"}, fakedashboard.ServeProxy{NodeID: "n7", NodeIP: "10.0.0.7", Status: "DRAINING"})
	if got := read(t, network); len(got.Proxies) != 0 {
		t.Errorf("before the first config: %+v", got.Proxies)
	}
	d.DeployServe(shop)
	want := map[string]proxy{"node00": {"10.0.0.1", "HEALTHY"}, "n7": {"10.0.0.7", "DRAINING"}}
	if diff := cmp.Diff(want, read(t, network).Proxies); diff != "" {
		t.Errorf("proxies (-want +got):\n%s", diff)
	}
}

func TestWhatServeKeepsWhenAHeadIsReplaced(t *testing.T) {
	cases := map[string]struct {
		replace func(*fakedashboard.Dashboard)
		want    []string
	}{
		"given no fault tolerance, then nothing": {replace: (*fakedashboard.Dashboard).Restart},
		"given fault tolerance, then everything": {replace: (*fakedashboard.Dashboard).RestartWithFaultTolerance, want: []string{"shop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, d := serving()
			d.DeployServe(shop)
			tc.replace(d)
			if got := d.ServeApplications(); !slices.Equal(got, tc.want) {
				t.Errorf("Serve has %v, want %v", got, tc.want)
			}
		})
	}
}

func TestApplicationsOfProgramsAreLeftAlone(t *testing.T) {
	network, d := serving()
	d.RunServe("theirs")
	put(t, network, shop)
	if got := d.ServeApplications(); !slices.Equal(got, []string{"shop", "theirs"}) {
		t.Errorf("Serve has %v", got)
	}
	if got := read(t, network).Applications; len(got) != 1 {
		t.Errorf("asked for those of the config, Serve reports %+v", got)
	}
	if _, body := send(t, network, http.MethodGet, applications, ""); !strings.Contains(body, `"source":"imperative"`) {
		t.Errorf("asked for all, Serve reports %s", body)
	}
}
