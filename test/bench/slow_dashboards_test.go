package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// probes is how many clusters an operator is given, one after the other, to tell how fast a head comes.
const probes = 11

// site is a namespace with an operator of its own, and remembers when that last made a Pod.
type site struct {
	harness.Cluster
	ns string
	// made is how many probes there were so far.
	made int

	mu   sync.Mutex
	last time.Time
}

func newSite(t *testing.T, c harness.Cluster) *site {
	t.Helper()
	s := &site{Cluster: c, ns: c.NewNamespace(t)}
	c.Run(t, s.ns, harness.Alone(), harness.Transport(harness.Watched(func(request harness.Request, at time.Time) {
		if request.Verb == "create" && request.Resource == "pods" && request.Code < 300 {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.last = at
		}
	})))
	return s
}

func (s *site) podAfter(began time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Sub(began), s.last.After(began)
}

// probe makes a cluster of a head alone and returns how long that took to come.
func (s *site) probe(t *testing.T) time.Duration {
	t.Helper()
	g := NewWithT(t)
	s.made++
	cluster := harness.NewCluster(s.ns, fmt.Sprintf("probe-%d", s.made), func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = nil })
	began := time.Now()
	g.Expect(s.Create(t.Context(), cluster)).To(Succeed())
	var took time.Duration
	g.Eventually(func() (seen bool) {
		took, seen = s.podAfter(began)
		return seen
	}, harness.Patience, 5*time.Millisecond).Should(BeTrue(), "%s never gets a head", cluster.Name)
	// The next cluster is not to find the operator busy with this one. Until it writes nothing at all would be too long to wait:
	// RayJobs would fail meanwhile, because Ray does not answer.
	service := types.NamespacedName{Namespace: s.ns, Name: raycluster.HeadServiceName(cluster)}
	g.Eventually(func() error {
		return s.Get(t.Context(), service, &corev1.Service{})
	}, harness.Patience, 20*time.Millisecond).Should(Succeed(), "%s never gets a Service", cluster.Name)
	return took
}

// TestSlowDashboardsDelayNobodyElse given many RayJobs whose dashboards never answer or do so after 20 seconds, and then
// after two, when RayClusters are made, then their heads come as fast as on an operator without RayJobs. The two operators
// are asked in turns, so that both meet the same machine.
func TestSlowDashboardsDelayNobodyElse(t *testing.T) {
	g := NewWithT(t)
	c, _ := harness.Connect(t)
	var dashboards sync.Map
	// The probes are asked as well, once they are ready, so only the jobs' own dashboards are counted.
	var known, asked atomic.Int64
	c.Rays.OnUnknown(func(host string) *fakedashboard.Dashboard {
		d, fault := fakedashboard.NewInProcess(), fakedashboard.Fault{Never: true}
		if known.Add(1)%2 == 0 {
			fault = fakedashboard.Fault{Delay: 20 * time.Second}
		}
		d.Inject(fault)
		dashboards.Store(host, d)
		if strings.HasPrefix(host, "job-") {
			asked.Add(1)
		}
		return d
	})
	idle, busy := newSite(t, c), newSite(t, c)
	compare(t, "no RayJobs", idle, busy)

	for i := range *jobs {
		job := harness.NewJob(busy.ns, rayv1.HTTPMode)
		job.Name = fmt.Sprintf("job-%d", i)
		job.Spec.RayClusterSpec.WorkerGroupSpecs = nil
		g.Expect(c.Create(t.Context(), job)).To(Succeed())
	}
	g.Eventually(func() int { return busy.running(t) }, 10*time.Minute, time.Second).Should(Equal(*jobs))
	g.Eventually(asked.Load, harness.Patience).Should(BeEquivalentTo(*jobs), "not every dashboard was asked")
	compare(t, fmt.Sprintf("%d RayJobs on dashboards that answer in 20 s or never", *jobs), idle, busy)

	dashboards.Range(func(_, d any) bool {
		d.(*fakedashboard.Dashboard).ClearFaults()
		d.(*fakedashboard.Dashboard).Inject(fakedashboard.Fault{Delay: 2 * time.Second})
		return true
	})
	compare(t, fmt.Sprintf("%d RayJobs on dashboards that answer in 2 s", *jobs), idle, busy)
}

// running makes all Pods ready and counts the RayJobs that run.
func (s *site) running(t *testing.T) int {
	t.Helper()
	s.Kubelet(t, s.ns)
	all, count := &rayv1.RayJobList{}, 0
	if err := s.List(t.Context(), all, client.InNamespace(s.ns)); err != nil {
		t.Fatal(err)
	}
	for _, job := range all.Items {
		if job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusRunning {
			count++
		}
	}
	return count
}

// compare prints how fast heads come on either operator, and the ratio of the medians. The limits are those that no busy
// machine breaks.
func compare(t *testing.T, what string, idle, busy *site) {
	t.Helper()
	var without, with []time.Duration
	for range probes {
		without = append(without, idle.probe(t))
		with = append(with, busy.probe(t))
	}
	slices.Sort(without)
	slices.Sort(with)
	ratio := float64(median(with)) / float64(cmp.Or(median(without), time.Microsecond))
	t.Logf("%s: a head after %s (at most %s), on the idle operator after %s (at most %s): ratio %.2f", what,
		median(with), with[probes-1].Round(time.Millisecond), median(without), without[probes-1].Round(time.Millisecond), ratio)
	if ratio > 5 && median(with) > 2*time.Second {
		t.Errorf("%s: others are held up: ratio %.2f", what, ratio)
	}
}

func median(sorted []time.Duration) time.Duration {
	return sorted[len(sorted)/2].Round(100 * time.Microsecond)
}
