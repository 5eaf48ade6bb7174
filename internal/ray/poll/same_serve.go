package poll

import (
	"maps"
	"reflect"
	"slices"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// sameServe compares the parts of a report that a controller acts upon or shows. When a config was last put is none of them,
// nor are the names of replicas, which come and go with autoscaling; how many there are in which state is.
func sameServe(a, b *dashboard.ServeDetails) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ProxyLocation == b.ProxyLocation &&
		sameNumber(a.TargetCapacity, b.TargetCapacity) &&
		maps.Equal(a.Proxies, b.Proxies) &&
		maps.EqualFunc(a.Applications, b.Applications, sameApplication) &&
		reflect.DeepEqual(a.HTTPOptions, b.HTTPOptions) &&
		reflect.DeepEqual(a.GRPCOptions, b.GRPCOptions)
}

func sameApplication(a, b dashboard.ServeApplication) bool {
	return a.Status == b.Status && a.Message == b.Message && a.RoutePrefix == b.RoutePrefix &&
		reflect.DeepEqual(a.DeployedConfig, b.DeployedConfig) &&
		maps.EqualFunc(a.Deployments, b.Deployments, sameDeployment)
}

func sameDeployment(a, b dashboard.ServeDeployment) bool {
	return a.Status == b.Status && a.StatusTrigger == b.StatusTrigger && a.Message == b.Message &&
		a.TargetNumReplicas == b.TargetNumReplicas && slices.Equal(places(a.Replicas), places(b.Replicas))
}

// places are the states and nodes of replicas, in an order of their own.
func places(replicas []dashboard.ServeReplica) []string {
	out := make([]string, 0, len(replicas))
	for _, replica := range replicas {
		out = append(out, replica.State+" "+replica.NodeIP)
	}
	slices.Sort(out)
	return out
}

func sameNumber(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
