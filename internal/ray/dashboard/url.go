package dashboard

import (
	"net"
	"strconv"
)

// URL returns the base URL of a dashboard, such as "http://raycluster-head-svc.default.svc.cluster.local:8265".
// The scheme is always http, because Ray's dashboard speaks no TLS. An IPv6 address is put in brackets.
func URL(host string, port int32) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// podEnding marks hosts that stand for Pods.
const podEnding = ".pod"

// PodURL returns the base URL of a port of the Pod with this IP address, such as "http://10.1.2.3:8000".
func PodURL(ip string, port int32) string { return URL(ip, port) }

// ProxiedPodURL returns the base URL of a port of a Pod for a client whose requests go through the API server; see
// ThroughAPIServer. It is of the form "http://<pod>.<namespace>.pod:<port>", a name that nothing resolves.
func ProxiedPodURL(namespace, pod string, port int32) string {
	return URL(pod+"."+namespace+podEnding, port)
}
