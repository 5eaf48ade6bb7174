// Package apiserver gives integration tests a real kube-apiserver with etcd.
//
// The server comes from `localkube apiserver`, see hack/localkube. It needs no
// root, listens on the loopback interface only, and ends with the test process,
// however that ends.
package apiserver

import (
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// shared is the server that all tests of this process use. Starting one takes
// some seconds, which each test of a package would pay otherwise.
var shared = struct {
	sync.Mutex
	server *server
	err    error
}{}

// Start returns the configuration of an API server which all tests of the
// process share: a test should work in a namespace of its own. The server is
// started by the first call; there are no nodes and no controllers, so
// namespaces are not emptied, and nothing is garbage-collected.
//
// The first run on a machine builds Kubernetes, which takes about 15 minutes on
// two cores; later ones take seconds.
func Start(tb testing.TB) *rest.Config {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = launch()
	}
	if shared.err != nil {
		tb.Fatalf("starting an API server for the tests of this process: %v", shared.err)
	}
	return configOf(tb, shared.server)
}

// New returns the configuration of an API server that belongs to the calling
// test alone and ends with it. args are further flags of kube-apiserver, such as
// "--audit-log-path=/tmp/audit".
func New(tb testing.TB, args ...string) *rest.Config {
	tb.Helper()
	started, err := launch(args...)
	if err != nil {
		tb.Fatalf("starting an API server for this test: %v", err)
	}
	tb.Cleanup(started.stop)
	return configOf(tb, started)
}

// Main runs the tests of a package and ends the shared server afterwards. It is
// used as `func TestMain(m *testing.M) { os.Exit(apiserver.Main(m)) }`. Without
// it the server ends just as well, but nobody waits until its folder is gone.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.stop()
		shared.server = nil
	}
	return code
}

func configOf(tb testing.TB, from *server) *rest.Config {
	tb.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", from.Kubeconfig)
	if err != nil {
		tb.Fatalf("reading the kubeconfig of the API server: %v", err)
	}
	// Tests shall measure what they test, not the client's own brake.
	config.QPS, config.Burst = 1000, 2000
	return config
}

// Kubeconfig returns the path of a kubeconfig file for the server that Start
// shares, for tests that run other programs.
func Kubeconfig(tb testing.TB) string {
	tb.Helper()
	Start(tb)
	shared.Lock()
	defer shared.Unlock()
	if _, err := os.Stat(shared.server.Kubeconfig); err != nil {
		tb.Fatalf("looking for the kubeconfig of the API server: %v", err)
	}
	return shared.server.Kubeconfig
}
