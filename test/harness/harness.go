// Package harness lets tests run the operator against a real etcd and kube-apiserver. There are no nodes and no
// controllers of Kubernetes: tests play the kubelet and the garbage collector, and Ray dashboards are scripted.
package harness

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/operator"
	"github.com/heliostat-io/heliostat/test/apiserver"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

const (
	// Patience is how long a condition may take on a busy machine.
	Patience = 60 * time.Second
	// tick is how often a condition is looked at.
	tick = 100 * time.Millisecond
)

// Main runs the tests of a package, with gomega waiting as long as Patience where a test says nothing else. It is used
// as `func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }`.
func Main(m *testing.M) int {
	// Operators get a logger of their own; what libraries say outside of it is left out.
	ctrl.SetLogger(logr.Discard())
	gomega.SetDefaultEventuallyTimeout(Patience)
	gomega.SetDefaultEventuallyPollingInterval(tick)
	return apiserver.Main(m)
}

// Cluster is a real API server that serves our CRDs, and a client that reads from it directly.
type Cluster struct {
	client.Client
	// REST is how the API server is reached.
	REST *rest.Config
	// Rays are the dashboards that the operators reach.
	Rays *fakedashboard.Network
}

// Connect returns the API server that all tests of the process share, and a fresh namespace in it.
func Connect(t testing.TB) (Cluster, string) {
	t.Helper()
	c := ConnectTo(t, apiserver.Start(t))
	return c, c.NewNamespace(t)
}

// ConnectTo returns the API server that the configuration leads to.
func ConnectTo(t testing.TB, config *rest.Config) Cluster {
	t.Helper()
	installCRDs(t, config)
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{Client: api, REST: config, Rays: fakedashboard.NewNetwork()}
	c.Rays.OnUnknown(func(string) *fakedashboard.Dashboard { return fakedashboard.NewInProcess() })
	return c
}

// installed remembers, by address, which API servers have the CRDs: each update of a CRD cuts the watches of others.
var installed = struct {
	sync.Mutex
	hosts map[string]bool
}{hosts: map[string]bool{}}

func installCRDs(t testing.TB, config *rest.Config) {
	t.Helper()
	installed.Lock()
	defer installed.Unlock()
	if installed.hosts[config.Host] {
		return
	}
	installFrom(t, config, filepath.Join(root(t), "charts", "heliostat", "crds"))
	installed.hosts[config.Host] = true
}

// installFrom installs the CRDs of a folder. A server that is just starting on a busy machine may not answer in time; what it
// has done nevertheless is no obstacle the next time.
func installFrom(t testing.TB, config *rest.Config, dir string) {
	t.Helper()
	err := apiserver.InstallCRDs(t.Context(), config, dir)
	for range 3 {
		if !apierrors.IsTimeout(err) {
			break
		}
		err = apiserver.InstallCRDs(t.Context(), config, dir)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// root finds the repository: tests run in the folder of their package, so it is somewhere above.
func root(t testing.TB) string {
	t.Helper()
	start, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(module), "module github.com/heliostat-io/heliostat\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("the repository is not above %s", start)
		}
	}
}

// NewNamespace makes a namespace for one test.
func (c Cluster) NewNamespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}
