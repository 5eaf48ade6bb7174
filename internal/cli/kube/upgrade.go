package kube

import "k8s.io/streaming/pkg/httpstream"

// RefusesWebsocket tells whether an error is about the websocket and not about what was asked for through it. API servers
// and proxies of before 2024 take no websockets; SPDY is what they take.
func RefusesWebsocket(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}
