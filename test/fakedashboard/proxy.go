package fakedashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Proxy plays a Serve proxy of a Pod and, beside it, the port on which Ray exports the metrics of the Pod: it answers both
// "/-/healthz" and "/metrics". All methods may be called at any time, also while it serves.
type Proxy struct {
	mu       sync.Mutex
	healthy  bool
	down     bool
	reported bool
	ongoing  float64
	requests float64
	checks   int

	server *httptest.Server
}

// NewProxy starts a proxy on the loopback address; it ends with the test. It is healthy.
func NewProxy(tb testing.TB) *Proxy {
	tb.Helper()
	p := NewProxyInProcess()
	p.server = httptest.NewServer(p)
	tb.Cleanup(p.server.Close)
	return p
}

// NewProxyInProcess returns a healthy proxy without a listener. It is reached through a Network.
func NewProxyInProcess() *Proxy { return &Proxy{healthy: true} }

// URL is the base URL of a proxy made by NewProxy.
func (p *Proxy) URL() string { return p.server.URL }

// SetHealthy sets whether the proxy takes requests.
func (p *Proxy) SetHealthy(healthy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthy = healthy
}

// SetTraffic sets how many requests the metrics tell of: under way, and answered so far. They tell of none before that.
func (p *Proxy) SetTraffic(ongoing, requests float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reported, p.ongoing, p.requests = true, ongoing, requests
}

// Checks is how often the proxy was asked for its health.
func (p *Proxy) Checks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.checks
}

// Down makes the proxy unreachable: connections break without an answer.
func (p *Proxy) Down() { p.setDown(true) }

// Up ends Down.
func (p *Proxy) Up() { p.setDown(false) }

func (p *Proxy) setDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

func (p *Proxy) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// ServeHTTP answers as a Serve proxy and as Ray's exporter of metrics.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		panic(http.ErrAbortHandler)
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /-/healthz":
		p.checks++
		if !p.healthy {
			sendText(w, http.StatusServiceUnavailable, "This node is being drained.")
			return
		}
		sendText(w, http.StatusOK, "success")
	case "GET /metrics":
		sendText(w, http.StatusOK, p.metrics())
	default:
		sendText(w, http.StatusNotFound, "Path '"+r.URL.Path+"' not found. Ping http://.../-/routes for available routes.")
	}
}

// metrics are in the words of Ray's exporter: counters come twice, with a header that repeats itself, and requests for health
// are counted like others.
func (p *Proxy) metrics() string {
	const common = `Component="core_worker",NodeAddress="10.0.0.1",SessionName="session_1"`
	labels, health := "{"+common+`,route="/"}`, "{"+common+`,route="/-/healthz"}`
	text := "# HELP ray_node_cpu_count Total CPUs available on a ray node\n# TYPE ray_node_cpu_count gauge\nray_node_cpu_count{" + common + "} 2.0\n"
	if !p.reported {
		return text
	}
	for _, sample := range []struct {
		name, kind, labels string
		value              float64
	}{
		{"ray_serve_num_ongoing_http_requests", "gauge", labels, p.ongoing},
		{"ray_serve_num_http_requests_total", "counter", labels, p.requests},
		{"ray_serve_num_http_requests_total", "counter", health, float64(p.checks)},
		{"ray_serve_num_http_requests", "gauge", labels, p.requests},
		{"ray_serve_num_http_requests", "gauge", health, float64(p.checks)},
	} {
		text += fmt.Sprintf("# HELP %[1]s Requests.\n# TYPE %[1]s %[2]s\n%[1]s%[3]s %[4]g\n", sample.name, sample.kind, sample.labels, sample.value)
	}
	return text
}
