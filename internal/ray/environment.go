package ray

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SetEnvironment appends the variables that every Ray container has. The order is part of the interface: of two
// variables of one name the later one wins. It must run after the steps that add variables for optional features.
//
// The start line is that of StartCommand; defaults are those of the operator's configuration.
func (n Node) SetEnvironment(container *corev1.Container, start string, defaults []corev1.EnvVar) {
	AddEnv(container, defaults...)
	if n.Role == Worker {
		n.SetHeadHost(container)
	}
	container.Env = append(container.Env,
		field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
		field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
		field("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
		field("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
		literal(EnvStartCommand, start),
	)
	AddEnv(container, literal("RAY_PORT", n.Cluster.GCSPort))
	if n.Cluster.serving() {
		// With these a Serve controller notices the loss of a node within seconds.
		AddEnv(container,
			literal("RAY_timeout_ms_task_wait_for_death_info", "0"),
			literal("RAY_gcs_server_request_timeout_seconds", "5"),
			literal("RAY_SERVE_KV_TIMEOUT_S", "5"),
		)
	}
	if seconds, is := n.drainTime(); is {
		AddEnv(container, literal("RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", strconv.FormatInt(seconds, 10)))
	}
	AddEnv(container,
		literal("RAY_ADDRESS", n.ownGCSAddress()),
		literal("RAY_USAGE_STATS_KUBERAY_IN_USE", "1"),
	)
	if n.Role == Head {
		container.Env = append(container.Env, literal("RAY_USAGE_STATS_EXTRA_TAGS",
			"kuberay_version="+n.Cluster.OperatorVersion+";kuberay_crd="+n.Cluster.creator()))
	}
	AddEnv(container, literal("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1"))
}

// SetHeadHost tells the container where the head is. Init containers need no more than that.
func (n Node) SetHeadHost(container *corev1.Container) {
	host := n.Cluster.HeadHost
	name, _, _ := strings.Cut(host, ".")
	container.Env = append(container.Env, literal("FQ_RAY_IP", host), literal("RAY_IP", name))
}

// ownGCSAddress returns the address of the GCS for programs inside the node's own Pod.
func (n Node) ownGCSAddress() string {
	if n.Role == Head {
		return "127.0.0.1:" + n.Cluster.GCSPort
	}
	return n.Cluster.gcsAddress()
}

// creator returns CreatedBy as usage statistics know it.
func (c Cluster) creator() string {
	switch c.CreatedBy {
	case "RayJob", "RayService":
		return c.CreatedBy
	default:
		return "RayCluster"
	}
}

func literal(name, value string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, Value: value}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{
		Name:      name,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}},
	}
}

// AddEnv appends those of the variables of whose names the container has none yet.
func AddEnv(container *corev1.Container, variables ...corev1.EnvVar) {
	for _, variable := range variables {
		if !hasEnv(container.Env, variable.Name) {
			container.Env = append(container.Env, variable)
		}
	}
}

func hasEnv(variables []corev1.EnvVar, name string) bool {
	return slices.ContainsFunc(variables, func(v corev1.EnvVar) bool { return v.Name == name })
}
