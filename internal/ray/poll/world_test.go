package poll_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a poller with dashboards to ask, in virtual time.
type world struct {
	*poll.Poller
	network *fakedashboard.Network
	traffic *traffic

	mu   sync.Mutex
	told []poll.Key
}

// inWorld runs the test in a bubble of virtual time with a poller that has been started. The bubble fails the test if a
// goroutine is left when the poller has ended.
func inWorld(t *testing.T, options poll.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{network: fakedashboard.NewNetwork()}
		w.traffic = &traffic{next: w.network, running: map[string]int{}}
		options.HTTPClient = &http.Client{Transport: w.traffic}
		// The name of a Secret is the token in it.
		options.Tokens = func(secret types.NamespacedName) dashboard.TokenSource {
			return func(context.Context) (string, error) { return secret.Name, nil }
		}
		options.Notify = func(owner poll.Key) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, owner)
		}
		w.Poller = poll.New(options)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Start(ctx) }()
		test(t, w)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
}

// pass lets virtual time pass, and returns when everything that it brought about has been done.
func pass(d time.Duration) {
	synctest.Wait()
	<-time.After(d)
	synctest.Wait()
}

// dashboard adds a dashboard for the cluster of that name.
func (w *world) dashboard(name string) *fakedashboard.Dashboard {
	d := fakedashboard.NewInProcess()
	w.network.Add(name+":8265", d)
	return d
}

// notified returns how often owners were told since the last call.
func (w *world) notified() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.told)
	w.told = nil
	return n
}

// see returns the observation of the owner, which must have a target.
func (w *world) see(t *testing.T, owner poll.Key) poll.Observation {
	t.Helper()
	seen, ok := w.Observation(owner)
	if !ok {
		t.Fatalf("%s has no target", owner)
	}
	return seen
}

func key(name string) poll.Key {
	return poll.Key{Kind: "RayJob", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// target is a job of that name on the cluster of that name.
func target(cluster, job string) poll.Target {
	return poll.Target{Owner: key(job), OwnerUID: "uid-1", BaseURL: dashboard.URL(cluster, 8265), SubmissionID: job}
}

// traffic watches the requests on their way to the network.
type traffic struct {
	next http.RoundTripper

	mu sync.Mutex
	// after is called after each answer, with its path; see afterEach.
	after   func(path string)
	sent    []request
	running map[string]int
	total   int
	most    int
	mostOne int
}

type request struct {
	host, path string
	at         time.Time
}

func (tr *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	tr.mu.Lock()
	tr.sent = append(tr.sent, request{host: r.URL.Host, path: r.URL.Path, at: time.Now()})
	tr.total++
	tr.running[r.URL.Host]++
	tr.most = max(tr.most, tr.total)
	tr.mostOne = max(tr.mostOne, tr.running[r.URL.Host])
	tr.mu.Unlock()

	response, err := tr.next.RoundTrip(r)

	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.total--
	tr.running[r.URL.Host]--
	if tr.after != nil {
		tr.after(r.URL.Path)
	}
	return response, err
}

// afterEach sets what is called after each answer, one call at a time. It must not ask for traffic.
func (tr *traffic) afterEach(call func(path string)) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.after = call
}

// times returns when the path was asked for at the host.
func (tr *traffic) times(host, path string) []time.Time {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var out []time.Time
	for _, r := range tr.sent {
		if r.host == host && r.path == path {
			out = append(out, r.at)
		}
	}
	return out
}

// longestGap returns the longest time between two neighbours.
func longestGap(times []time.Time) time.Duration {
	var longest time.Duration
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i].Sub(times[i-1]))
	}
	return longest
}
