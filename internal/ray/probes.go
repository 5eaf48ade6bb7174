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

// headProxyMisses is how often in a row the head must be found without a healthy proxy to lose its traffic. With a question
// every five seconds this takes 10 to 15; fewer would let one slow answer of the dashboard's agent count as much.
const headProxyMisses = 3

const healthPath = "api/healthz"

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
	switch {
	case !n.RunsServeProxy():
	case n.Role == Worker:
		// Traffic must leave a worker as soon as its Serve proxy stops answering.
		container.ReadinessProbe.FailureThreshold = 1
		container.ReadinessProbe.ProbeHandler = commandCheck(rayletCheck(params), serveCheck(container))
	default:
		container.ReadinessProbe.FailureThreshold = headProxyMisses
		container.ReadinessProbe.ProbeHandler = commandCheck(append(n.healthCommands(params), onceServing(serveCheck(container)))...)
	}
}

// healthCheck returns how the kubelet asks Ray for its health: by one HTTP request where the declared version has an
// endpoint for that, else by commands inside the container.
func (n Node) healthCheck(params map[string]string) corev1.ProbeHandler {
	if n.answersForAll() {
		port := portParam(params, paramAgentPort, DefaultAgentPort)
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/" + healthPath, Port: intstr.FromInt32(port)}}
	}
	return commandCheck(n.healthCommands(params)...)
}

// healthCommands are the commands that ask for the same as healthCheck, whatever the version.
func (n Node) healthCommands(params map[string]string) []string {
	switch {
	case n.Role == Worker:
		return []string{rayletCheck(params)}
	case n.answersForAll():
		return []string{check(portParam(params, paramAgentPort, DefaultAgentPort), healthPath, rayletCheckTimeout)}
	default:
		return []string{rayletCheck(params), check(DashboardPort(params), "api/gcs_healthz", otherCheckTimeout)}
	}
}

// answersForAll reports whether the dashboard agent answers for the raylet and, on the head, for the GCS together, as it
// does since Ray 2.53.
func (n Node) answersForAll() bool { return VersionAtLeast(n.Cluster.Version, 2, 53) }

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

// onceServing makes a check of Serve's proxy on the head count from its first success on. Before Serve is started there is
// none, and the head must be ready for Serve to be started on it.
//
// The success is remembered in a file of this life of Ray. Its session's directory is new with every start of Ray, also
// where logs are kept on a volume that outlives the container; without it, as with another --temp-dir, /tmp has to do.
func onceServing(serve string) string {
	return "{ d=/tmp/ray/session_latest; [ -d $d ] || d=/tmp; " +
		"if " + serve + "; then touch $d/heliostat-serve-proxy || true; else [ ! -e $d/heliostat-serve-proxy ]; fi; }"
}

func check(port int32, path string, timeout int) string {
	return fmt.Sprintf("wget --tries 1 -T %d -q -O- http://localhost:%d/%s | grep success", timeout, port, path)
}

func commandCheck(checks ...string) corev1.ProbeHandler {
	return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", strings.Join(checks, " && ")}}}
}
