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
