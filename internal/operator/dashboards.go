package operator

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// dashboards returns what carries requests to Ray dashboards, and how long one that reads may take. By the configuration
// they go through the API server, with the operator's own rights there.
func dashboards(cfg config.Config, options Options) (*http.Client, time.Duration, error) {
	switch {
	case options.HTTP != nil:
		return options.HTTP, dashboard.DefaultReadTimeout, nil
	case !cfg.UseKubernetesProxy:
		return dashboard.NewHTTPClient(), dashboard.DefaultReadTimeout, nil
	}
	server, _, err := rest.DefaultServerUrlFor(options.REST)
	if err != nil {
		return nil, 0, fmt.Errorf("find the API server for requests to Ray dashboards: %w", err)
	}
	transport, err := rest.TransportFor(options.REST)
	if err != nil {
		return nil, 0, fmt.Errorf("set up requests to Ray dashboards through the API server: %w", err)
	}
	return &http.Client{Transport: dashboard.ThroughAPIServer(server, transport)}, dashboard.ProxyTimeout, nil
}
