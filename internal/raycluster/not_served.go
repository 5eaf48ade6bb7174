package raycluster

import (
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// NotServed returns the paths of those fields of a RayCluster that are in use and on which this version does not act
// yet. The cluster runs without what they ask for.
func NotServed(spec *rayv1.RayClusterSpec) []string {
	fields := []struct {
		path  string
		inUse bool
	}{
		{"spec.tlsOptions.enabled", spec.TLSOptions != nil && ptr.Deref(spec.TLSOptions.Enabled, false)},
		{"spec.networkPolicy", spec.NetworkPolicy != nil},
		{"spec.historyServerOptions", spec.HistoryServerOptions != nil},
	}
	var paths []string
	for _, field := range fields {
		if field.inUse {
			paths = append(paths, field.path)
		}
	}
	return paths
}
