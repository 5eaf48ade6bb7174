package harness

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// transport is a function that carries requests.
type transport func(*http.Request) (*http.Response, error)

// RoundTrip carries one request.
func (f transport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// errLost is what a client sees of an answer that got lost.
var errLost = errors.New("the connection was cut before the answer came")

// LoseAnswers lets the API server carry out the first requests of the verb and resource, and loses its answers.
func LoseAnswers(verb, resource string, first int) func(http.RoundTripper) http.RoundTripper {
	var lost atomic.Int64
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			is := parse(request)
			if err != nil || is.Verb != verb || is.Resource != resource || answer.StatusCode >= 300 || lost.Add(1) > int64(first) {
				return answer, err
			}
			answer.Body.Close()
			return nil, errLost
		})
	}
}

// DelayWatches brings news of watched objects late, as a busy API server or network does.
func DelayWatches(by time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil && parse(request).Verb == "watch" {
				answer.Body = late{ReadCloser: answer.Body, by: by}
			}
			return answer, err
		})
	}
}

// Pause keeps the news of one kind from an operator while it is on.
type Pause struct {
	resource string
	mu       sync.Mutex
	over     chan struct{} // nil while it is off
}

// PauseOf is a pause for a resource. It is off at first.
func PauseOf(resource string) *Pause { return &Pause{resource: resource} }

// On begins the pause.
func (p *Pause) On() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = make(chan struct{})
}

// Off ends the pause: the news come now.
func (p *Pause) Off() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.over)
	p.over = nil
}

// Transport is to be put between the operator and the API server.
func (p *Pause) Transport(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if is := parse(request); err == nil && is.Verb == "watch" && is.Resource == p.resource {
			answer.Body = paused{ReadCloser: answer.Body, pause: p, done: request.Context().Done()}
		}
		return answer, err
	})
}

type paused struct {
	io.ReadCloser
	pause *Pause
	done  <-chan struct{}
}

func (p paused) Read(into []byte) (int, error) {
	n, err := p.ReadCloser.Read(into)
	p.pause.mu.Lock()
	over := p.pause.over
	p.pause.mu.Unlock()
	if over != nil {
		select {
		case <-over:
		case <-p.done:
		}
	}
	return n, err
}

// Watched calls seen with each request that was answered, when it was.
func Watched(seen func(request Request, at time.Time)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil {
				is := parse(request)
				is.Code = answer.StatusCode
				seen(is, time.Now())
			}
			return answer, err
		})
	}
}

// late hands on what it reads after a while.
type late struct {
	io.ReadCloser
	by time.Duration
}

func (l late) Read(into []byte) (int, error) {
	n, err := l.ReadCloser.Read(into)
	time.Sleep(l.by)
	return n, err
}
