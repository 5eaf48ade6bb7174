package fakedashboard_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestAProxyAnswersAsServeDoes(t *testing.T) {
	cases := map[string]struct {
		path     string
		given    func(*fakedashboard.Proxy)
		wantCode int
		wantBody string
	}{
		"healthy at first":   {path: "/-/healthz", wantCode: 200, wantBody: "success"},
		"being drained":      {path: "/-/healthz", given: func(p *fakedashboard.Proxy) { p.SetHealthy(false) }, wantCode: 503, wantBody: "This node is being drained."},
		"no requests yet":    {path: "/metrics", wantCode: 200, wantBody: "ray_node_cpu_count{"},
		"requests under way": {path: "/metrics", given: func(p *fakedashboard.Proxy) { p.SetTraffic(2, 9) }, wantCode: 200, wantBody: `ray_serve_num_ongoing_http_requests{Component="core_worker",NodeAddress="10.0.0.1",SessionName="session_1",route="/"} 2`},
		"another path":       {path: "/", wantCode: 404, wantBody: "not found"},
		"down":               {path: "/-/healthz", given: (*fakedashboard.Proxy).Down, wantBody: "connection refused"},
		"up again":           {path: "/-/healthz", given: func(p *fakedashboard.Proxy) { p.Down(); p.Up() }, wantCode: 200, wantBody: "success"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, p := fakedashboard.NewNetwork(), fakedashboard.NewProxyInProcess()
			network.AddProxy("10.0.0.1:8000", p)
			if tc.given != nil {
				tc.given(p)
			}
			code, body := send(t, network, http.MethodGet, "http://10.0.0.1:8000"+tc.path, "")
			if code != tc.wantCode || !strings.Contains(body, tc.wantBody) {
				t.Errorf("GET %s = %d %s, want %d with %q", tc.path, code, body, tc.wantCode, tc.wantBody)
			}
		})
	}
}

func TestAProxyListens(t *testing.T) {
	p := fakedashboard.NewProxy(t)
	response, err := http.Get(p.URL() + "/-/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "success" || p.Checks() != 1 {
		t.Errorf("answer is %q, %v; asked %d times", body, err, p.Checks())
	}
	p.Down()
	if response, err := http.Get(p.URL() + "/-/healthz"); err == nil {
		response.Body.Close()
		t.Errorf("a proxy that is down answers %d", response.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestProxiesAreSuppliedForAddressesOfPods(t *testing.T) {
	network := fakedashboard.NewNetwork()
	const address = "http://10.0.0.9:8000/-/healthz"
	if _, body := send(t, network, http.MethodGet, address, ""); !strings.Contains(body, "connection refused") {
		t.Errorf("given nobody supplies any: %s", body)
	}
	var asked []string
	network.OnUnknownPod(func(host string) *fakedashboard.Proxy {
		asked = append(asked, host)
		if host != "10.0.0.9:8000" {
			return nil
		}
		return fakedashboard.NewProxyInProcess()
	})
	for range 2 {
		if code, body := send(t, network, http.MethodGet, address, ""); code != http.StatusOK {
			t.Errorf("given one is supplied: %d %s", code, body)
		}
	}
	if _, body := send(t, network, http.MethodGet, "http://10.0.0.8:8000/", ""); !strings.Contains(body, "connection refused") {
		t.Errorf("given another address: %s", body)
	}
	if len(asked) != 2 {
		t.Errorf("asked for %v, want each once", asked)
	}
	network.RemoveProxy("10.0.0.9:8000")
	network.OnUnknownPod(nil)
	if code, _ := send(t, network, http.MethodGet, address, ""); code != 0 {
		t.Error("a proxy that was removed answers")
	}
}
