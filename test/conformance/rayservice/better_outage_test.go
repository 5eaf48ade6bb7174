package rayservice

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/test/harness"
)

// stalls has the API server answer nobody for longer than a lease lasts.
func stalls(e *env) {
	const stall = 20 * time.Second
	wires := []*harness.Wire{{}, {}}
	var operators []*harness.Operator
	for i, identity := range []string{"one", "two"} {
		operators = append(operators, e.Run(e.t, e.ns, harness.As(identity), harness.Transport(wires[i].Transport)))
	}
	e.operator = operators[0]
	service := e.ready()
	cluster := e.active(service)
	for _, operator := range operators {
		operator.Settle(e.t)
	}
	pods := harness.Names(e.allPods(cluster.Name))
	leader := e.leader()

	for _, wire := range wires {
		wire.Stall()
	}
	since := time.Now()
	e.soon(func() any { return time.Since(since) }).Should(BeNumerically(">", stall))
	for _, wire := range wires {
		wire.Flow()
	}

	e.soon(func() any { return e.renewedAfter(since.Add(stall)) }).Should(BeTrue(), "nobody leads any more; %s did before", leader)
	e.change(service, replicas("3"))
	e.soon(func() any { return string(e.ray(cluster.Name).LastServePut()) }).Should(ContainSubstring(`"num_replicas":3`))
	e.serves(service)
	for _, operator := range operators {
		select {
		case <-operator.Ended():
			e.t.Error("a replica has ended")
		default:
		}
	}
	e.Expect(harness.Names(e.allPods(cluster.Name))).To(Equal(pods))
	e.Expect(e.clusters()).To(HaveLen(1))
}

func (e *env) lease() *coordinationv1.Lease {
	e.t.Helper()
	lease := &coordinationv1.Lease{}
	e.Expect(e.read(lease, config.LeaseName)).To(Succeed())
	return lease
}

func (e *env) leader() string { return ptr.Deref(e.lease().Spec.HolderIdentity, "") }

func (e *env) renewedAfter(at time.Time) bool {
	renewed := e.lease().Spec.RenewTime
	return renewed != nil && renewed.After(at)
}

// podQueries are the label selectors by which an operator asks for Pods.
type podQueries struct {
	mu    sync.Mutex
	asked []string
}

func (q *podQueries) transport(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/pods") {
			q.mu.Lock()
			q.asked = append(q.asked, request.URL.Query().Get("labelSelector"))
			q.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// selectors are those that were used, each once.
func (q *podQueries) selectors() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.asked)
	slices.Sort(all)
	return slices.Compact(all)
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip carries one request.
func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// podsOf are the Pods of the namespace that a selector takes.
func (e *env) podsOf(selector string) []corev1.Pod {
	e.t.Helper()
	parsed, err := labels.Parse(selector)
	e.Expect(err).ToNot(HaveOccurred())
	list := &corev1.PodList{}
	e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns), client.MatchingLabelsSelector{Selector: parsed})).To(Succeed())
	return list.Items
}
