package ray

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Time-outs, in seconds, of the HTTP requests within probes that are commands. The second one is longer than the
// probe's own limit, so the kubelet ends the probe first; it is part of the text that clients know.
const (
	rayletCheckTimeout = 2
	otherCheckTimeout  = 10
)

// SetProbes gives the Ray container a liveness and a readiness probe unless the user wrote one of that kind.
// The parameters must be complete; see StartParams.
func (n Node) SetProbes(container *corev1.Container, params map[string]string) {
	timeout := int32(2)
	if n.Role == Head {
		timeout = 5
	}
	if container.LivenessProbe == nil {
		container.LivenessProbe = &corev1.Probe{
			ProbeHandler:        n.healthCheck(params),
			InitialDelaySeconds: 30, TimeoutSeconds: timeout, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 120,
		}
	}
	if container.ReadinessProbe != nil {
		return
	}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:        n.healthCheck(params),
		InitialDelaySeconds: 10, TimeoutSeconds: timeout, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: 10,
	}
	if n.Role == Worker && n.Cluster.serving() {
		// Traffic must leave a worker as soon as its Serve proxy stops answering.
		container.ReadinessProbe.FailureThreshold = 1
		container.ReadinessProbe.ProbeHandler = commandCheck(rayletCheck(params), serveCheck(container))
	}
}

// healthCheck returns how the kubelet asks Ray for its health: by one HTTP request where the declared version has an
// endpoint for that, else by commands inside the container.
func (n Node) healthCheck(params map[string]string) corev1.ProbeHandler {
	// Since 2.53 the dashboard agent answers for the raylet and, on the head, for the GCS together.
	if VersionAtLeast(n.Cluster.Version, 2, 53) {
		port := portParam(params, paramAgentPort, DefaultAgentPort)
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/api/healthz", Port: intstr.FromInt32(port)}}
	}
	if n.Role == Head {
		return commandCheck(rayletCheck(params), check(DashboardPort(params), "api/gcs_healthz", otherCheckTimeout))
	}
	return commandCheck(rayletCheck(params))
}

// VersionAtLeast reports whether a declared version of Ray is the given release or a later one. It is false for an
// empty version and for what is no version; a pre-release counts as older than its release.
func VersionAtLeast(version string, major, minor uint64) bool {
	parsed, err := semver.NewVersion(version)
	return err == nil && !parsed.LessThan(semver.New(major, minor, 0, "", ""))
}

func rayletCheck(params map[string]string) string {
	port := portParam(params, paramAgentPort, DefaultAgentPort)
	return check(port, "api/local_raylet_healthz", rayletCheckTimeout)
}

func serveCheck(container *corev1.Container) string {
	port := int32(DefaultServePort)
	for _, declared := range container.Ports {
		if declared.Name == PortNameServe {
			port = declared.ContainerPort
		}
	}
	return check(port, "-/healthz", otherCheckTimeout)
}

func check(port int32, path string, timeout int) string {
	return fmt.Sprintf("wget --tries 1 -T %d -q -O- http://localhost:%d/%s | grep success", timeout, port, path)
}

func commandCheck(checks ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", strings.Join(checks, " && ")}}}
}
