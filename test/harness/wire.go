package harness

import (
	"errors"
	"net/http"
	"strings"
	"sync"
)

// errCut is what an operator sees of a request that never got to the API server.
var errCut = errors.New("the connection was cut before the request was sent")

// Wire stands between an operator in this process and the API server, and lets some of its requests not get there.
type Wire struct {
	mu      sync.Mutex
	cut     func(Request) bool
	after   func(Request)
	stalled chan struct{} // nil while requests flow
}

// Cut lets no request that matches get to the API server from now on. Nil lets all of them.
func (w *Wire) Cut(match func(Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = match
}

// After has a function called with each request that was carried out, before the operator gets the answer.
func (w *Wire) After(call func(Request)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = call
}

// Stall keeps all new requests waiting, as a busy API server does, until Flow is called or their senders give up.
func (w *Wire) Stall() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled = make(chan struct{})
}

// Flow ends Stall.
func (w *Wire) Flow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.stalled)
	w.stalled = nil
}

// Transport is to be put between the operator and the API server.
func (w *Wire) Transport(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		is := parse(request)
		w.mu.Lock()
		cut, after, stalled := w.cut, w.after, w.stalled
		w.mu.Unlock()
		if stalled != nil {
			select {
			case <-stalled:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		if cut != nil && cut(is) {
			return nil, errCut
		}
		answer, err := next.RoundTrip(request)
		if err == nil && answer.StatusCode < 300 && after != nil {
			is.Code = answer.StatusCode
			after(is)
		}
		return answer, err
	})
}

// HideGroup makes an API group unknown to an operator.
func HideGroup(group string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			request = request.Clone(request.Context())
			if request.URL.Path == "/apis" {
				// Without the kinds of all groups in one answer: those of this one are asked for below.
				request.Header.Set("Accept", "application/json")
			}
			if rest, found := strings.CutPrefix(request.URL.Path, "/apis/"+group); found {
				request.URL.Path = "/apis/hidden." + group + rest
			}
			return next.RoundTrip(request)
		})
	}
}
