package dashboard_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestTrafficIsAddedUpOverTheProxiesOfAPod(t *testing.T) {
	cases := map[string]struct {
		body string
		want dashboard.ServeTraffic
	}{
		"given no metrics, then nothing is reported":          {body: ""},
		"given none of Serve's proxies, then nothing either":  {body: "# TYPE ray_node_cpu_count gauge\nray_node_cpu_count{a=\"b\"} 2.0\nray_serve_deployment_x 4\n"},
		"given an idle proxy, then no request is under way":   {body: "ray_serve_num_ongoing_http_requests{node_id=\"n\"} 0.0\n", want: dashboard.ServeTraffic{Reported: true}},
		"given counters written twice, then they count once":  {body: "ray_serve_num_http_requests_total{a=\"b\"} 7.0\nray_serve_num_http_requests{a=\"b\"} 7.0\n", want: dashboard.ServeTraffic{Requests: 7, Reported: true}},
		"given an older Ray, then the only name is taken":     {body: "ray_serve_num_http_requests{a=\"b\"} 7.0\n", want: dashboard.ServeTraffic{Requests: 7, Reported: true}},
		"given errors are counted too, then they do not add":  {body: "ray_serve_num_http_requests{a=\"b\"} 7.0\nray_serve_num_http_error_requests_total 3\nray_serve_num_deployment_http_error_requests 3\n", want: dashboard.ServeTraffic{Requests: 7, Reported: true}},
		"given several series and both protocols, then all":   {body: "ray_serve_num_http_requests_total{route=\"/a\"} 7.0\nray_serve_num_http_requests_total{route=\"/b } 9 \"} 5e0\nray_serve_num_grpc_requests_total 1\nray_serve_num_ongoing_http_requests 2\nray_serve_num_ongoing_grpc_requests 3\n", want: dashboard.ServeTraffic{Ongoing: 5, Requests: 13, Reported: true}},
		"given requests for health, then they are no traffic": {body: "ray_serve_num_http_requests_total{method=\"GET\",route=\"/-/healthz\"} 70.0\nray_serve_num_http_requests_total{route=\"/-/routes\"} 9.0\nray_serve_num_http_requests_total{route=\"/-x\"} 2.0\n", want: dashboard.ServeTraffic{Requests: 2, Reported: true}},
		"given headers that repeat, then they do not disturb": {body: "# TYPE ray_serve_num_http_requests counter\n# TYPE ray_serve_num_http_requests gauge\nray_serve_num_http_requests 4\n", want: dashboard.ServeTraffic{Requests: 4, Reported: true}},
		"given an answer without a last line end, then it is": {body: "ray_serve_num_http_requests 4", want: dashboard.ServeTraffic{Requests: 4, Reported: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := answering(t, http.StatusOK, tc.body).ServeTraffic(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("traffic (-want +got):\n%s", d)
			}
		})
	}
}

func TestTrafficThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := answering(t, http.StatusOK, "ray_serve_num_http_requests{a= 4\n").ServeTraffic(t.Context()); !errors.Is(err, dashboard.ErrUnexpectedAnswer) {
		t.Errorf("error is %v", err)
	}
	if _, err := answering(t, http.StatusNotFound, "").ServeTraffic(t.Context()); err == nil {
		t.Error("a page that is not there told of traffic")
	}
}

func TestPodsAreAskedAtTheirAddress(t *testing.T) {
	proxy := fakedashboard.NewProxyInProcess()
	proxy.SetTraffic(3, 40)
	network := fakedashboard.NewNetwork()
	network.AddProxy("[fd00::1]:8000", proxy)
	client := dashboard.New(dashboard.PodURL("fd00::1", 8000), dashboard.WithHTTPClient(network.Client()))
	if err := client.ProxyHealth(t.Context()); err != nil {
		t.Error(err)
	}
	want := dashboard.ServeTraffic{Ongoing: 3, Requests: 40, Reported: true}
	if got, err := client.ServeTraffic(t.Context()); err != nil || got != want {
		t.Errorf("traffic is %+v, %v; want %+v", got, err, want)
	}
	proxy.SetHealthy(false)
	if err := client.ProxyHealth(t.Context()); err == nil {
		t.Error("the proxy is healthy")
	}
}
