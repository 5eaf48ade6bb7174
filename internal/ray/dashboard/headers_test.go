package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

func TestAHostAmongTheHeadersIsSent(t *testing.T) {
	var host string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host = r.Host }))
	defer server.Close()
	transport := &dashboard.Headers{Base: &http.Transport{DisableKeepAlives: true}, Header: http.Header{"Host": {"ray.example.com"}}}
	response, err := (&http.Client{Transport: transport}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if host != "ray.example.com" {
		t.Errorf("the host was %q", host)
	}
}
