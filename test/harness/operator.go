package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/operator"
)

// Operator is one running operator.
type Operator struct {
	// Traffic are its requests to the API server.
	Traffic *Traffic
	// Metrics are the operator's own metrics.
	Metrics *prometheus.Registry

	stop  context.CancelFunc
	ended chan struct{}
	log   *testLog
}

// Option changes how an operator is started.
type Option func(*start)

type start struct {
	identity   string
	args       []string
	env        map[string]string
	transports []func(http.RoundTripper) http.RoundTripper
	clock      clock.WithTicker
	http       *http.Client
}

// As names the replica in the Lease.
func As(identity string) Option { return func(s *start) { s.identity = identity } }

// Args adds flags to the command line.
func Args(args ...string) Option { return func(s *start) { s.args = append(s.args, args...) } }

// Alone switches leader election off, so that the operator writes from its first moment on.
func Alone() Option { return Args("--enable-leader-election=false") }

// Env sets a variable of the operator's environment, which is empty otherwise.
func Env(name, value string) Option { return func(s *start) { s.env[name] = value } }

// Transport puts something between the operator and the API server, see LoseAnswers and DelayWatches.
func Transport(wrap func(http.RoundTripper) http.RoundTripper) Option {
	return func(s *start) { s.transports = append(s.transports, wrap) }
}

// Clock is what the controllers of the operator tell the time by.
func Clock(clock clock.WithTicker) Option { return func(s *start) { s.clock = clock } }

// ThroughAPIServer has Ray asked by way of the API server instead of the scripted dashboards.
func ThroughAPIServer() Option {
	return func(s *start) {
		s.http = nil
		Args("--use-kubernetes-proxy")(s)
	}
}

// Run starts an operator that watches one namespace and has its Lease there. It ends with the test at the latest.
func (c Cluster) Run(t testing.TB, namespace string, options ...Option) *Operator {
	t.Helper()
	s := &start{identity: "only", env: map[string]string{}, http: c.Rays.Client(), args: []string{
		"--metrics-addr=0", "--health-probe-bind-address=0", "--watch-namespace=" + namespace,
		"--leader-election-namespace=" + namespace,
	}}
	for _, option := range options {
		option(s)
	}
	cfg, err := config.Parse(s.args, func(name string) string { return s.env[name] }, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	o := &Operator{Traffic: &Traffic{}, Metrics: prometheus.NewRegistry(), stop: stop, ended: make(chan struct{}), log: &testLog{TB: t}}
	connection := rest.CopyConfig(c.REST)
	// Traffic is nearest to the wire, so that it sees what the API server did and not what the operator gets to know.
	connection.Wrap(o.Traffic.record)
	for _, wrap := range s.transports {
		connection.Wrap(wrap)
	}
	go func() {
		defer close(o.ended)
		err := operator.Run(ctx, cfg, operator.Options{
			REST: connection, Identity: s.identity, Namespace: namespace, Version: "test",
			HTTP: s.http, Registerer: o.Metrics, Clock: s.clock, Log: testr.NewWithInterface(o.log, testr.Options{Verbosity: 1}),
		})
		if err != nil {
			t.Errorf("operator %s: %v", s.identity, err)
		}
	}()
	t.Cleanup(o.Stop)
	return o
}

// Stop ends the operator and waits until it has let everything go.
func (o *Operator) Stop() {
	o.stop()
	<-o.ended
	o.log.end()
}

// Says tells whether the operator has said so in its log.
func (o *Operator) Says(text string) bool {
	o.log.mu.Lock()
	defer o.log.mu.Unlock()
	return strings.Contains(o.log.said.String(), text)
}

// testLog writes to the log of a test until the operator has ended: controller-runtime leaves a goroutine behind that
// has a last word, and a test that is over takes none.
type testLog struct {
	testing.TB
	mu    sync.Mutex
	ended bool
	said  strings.Builder
}

// Log writes one line.
func (l *testLog) Log(args ...any) {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.TB.Log(args...)
		fmt.Fprintln(&l.said, args...)
	}
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// Ended is closed when the operator has ended.
func (o *Operator) Ended() <-chan struct{} { return o.ended }
