package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// ApplicationRunning is the status of an application of which every deployment is as it was wanted. Any other word, also
// one that this package does not know, means "not ready".
const ApplicationRunning = "RUNNING"

// ApplicationDeleting is the status of an application that is left out of the last config, until its replicas are gone.
const ApplicationDeleting = "DELETING"

// ProxyHealthy is the status of a proxy that takes requests.
const ProxyHealthy = "HEALTHY"

const deploymentHealthy = "HEALTHY"

// ReplicaRunning is the state of a replica that takes requests.
const ReplicaRunning = "RUNNING"

// ServeDetails is what Ray Serve tells of itself. Statuses are Ray's words as they are, since releases add to them.
type ServeDetails struct {
	// ProxyLocation is "EveryNode", "HeadOnly" or "Disabled"; empty before Serve was started.
	ProxyLocation string
	// TargetCapacity is the part of all replicas that is wanted, in percent; nil, as 100, means all.
	TargetCapacity *float64
	// Proxies are those that run, by the hex id of the Ray node.
	Proxies map[string]ServeProxy
	// Applications are those of the last config and those that are being removed, by name. It is empty before Serve was
	// started, and after a head was replaced without fault tolerance of the GCS.
	Applications map[string]ServeApplication
	// HTTPOptions and GRPCOptions are the options that the proxies were started with; nil before Serve was started.
	HTTPOptions, GRPCOptions map[string]any
}

// ServeProxy is the proxy on one Ray node.
type ServeProxy struct {
	// NodeID is Ray's hex id of the node.
	NodeID string
	// NodeIP is the IP address of the node, which on Kubernetes is that of the Pod.
	NodeIP string
	// NodeInstanceID is the name of the Pod where RAY_CLOUD_INSTANCE_ID was set to it, and empty otherwise.
	NodeInstanceID string
	// Status is STARTING, HEALTHY, UNHEALTHY, DRAINING or DRAINED.
	Status string
}

// ServeApplication is one application.
type ServeApplication struct {
	Name string
	// RoutePrefix is empty while it is not known, and for an application without HTTP.
	RoutePrefix string
	// Status is NOT_STARTED, DEPLOYING, DEPLOY_FAILED, RUNNING, UNHEALTHY or DELETING.
	Status string
	// Message explains the status. It may be a whole Python traceback.
	Message string
	// LastDeployed is when a config was last given to the application, by the clock of the head.
	LastDeployed time.Time
	// DeployedConfig is the part of the last config that is about this application: all fields that were set in it and
	// are known to Ray, and none that were not. Numbers in it are of type json.Number. It is nil where Ray tells none, as for
	// applications that are being removed or that a program deployed.
	DeployedConfig map[string]any
	// Deployments are those of the application, by name, also such as the config does not mention.
	Deployments map[string]ServeDeployment
}

// Says is what Serve says about the application, else about the first of its deployments, by name, that is not healthy.
func (a ServeApplication) Says() string {
	if a.Message != "" {
		return a.Message
	}
	for _, name := range slices.Sorted(maps.Keys(a.Deployments)) {
		if d := a.Deployments[name]; d.Status != deploymentHealthy && d.Message != "" {
			return fmt.Sprintf("deployment %s: %s", name, d.Message)
		}
	}
	return ""
}

// ServeDeployment is one deployment of an application.
type ServeDeployment struct {
	Name string
	// Status is UPDATING, HEALTHY, UNHEALTHY, DEPLOY_FAILED, UPSCALING or DOWNSCALING.
	Status string
	// StatusTrigger says what led to the status, such as CONFIG_UPDATE_STARTED.
	StatusTrigger string
	// Message explains the status. It may be a whole Python traceback.
	Message string
	// TargetNumReplicas is how many replicas are wanted now, after autoscaling and target capacity.
	TargetNumReplicas int
	// FewestReplicas is how many replicas there are to be at least at full capacity: the number that the deployment has, or
	// the least that its autoscaling may go down to. It is 0 where Ray does not tell.
	FewestReplicas int
	// Replicas are those that there are, in any state.
	Replicas []ServeReplica
}

// ServeReplica is one replica of a deployment.
type ServeReplica struct {
	ID string
	// State is STARTING, UPDATING, RECOVERING, RUNNING, STOPPING or PENDING_MIGRATION.
	State string
	// NodeIP is the IP address of the node that it runs on; empty while it has none.
	NodeIP string
}

// Clone returns a copy that shares nothing changeable with d. The clone of nil is nil.
func (d *ServeDetails) Clone() *ServeDetails {
	if d == nil {
		return nil
	}
	clone := *d
	if d.TargetCapacity != nil {
		capacity := *d.TargetCapacity
		clone.TargetCapacity = &capacity
	}
	clone.Proxies = cloneMap(d.Proxies, func(proxy ServeProxy) ServeProxy { return proxy })
	clone.Applications = cloneMap(d.Applications, ServeApplication.clone)
	clone.HTTPOptions = cloneMap(d.HTTPOptions, cloneValue)
	clone.GRPCOptions = cloneMap(d.GRPCOptions, cloneValue)
	return &clone
}

func (a ServeApplication) clone() ServeApplication {
	a.DeployedConfig = cloneMap(a.DeployedConfig, cloneValue)
	a.Deployments = cloneMap(a.Deployments, func(deployment ServeDeployment) ServeDeployment {
		deployment.Replicas = slices.Clone(deployment.Replicas)
		return deployment
	})
	return a
}

// cloneMap copies a map and each of its values; nil stays nil.
func cloneMap[V any](from map[string]V, clone func(V) V) map[string]V {
	if from == nil {
		return nil
	}
	to := make(map[string]V, len(from))
	for key, value := range from {
		to[key] = clone(value)
	}
	return to
}

// cloneValue copies a value as it comes out of JSON.
func cloneValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		return cloneMap(value, cloneValue)
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = cloneValue(value[i])
		}
		return list
	}
	return value
}
