package operator

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

func TestDashboardsAreReachedThroughTheAPIServerWhereThatIsAskedFor(t *testing.T) {
	var asked string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization") + " " + r.RequestURI
	}))
	defer server.Close()
	connection := &rest.Config{Host: server.URL, BearerToken: "operator", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	web, patience, err := dashboards(config.Config{UseKubernetesProxy: true}, Options{REST: connection})
	if err != nil {
		t.Fatal(err)
	}
	defer web.CloseIdleConnections()
	if patience != 10*time.Second {
		t.Errorf("an answer is waited for for %s", patience)
	}
	_ = dashboard.New("http://demo-head-svc.ml.svc.cluster.local:8265", dashboard.WithHTTPClient(web)).Healthy(t.Context())
	if want := "Bearer operator /api/v1/namespaces/ml/services/demo-head-svc:dashboard/proxy/api/gcs_healthz"; asked != want {
		t.Errorf("the API server was asked %q, want %q", asked, want)
	}
	if web, patience, err = dashboards(config.Config{}, Options{REST: connection}); err != nil || patience != 5*time.Second {
		t.Errorf("without the option, an answer is waited for for %s (%v)", patience, err)
	}
	if _, direct := web.Transport.(*http.Transport); !direct {
		t.Errorf("without the option, requests go through %T", web.Transport)
	}
}
