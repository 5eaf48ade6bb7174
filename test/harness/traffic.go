package harness

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// Request is one request to the API server that was answered.
type Request struct {
	// Verb is the verb of Kubernetes: get, list, watch, create, update, patch, apply, delete or deletecollection.
	Verb string
	// Resource is the plural of the kind, with the subresource after a slash.
	Resource string
	// Name is empty for lists, watches and creates.
	Name string
	// Code is the status of the answer.
	Code int
}

// Traffic are the requests of one operator, without those that it makes to become or stay the leader, and to learn its rights.
type Traffic struct {
	mu       sync.Mutex
	requests []Request
}

// record is a transport that writes down what was answered.
func (t *Traffic) record(next http.RoundTripper) http.RoundTripper {
	return transport(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		seen := parse(request)
		seen.Code = answer.StatusCode
		if agent := request.UserAgent(); !strings.Contains(agent, "leader-election") && !strings.Contains(agent, "rights-check") {
			t.mu.Lock()
			t.requests = append(t.requests, seen)
			t.mu.Unlock()
		}
		return answer, nil
	})
}

// All returns the requests so far, in the order of their answers.
func (t *Traffic) All() []Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}

// Count returns how many requests of the verb and resource were carried out; refused ones do not count.
func (t *Traffic) Count(verb, resource string) int {
	return t.count(func(r Request) bool { return r.Verb == verb && r.Resource == resource && r.Code < 300 })
}

// Reads returns how many gets, lists and watches there were.
func (t *Traffic) Reads() int { return t.count(func(r Request) bool { return !r.writes() }) }

// Writes returns how many requests there were that change something, refused ones included.
func (t *Traffic) Writes() int { return t.count(Request.writes) }

func (t *Traffic) count(wanted func(Request) bool) int {
	count := 0
	for _, request := range t.All() {
		if wanted(request) {
			count++
		}
	}
	return count
}

func (r Request) writes() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// Settle waits until the operator has written nothing for longer than it collects changes of a status.
func (o *Operator) Settle(t testing.TB) {
	t.Helper()
	last, since := o.Traffic.Writes(), time.Now()
	gomega.NewWithT(t).Eventually(func() bool {
		if n := o.Traffic.Writes(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > 4*time.Second
	}, Patience, tick).Should(gomega.BeTrue(), "the operator never falls silent")
}

// parse reads verb, resource and name from a request.
func parse(request *http.Request) Request {
	rest := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case rest[0] == "api" && len(rest) > 2:
		rest = rest[2:]
	case rest[0] == "apis" && len(rest) > 3:
		rest = rest[3:]
	default:
		return Request{Verb: "get", Resource: request.URL.Path}
	}
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	parsed := Request{Resource: rest[0]}
	if len(rest) > 1 {
		parsed.Name = rest[1]
	}
	if len(rest) > 2 {
		parsed.Resource += "/" + rest[2]
	}
	parsed.Verb = verbOf(request, parsed.Name)
	return parsed
}

func verbOf(request *http.Request, name string) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(request.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	switch {
	case request.URL.Query().Get("watch") != "":
		return "watch"
	case name == "":
		return "list"
	}
	return "get"
}
