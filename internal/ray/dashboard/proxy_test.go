package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// received is what of a request reached the API server.
type received struct {
	Method, URI, Host, Authorization, Ray string
}

// withCredentials is a transport that identifies itself to the API server.
type withCredentials struct{ next http.RoundTripper }

func (w withCredentials) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer operator")
	return w.next.RoundTrip(request)
}

func TestRequestsGoThroughTheAPIServer(t *testing.T) {
	const to = "http://demo-head-svc.ml.svc.cluster.local:8265"
	cases := map[string]struct {
		// below is a path under which the API server is.
		below string
		url   string
		call  func(*dashboard.Client) error
		want  *received
	}{
		"a read": {url: to,
			call: func(c *dashboard.Client) error { _, err := c.GetJob(t.Context(), "a b"); return err },
			want: &received{Method: "GET", URI: "/api/v1/namespaces/ml/services/demo-head-svc:dashboard/proxy/api/jobs/a%20b"}},
		"a submission, with the slash that Ray insists on": {url: to,
			call: func(c *dashboard.Client) error {
				_, err := c.SubmitJob(t.Context(), dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "j1"})
				return err
			},
			want: &received{Method: "POST", URI: "/api/v1/namespaces/ml/services/demo-head-svc:dashboard/proxy/api/jobs/"}},
		"an API server below a path": {url: to, below: "/k8s/clusters/c1/",
			call: func(c *dashboard.Client) error { return c.Healthy(t.Context()) },
			want: &received{Method: "GET", URI: "/k8s/clusters/c1/api/v1/namespaces/ml/services/demo-head-svc:dashboard/proxy/api/gcs_healthz"}},
		"a config for Serve": {url: to,
			call: func(c *dashboard.Client) error { return c.PutServe(t.Context(), []byte(`{}`)) },
			want: &received{Method: "PUT", URI: "/api/v1/namespaces/ml/services/demo-head-svc:dashboard/proxy/api/serve/applications/"}},
		"the report of Serve, with what is asked for": {url: to,
			call: func(c *dashboard.Client) error { _, err := c.Serve(t.Context()); return err },
			want: &received{Method: "GET", URI: "/api/v1/namespaces/ml/services/demo-head-svc:dashboard/proxy/api/serve/applications/?api_type=declarative"}},
		"the proxy of a Pod": {url: dashboard.ProxiedPodURL("ml", "demo-head-x7k2m", 8000),
			call: func(c *dashboard.Client) error { return c.ProxyHealth(t.Context()) },
			want: &received{Method: "GET", URI: "/api/v1/namespaces/ml/pods/demo-head-x7k2m:8000/proxy/-/healthz"}},
		"the metrics of a Pod whose name has dots": {url: dashboard.ProxiedPodURL("ml", "demo.svc.one-head", 8080),
			call: func(c *dashboard.Client) error { _, err := c.ServeTraffic(t.Context()); return err },
			want: &received{Method: "GET", URI: "/api/v1/namespaces/ml/pods/demo.svc.one-head:8080/proxy/metrics"}},
		"a Pod without a namespace": {url: "http://demo.pod:8000", call: func(c *dashboard.Client) error { return c.ProxyHealth(t.Context()) }},
		"a Pod without a port":      {url: "http://demo.ml.pod", call: func(c *dashboard.Client) error { return c.ProxyHealth(t.Context()) }},
		"a Pod without a name":      {url: "http://.ml.pod:8000", call: func(c *dashboard.Client) error { return c.ProxyHealth(t.Context()) }},
		"a host that is no Service": {url: "http://example.com:8265",
			call: func(c *dashboard.Client) error {
				_, err := c.SubmitJob(t.Context(), dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "j1"})
				return err
			}},
		"an address": {url: "http://10.0.0.1:8265", call: func(c *dashboard.Client) error { return c.Healthy(t.Context()) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *received
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = &received{Method: r.Method, URI: r.RequestURI, Host: r.Host, Authorization: r.Header.Get("Authorization"), Ray: r.Header.Get("x-ray-authorization")}
				http.Error(w, `{"kind":"Status","message":"no endpoints available for service \"demo-head-svc:dashboard\""}`, http.StatusServiceUnavailable)
			}))
			defer server.Close()
			at, err := url.Parse(server.URL + tc.below)
			if err != nil {
				t.Fatal(err)
			}
			web := &http.Client{Transport: dashboard.ThroughAPIServer(at, withCredentials{server.Client().Transport})}
			defer web.CloseIdleConnections()
			err = tc.call(dashboard.New(tc.url, dashboard.WithHTTPClient(web), dashboard.WithToken(token("secret", nil))))
			if tc.want == nil {
				if err == nil || !strings.Contains(err.Error(), "it is no Service and no Pod of the cluster") || got != nil {
					t.Fatalf("error is %v, and the API server got %+v", err, got)
				}
				return
			}
			tc.want.Host, tc.want.Authorization, tc.want.Ray = strings.TrimPrefix(server.URL, "http://"), "Bearer operator", "Bearer secret"
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("the API server got (-want +got):\n%s", d)
			}
			if err == nil || !strings.Contains(err.Error(), "the API server answered in Ray's stead") || !strings.Contains(err.Error(), "no endpoints available") {
				t.Errorf("error is %v", err)
			}
		})
	}
}
