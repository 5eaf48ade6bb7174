package fakedashboard

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
)

// Network carries requests to dashboards by the host and port of the URL, without sockets. It is an http.RoundTripper.
type Network struct {
	mu      sync.Mutex
	hosts   map[string]*Dashboard
	unknown func(host string) *Dashboard
}

// NewNetwork returns a network without dashboards.
func NewNetwork() *Network {
	return &Network{hosts: map[string]*Dashboard{}}
}

// Add makes the dashboard answer at host, such as "demo-head-svc.default.svc.cluster.local:8265", in place of any other.
func (n *Network) Add(host string, d *Dashboard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = d
}

// Remove makes the host unknown.
func (n *Network) Remove(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.hosts, host)
}

// OnUnknown sets what supplies a dashboard the first time that an unknown host is called; nil from it, as without
// OnUnknown, means that the host does not resolve.
func (n *Network) OnUnknown(supply func(host string) *Dashboard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unknown = supply
}

// Dashboard returns the dashboard at host, or nil.
func (n *Network) Dashboard(host string) *Dashboard {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hosts[host]
}

// Client returns an HTTP client that uses the network.
func (n *Network) Client() *http.Client { return &http.Client{Transport: n} }

// RoundTrip carries one request.
func (n *Network) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		request = request.Clone(request.Context())
		request.Body = http.NoBody
	}
	dashboard := n.resolve(request.URL.Host)
	if dashboard == nil {
		return nil, errors.Join(&net.DNSError{Err: "no such host", Name: request.URL.Hostname(), IsNotFound: true}, drop(request.Body))
	}
	if dashboard.isDown() {
		return nil, errors.Join(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, drop(request.Body))
	}
	answer := make(chan *http.Response, 1)
	go func() {
		defer close(answer)
		defer func() {
			// Like net/http's server, which takes this panic for "break the connection".
			if cause := recover(); cause != nil && cause != http.ErrAbortHandler {
				panic(cause)
			}
		}()
		recorder := httptest.NewRecorder()
		dashboard.ServeHTTP(recorder, request)
		response := recorder.Result()
		response.Request = request
		answer <- response
	}()
	select {
	case response, ok := <-answer:
		if !ok {
			return nil, errors.Join(io.ErrUnexpectedEOF, drop(request.Body))
		}
		return response, drop(request.Body)
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
}

// resolve finds the dashboard for a host, or has it supplied.
func (n *Network) resolve(host string) *Dashboard {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d, ok := n.hosts[host]; ok {
		return d
	}
	if n.unknown == nil {
		return nil
	}
	d := n.unknown(host)
	if d != nil {
		n.hosts[host] = d
	}
	return d
}

// drop closes a body, as every RoundTripper has to.
func drop(body io.Closer) error { return body.Close() }
