package raycluster

import (
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// NotServed returns the paths of those fields of a RayCluster that are in use and on which this version does not act
// yet. The cluster runs without what they ask for.
func NotServed(spec *rayv1.RayClusterSpec) []string {
	autoscaling := ptr.Deref(spec.EnableInTreeAutoscaling, false)
	upgrade := rayv1.RayClusterUpgradeNone
	if spec.UpgradeStrategy != nil {
		upgrade = ptr.Deref(spec.UpgradeStrategy.Type, rayv1.RayClusterUpgradeNone)
	}
	fields := []struct {
		path  string
		inUse bool
	}{
		{"spec.enableInTreeAutoscaling", autoscaling},
		{"spec.autoscalerOptions", autoscaling && spec.AutoscalerOptions != nil},
		{"spec.gcsFaultToleranceOptions", spec.GcsFaultToleranceOptions != nil},
		{"spec.authOptions.mode=token", spec.AuthOptions != nil && spec.AuthOptions.Mode == rayv1.AuthModeToken},
		{"spec.tlsOptions.enabled", spec.TLSOptions != nil && ptr.Deref(spec.TLSOptions.Enabled, false)},
		{"spec.networkPolicy", spec.NetworkPolicy != nil},
		{"spec.historyServerOptions", spec.HistoryServerOptions != nil},
		{"spec.headGroupSpec.enableIngress", ptr.Deref(spec.HeadGroupSpec.EnableIngress, false)},
		{"spec.upgradeStrategy.type=Recreate", upgrade == rayv1.RayClusterRecreate},
	}
	var paths []string
	for _, field := range fields {
		if field.inUse {
			paths = append(paths, field.path)
		}
	}
	return paths
}
