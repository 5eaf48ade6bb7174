// Package podtest serves, for tests, what an API server carries between a client and Pods: port forwarding, commands and
// logs. It knows no objects.
package podtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Protocol is how the server lets connections be upgraded.
type Protocol int

// The protocols that API servers know.
const (
	// WebSocket is what present API servers take.
	WebSocket Protocol = iota
	// SPDY is all that older ones take. Commands are not served with it.
	SPDY
)

// Pod is what a Pod answers.
type Pod struct {
	// Ports are the addresses at which the ports of the Pod are served.
	Ports map[int32]string
	// Log answers requests for the log. Query parameters are those of the API server.
	Log http.HandlerFunc
	// Exec runs a command: it returns what the command writes and its exit code.
	Exec func(command []string) (output []byte, code int)
}

// Server is the server.
type Server struct {
	t        testing.TB
	protocol Protocol
	http     *httptest.Server

	mu    sync.Mutex
	pods  map[types.NamespacedName]Pod
	close map[types.NamespacedName][]func()
}

// New returns a server that ends with the test.
func New(t testing.TB, protocol Protocol) *Server {
	s := &Server{t: t, protocol: protocol, pods: map[types.NamespacedName]Pod{}, close: map[types.NamespacedName][]func(){}}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.mu.Lock()
		var names []types.NamespacedName
		for name := range s.close {
			names = append(names, name)
		}
		s.mu.Unlock()
		for _, name := range names {
			s.Remove(name)
		}
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Config is how to reach the server.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL} }

// Set makes a Pod answer.
func (s *Server) Set(name types.NamespacedName, pod Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[name] = pod
}

// Remove ends a Pod and the connections to it.
func (s *Server) Remove(name types.NamespacedName) {
	s.mu.Lock()
	closing := s.close[name]
	delete(s.pods, name)
	delete(s.close, name)
	s.mu.Unlock()
	for _, f := range closing {
		f()
	}
}

// onRemove calls f when the Pod is removed, or at once when it is gone by now: a client knows of its connection before this server does.
func (s *Server) onRemove(name types.NamespacedName, f func()) {
	s.mu.Lock()
	_, there := s.pods[name]
	if there {
		s.close[name] = append(s.close[name], f)
	}
	s.mu.Unlock()
	if !there {
		f()
	}
}

// ServeHTTP answers /api/v1/namespaces/<namespace>/pods/<pod>/<subresource>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 7 {
		http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
		return
	}
	name := types.NamespacedName{Namespace: parts[3], Name: parts[5]}
	s.mu.Lock()
	pod, ok := s.pods[name]
	s.mu.Unlock()
	if !ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			Message: `pods "` + name.Name + `" not found`,
		})
		return
	}
	switch subresource := parts[6]; {
	case subresource == "portforward":
		s.forward(w, r, name, pod)
	case subresource == "exec" && pod.Exec != nil:
		s.exec(w, r, pod)
	case subresource == "log" && pod.Log != nil:
		pod.Log(w, r)
	default:
		http.Error(w, "the Pod answers no "+subresource, http.StatusBadRequest)
	}
}
