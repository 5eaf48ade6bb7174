package ray

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Cluster holds what all nodes of a Ray cluster need to know of it.
type Cluster struct {
	// HeadHost is the DNS name at which workers find the head.
	HeadHost string
	// GCSPort is the port of the GCS as the user wrote it; see GCSPort.
	GCSPort string
	// Version is the version of Ray that the user declared. It may be empty or no version at all; then only what
	// every version can do is used.
	Version string
	// CreatedBy is the kind of the object that the user made: RayCluster, RayJob or RayService.
	CreatedBy string
	// OperatorVersion is the version of the operator, for Ray's usage statistics.
	OperatorVersion string
	// ServeProxyLocation says on which nodes Serve's proxies run, in Serve's own words: "HeadOnly" or "Disabled". Anything
	// else stands for every node.
	ServeProxyLocation string
}

// gcsAddress returns host and port of the GCS as workers see it.
func (c Cluster) gcsAddress() string {
	return c.HeadHost + ":" + c.GCSPort
}

// serving reports whether the cluster was made to run Ray Serve.
func (c Cluster) serving() bool {
	return c.CreatedBy == "RayService"
}

// Node describes one node of a Ray cluster, or a group of equal ones, in the user's words.
type Node struct {
	// Cluster is what the node needs to know of its cluster.
	Cluster Cluster
	// Role says whether the node is the head.
	Role Role
	// Params are the parameters of "ray start", without leading dashes.
	Params map[string]string
	// Resources are the logical resources of the node, by name, as quantities of Kubernetes.
	Resources map[string]string
	// Labels are Ray's node labels.
	Labels map[string]string
	// GracePeriod is how many seconds the user gives the node's Pod for its end, nil where that is not said.
	GracePeriod *int64
}

// RunsServeProxy reports whether a proxy of Serve is expected on the node: it then may take requests.
func (n Node) RunsServeProxy() bool {
	switch n.Cluster.ServeProxyLocation {
	case "Disabled":
		return false
	case "HeadOnly":
		return n.Cluster.serving() && n.Role == Head
	default:
		return n.Cluster.serving()
	}
}

// GCSPort returns the port of the GCS, given the head's parameters: the parameter "port" if it is there, even if it
// is empty, else Ray's default.
func GCSPort(headParams map[string]string) string {
	if port, ok := headParams[paramPort]; ok {
		return port
	}
	return strconv.Itoa(DefaultGCSPort)
}

// DashboardPort returns the port on which the dashboard listens, given the head's parameters. What is not a number
// counts as absent.
func DashboardPort(headParams map[string]string) int32 {
	return portParam(headParams, paramDashboardPort, DefaultDashboardPort)
}

// StartParams returns the complete parameters of "ray start" for the node. What the user did not write is filled in
// from the group's resources and labels, from the resources of the Ray container, and from defaults.
func (n Node) StartParams(container *corev1.Container) map[string]string {
	params := map[string]string{}
	maps.Copy(params, n.Params)
	setGroupResources(params, n.Resources)
	if len(n.Labels) > 0 {
		params[paramLabels] = joinLabels(n.Labels)
	}
	setMissing(params, paramMetricsPort, strconv.Itoa(DefaultMetricsPort))
	setMissing(params, paramAgentPort, strconv.Itoa(DefaultAgentPort))
	if n.Role == Head {
		// Ray's own default is the loopback interface, which nothing outside the Pod can reach.
		setMissing(params, paramDashboardHost, "0.0.0.0")
	} else {
		setMissing(params, paramAddress, n.Cluster.gcsAddress())
	}
	// Without it "ray start" returns at once, and the container with it.
	params[paramBlock] = "true"
	detectResources(params, container.Resources)
	return params
}

func setMissing(params map[string]string, key, value string) {
	if _, ok := params[key]; !ok {
		params[key] = value
	}
}

func joinLabels(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, ",")
}

func portParam(params map[string]string, key string, fallback int32) int32 {
	port, err := strconv.ParseInt(params[key], 10, 32)
	if err != nil {
		return fallback
	}
	return int32(port)
}
