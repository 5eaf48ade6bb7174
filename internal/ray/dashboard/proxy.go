package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ProxyTimeout is the time limit of calls that read, when they go through the API server of Kubernetes.
const ProxyTimeout = 2 * DefaultReadTimeout

// portName is the name of the dashboard's port on head Services.
const portName = "dashboard"

// ThroughAPIServer carries requests to dashboards and Pods by way of the proxies that the API server of Kubernetes has. It
// is for operators that cannot reach the Pods of the cluster. The addresses of dashboards stay as they are, of the form
// "<service>.<namespace>.svc.<domain>"; the port is the one that the Service calls "dashboard". Those of Pods are what
// ProxiedPodURL returns. The transport is one that the API server knows, and is given requests for that server only.
func ThroughAPIServer(server *url.URL, transport http.RoundTripper) http.RoundTripper {
	return &apiProxy{base: strings.TrimRight(server.String(), "/"), next: transport}
}

type apiProxy struct {
	base string
	next http.RoundTripper
}

// RoundTrip carries one request.
func (p *apiProxy) RoundTrip(request *http.Request) (*http.Response, error) {
	address, err := p.address(request.URL)
	if err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	proxied := request.Clone(request.Context())
	proxied.URL, proxied.Host = address, ""
	return p.next.RoundTrip(proxied)
}

// CloseIdleConnections passes on what http.Client asks its transport for.
func (p *apiProxy) CloseIdleConnections() {
	(&http.Client{Transport: p.next}).CloseIdleConnections()
}

// address is where the API server proxies to the URL. Other hosts than Services and Pods are refused, because the requests
// carry the operator's credentials.
func (p *apiProxy) address(of *url.URL) (*url.URL, error) {
	object, ok := podObject(of)
	if !ok {
		object, ok = serviceObject(of)
	}
	if !ok {
		return nil, fmt.Errorf("reach %s through the API server: it is no Service and no Pod of the cluster", of.Host)
	}
	text := fmt.Sprintf("%s/api/v1/namespaces/%s/proxy%s", p.base, object, of.EscapedPath())
	if of.RawQuery != "" {
		text += "?" + of.RawQuery
	}
	return url.Parse(text)
}

// serviceObject is what stands between "namespaces" and "proxy" in the path for a Service.
func serviceObject(of *url.URL) (string, bool) {
	labels := strings.SplitN(of.Hostname(), ".", 4)
	if len(labels) < 3 || labels[0] == "" || labels[1] == "" || labels[2] != "svc" {
		return "", false
	}
	return fmt.Sprintf("%s/services/%s:%s", labels[1], labels[0], portName), true
}

// podObject is what stands there for a Pod. The name of a Pod may have dots, that of a namespace has none.
func podObject(of *url.URL) (string, bool) {
	path, isPod := strings.CutSuffix(of.Hostname(), podEnding)
	dot := strings.LastIndexByte(path, '.')
	if !isPod || dot < 1 || dot == len(path)-1 || of.Port() == "" {
		return "", false
	}
	return fmt.Sprintf("%s/pods/%s:%s", path[dot+1:], path[:dot], of.Port()), true
}

// kubernetesSays returns the message of an answer that the API server gave in Ray's stead. Ray has no answer with a kind.
func kubernetesSays(body []byte) (message string, ok bool) {
	var status struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return "", false
	}
	return status.Message, true
}
