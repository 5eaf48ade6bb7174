package harness

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Proxy stands between one operator process and the API server. It can cut connections, and hold single requests for as
// long as a test likes.
type Proxy struct {
	// URL is where it listens, CA the certificate that it shows. Who asks is told by the token alone.
	URL string
	CA  []byte

	server    *httptest.Server
	transport http.RoundTripper
	target    *url.URL

	mu   sync.Mutex
	cut  func(Request) bool
	hold *Held
}

// Held is one request that the proxy holds.
type Held struct {
	// Arrived is closed when the request is there.
	Arrived chan struct{}
	// Code gets the status of the API server's answer, when there is one.
	Code chan int

	match    func(Request) bool
	answered bool
	released chan struct{}
}

// NewProxy starts a proxy for the API server that the configuration leads to.
func NewProxy(t testing.TB, to *rest.Config) *Proxy {
	t.Helper()
	target, err := url.Parse(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: to.Host, TLSClientConfig: rest.TLSClientConfig{CAData: to.CAData, CAFile: to.CAFile}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{transport: transport, target: target}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w) },
	}
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is := parse(r)
		p.mu.Lock()
		cut, held := p.cut != nil && p.cut(is), p.hold
		if held != nil && held.match(is) {
			p.hold = nil
		} else {
			held = nil
		}
		p.mu.Unlock()
		switch {
		case cut:
			hangUp(w)
		case held != nil:
			p.carry(w, r, held)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	p.URL = p.server.URL
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// Cut leaves all requests that match without an answer from now on, and ends the connections that are open. Nil cuts
// nothing any more.
func (p *Proxy) Cut(match func(Request) bool) {
	p.mu.Lock()
	p.cut = match
	p.mu.Unlock()
	if match != nil {
		p.server.CloseClientConnections()
	}
}

// Everything matches all requests.
func Everything(Request) bool { return true }

// HoldRequest holds the next request that matches before the API server gets it. It will get it after the release, even
// if the one who sent it is gone by then.
func (p *Proxy) HoldRequest(match func(Request) bool) *Held { return p.holdNext(match, false) }

// HoldAnswer lets the API server carry out the next request that matches, and holds the answer.
func (p *Proxy) HoldAnswer(match func(Request) bool) *Held { return p.holdNext(match, true) }

func (p *Proxy) holdNext(match func(Request) bool, answered bool) *Held {
	held := &Held{Arrived: make(chan struct{}), Code: make(chan int, 1), match: match, answered: answered, released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = held
	return held
}

// Release lets the request, or its answer, go on.
func (h *Held) Release() { close(h.released) }

func (p *Proxy) carry(w http.ResponseWriter, r *http.Request, held *Held) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		hangUp(w)
		return
	}
	if !held.answered {
		close(held.Arrived)
		<-held.released
	}
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.URL.Scheme, late.URL.Host, late.RequestURI, late.Host = p.target.Scheme, p.target.Host, "", ""
	late.Body = io.NopCloser(bytes.NewReader(body))
	answer, err := p.transport.RoundTrip(late)
	if err != nil {
		held.Code <- 0
		hangUp(w)
		return
	}
	defer answer.Body.Close()
	held.Code <- answer.StatusCode
	if held.answered {
		close(held.Arrived)
		<-held.released
	}
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.StatusCode)
	// Nobody may be there any more to read it.
	_, _ = io.Copy(w, answer.Body)
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter) {
	if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
		connection.Close()
	}
}
