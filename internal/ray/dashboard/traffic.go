package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ServeTraffic is what the Serve proxies of one Pod are busy with, over HTTP and gRPC together. Ray renews these numbers
// every 10 seconds unless RAY_metrics_report_interval_ms says otherwise, so they may be older than the answer by that much.
type ServeTraffic struct {
	// Ongoing is how many requests are being answered.
	Ongoing float64
	// Requests is how many requests were answered since the proxy was started, without those by which probes, load balancers
	// and this operator ask after its health: these go on as long as the proxy lives.
	Requests float64
	// Reported is false when there are no such numbers: no request has come through a proxy of this Pod, or Ray exports no
	// metrics.
	Reported bool
}

// maxMetrics is how much of the metrics of a Pod is read, in bytes.
const maxMetrics = 32 << 20

// What Serve's proxies count, for HTTP and for gRPC. Ray writes counters twice, with the ending that Prometheus asks for
// and, for old dashboards, without.
const (
	ongoingFamily  = "ray_serve_num_ongoing_%s_requests"
	requestsFamily = "ray_serve_num_%s_requests"
	totalEnding    = "_total"
)

// ServeTraffic reads the metrics of a Pod. The base URL of the Client is that of the port on which Ray exports them (8080
// unless configured otherwise), not that of a dashboard; see PodURL.
func (c *Client) ServeTraffic(ctx context.Context) (ServeTraffic, error) {
	ask := call{method: http.MethodGet, path: "/metrics", timeout: c.readTimeout, limit: maxMetrics}
	body, err := c.do(ctx, ask)
	if err != nil {
		return ServeTraffic{}, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(proxyLines(body)))
	if err != nil {
		return ServeTraffic{}, fmt.Errorf("%s: %w: %w", ask, ErrUnexpectedAnswer, err)
	}
	var traffic ServeTraffic
	add := func(to *float64, name string) {
		// Without its header, which is left out, every sample is untyped.
		for _, sample := range families[name].GetMetric() {
			traffic.Reported = true
			if !asksAfterHealth(sample) {
				*to += sample.GetUntyped().GetValue()
			}
		}
	}
	for _, protocol := range []string{"http", "grpc"} {
		requests := fmt.Sprintf(requestsFamily, protocol)
		if _, both := families[requests+totalEnding]; both {
			requests += totalEnding
		}
		add(&traffic.Requests, requests)
		add(&traffic.Ongoing, fmt.Sprintf(ongoingFamily, protocol))
	}
	return traffic, nil
}

// asksAfterHealth tells whether a sample counts requests to the paths under which Serve tells of itself.
func asksAfterHealth(sample *dto.Metric) bool {
	for _, label := range sample.GetLabel() {
		if label.GetName() == "route" && strings.HasPrefix(label.GetValue(), "/-/") {
			return true
		}
	}
	return false
}

// proxyLines returns the samples that may count. The rest is left out before anything is parsed: there are thousands of
// lines, and Ray's exporter repeats headers, which parsers refuse.
func proxyLines(metrics []byte) string {
	var lines strings.Builder
	for line := range bytes.Lines(metrics) {
		if bytes.HasPrefix(line, []byte("ray_serve_num_")) {
			lines.Write(line)
		}
	}
	lines.WriteByte('\n')
	return lines.String()
}
