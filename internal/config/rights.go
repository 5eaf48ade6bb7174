package config

import (
	"cmp"

	"github.com/heliostat-io/heliostat/internal/rights"
)

// Use is what the rights follow from that an operator with this configuration needs. home is the namespace of its Pods, and
// served tells whether the API server knows an API group.
func (c Config) Use(home string, served func(group string) bool) rights.Use {
	use := rights.Use{
		Namespaces: c.WatchNamespaces, Home: home, Proxy: c.UseKubernetesProxy, CronJobs: c.FeatureGates.Enabled(RayCronJob),
		Gateways: c.FeatureGates.Enabled(RayServiceIncrementalUpgrade) && served(rights.Gateways),
		Routes:   !c.Environment.IngressOnOpenShift && served(rights.Routes),
	}
	if c.LeaderElection.Enabled {
		use.Lease = rights.Lease{Namespace: cmp.Or(c.LeaderElection.Namespace, home), Name: LeaseName}
		use.Fence = c.LeaderElection.Fencing == FencingRequired
	}
	return use
}
