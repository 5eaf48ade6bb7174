package fakedashboard

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"syscall"
)

// Network carries requests to dashboards and proxies by the host and port of the URL, without sockets. It is an
// http.RoundTripper.
type Network struct {
	mu         sync.Mutex
	hosts      map[string]*Dashboard
	unknown    func(host string) *Dashboard
	proxies    map[string]*Proxy
	unknownPod func(host string) *Proxy
}

// host is who answers on a Network.
type host interface {
	http.Handler
	isDown() bool
}

// NewNetwork returns a network on which nobody answers.
func NewNetwork() *Network {
	return &Network{hosts: map[string]*Dashboard{}, proxies: map[string]*Proxy{}}
}

// AddProxy makes the proxy answer at host, such as "10.0.0.1:8000", in place of any other. A Pod has its proxy on one port
// and its metrics on another, so it is added for both.
func (n *Network) AddProxy(host string, p *Proxy) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.proxies[host] = p
}

// RemoveProxy makes nobody answer at the host.
func (n *Network) RemoveProxy(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.proxies, host)
}

// OnUnknownPod sets what supplies a proxy the first time that an unknown address of a Pod is called: an IP address with a
// port. Nil from it, as without OnUnknownPod, means that nobody answers there.
func (n *Network) OnUnknownPod(supply func(host string) *Proxy) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unknownPod = supply
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
	answering, err := n.resolve(request.URL.Host)
	if err != nil {
		return nil, errors.Join(err, drop(request.Body))
	}
	if answering.isDown() {
		return nil, errors.Join(refused(), drop(request.Body))
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
		answering.ServeHTTP(recorder, request)
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

// resolve finds who answers at the address, or has it supplied.
func (n *Network) resolve(address string) (host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d, ok := n.hosts[address]; ok {
		return d, nil
	}
	if p, ok := n.proxies[address]; ok {
		return p, nil
	}
	if _, err := netip.ParseAddrPort(address); err == nil {
		return n.pod(address)
	}
	if n.unknown != nil {
		if d := n.unknown(address); d != nil {
			n.hosts[address] = d
			return d, nil
		}
	}
	return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
}

// pod has the proxy at an address of a Pod supplied. The lock is held.
func (n *Network) pod(address string) (host, error) {
	if n.unknownPod != nil {
		if p := n.unknownPod(address); p != nil {
			n.proxies[address] = p
			return p, nil
		}
	}
	return nil, refused()
}

// refused is the error of a connection to an address on which nothing listens.
func refused() error { return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} }

// drop closes a body, as every RoundTripper has to.
func drop(body io.Closer) error { return body.Close() }
