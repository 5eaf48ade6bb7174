package poll_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

const (
	oneApp      = `{"applications":[{"name":"a","import_path":"m:a","deployments":[{"name":"D","num_replicas":4}]}]}`
	servePath   = "/api/serve/applications/"
	versionPath = "/api/version"
)

// cluster is the key of the RayCluster of that name.
func cluster(name string) poll.Key {
	return poll.Key{Kind: "RayCluster", NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// serveOn is what Serve of the cluster of that name reports.
func serveOn(name string) poll.Target {
	return poll.Target{Owner: cluster(name), OwnerUID: "uid-1", BaseURL: dashboard.URL(name, 8265), Ask: poll.AskServe}
}

func TestServeIsFollowedAndOnlyChangesAreTold(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.SetDefaultServeScript(fakedashboard.ServeStep{Status: "DEPLOYING", Reads: 5}, fakedashboard.ServeStep{Status: "RUNNING"})
		w.Track(serveOn("c"))
		pass(time.Second)
		seen := w.see(t, cluster("c"))
		if seen.Serve == nil || len(seen.Serve.Applications) != 0 || seen.SessionName != d.Session() || seen.RayVersion != "2.52.0" {
			t.Errorf("before the first config: %+v", seen)
		}
		d.DeployServe(oneApp)
		pass(time.Minute)
		seen = w.see(t, cluster("c"))
		if got := seen.Serve.Applications["a"]; got.Status != dashboard.ApplicationRunning || got.DeployedConfig["import_path"] != "m:a" {
			t.Errorf("in the end: %+v", got)
		}
		if got := w.notified(); got != 3 {
			t.Errorf("told %d times, want 3: nothing, DEPLOYING, RUNNING", got)
		}
		if reports, versions := d.Requests(fakedashboard.EndpointServe), d.Requests(fakedashboard.EndpointVersion); reports != 21 || versions != 22 {
			t.Errorf("asked %d times for the report and %d times for the version, want 21 and once more", reports, versions)
		}
	})
}

func TestWhatOfServeIsTold(t *testing.T) {
	cases := map[string]struct {
		change func(*fakedashboard.Dashboard)
		want   int
	}{
		"given the same config is put again, then nothing": {change: func(d *fakedashboard.Dashboard) { d.DeployServe(oneApp) }},
		"given a status changes, then that": {want: 1,
			change: func(d *fakedashboard.Dashboard) {
				d.SetServeStep("a", fakedashboard.ServeStep{Status: "UNHEALTHY"})
			}},
		"given a message changes, then that": {want: 1,
			change: func(d *fakedashboard.Dashboard) {
				d.SetServeStep("a", fakedashboard.ServeStep{Status: "RUNNING", Message: "but slowly"})
			}},
		"given a config changes, then that": {want: 1,
			change: func(d *fakedashboard.Dashboard) {
				d.DeployServe(`{"applications":[{"name":"a","import_path":"m:a","args":{"x":1},"deployments":[{"name":"D","num_replicas":4}]}]}`)
			}},
		"given the capacity changes and replicas follow, then both": {want: 2,
			change: func(d *fakedashboard.Dashboard) {
				d.SetServeLag(3)
				d.DeployServe(`{"target_capacity":50,` + oneApp[1:])
			}},
		"given a proxy is drained, then that": {want: 1,
			change: func(d *fakedashboard.Dashboard) {
				d.SetServeProxies(fakedashboard.ServeProxy{NodeIP: "10.0.0.1", Status: "DRAINING"})
			}},
		"given the records are lost, then that": {want: 1, change: (*fakedashboard.Dashboard).LoseServe},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
				d := w.dashboard("c")
				d.SetDefaultServeScript(fakedashboard.ServeSteps("RUNNING")...)
				d.DeployServe(oneApp)
				d.SetServeProxies(fakedashboard.ServeProxy{NodeIP: "10.0.0.1", Status: "HEALTHY"})
				w.Track(serveOn("c"))
				pass(10 * time.Second)
				w.notified()
				tc.change(d)
				pass(30 * time.Second)
				if got := w.notified(); got != tc.want {
					t.Errorf("told %d times, want %d", got, tc.want)
				}
			})
		})
	}
}

// A report that was asked for in one session and answered before the version of the next one was read belongs to neither.
func TestAReportBelongsToTheSessionOfTheHeadThatGaveIt(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.DeployServe(oneApp)
		w.Track(serveOn("c"))
		pass(time.Second)
		first := d.Session()
		if seen := w.see(t, cluster("c")); seen.SessionName != first || len(seen.Serve.Applications) != 1 {
			t.Fatalf("at first: %+v", seen)
		}
		var replaced atomic.Bool
		w.traffic.afterEach(func(path string) {
			if path == servePath && replaced.CompareAndSwap(false, true) {
				d.Restart()
			}
		})
		pass(3 * time.Second)
		if seen := w.see(t, cluster("c")); !replaced.Load() || seen.SessionName != d.Session() || len(seen.Serve.Applications) != 0 || seen.Err != nil {
			t.Errorf("after the head was replaced: %+v", seen)
		}
	})
}

func TestAHeadThatIsReplacedAllTheTimeGivesNoReport(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		w.traffic.afterEach(func(path string) {
			if path == servePath {
				d.Restart()
			}
		})
		w.Track(serveOn("c"))
		pass(10 * time.Second)
		if seen := w.see(t, cluster("c")); seen.Err == nil || seen.Serve != nil || !seen.Answered.IsZero() || seen.Failures < 2 {
			t.Errorf("seen %+v", seen)
		}
	})
}

func TestASilentServeIsNoSilentDashboard(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "RUNNING"}})
		d.DeployServe(oneApp)
		w.Track(serveOn("c"))
		w.Track(target("c", "j"))
		pass(10 * time.Second)
		w.notified()
		d.Inject(fakedashboard.ServeSilent(0))
		pass(30 * time.Second)
		seen := w.see(t, cluster("c"))
		if !errors.Is(seen.Err, dashboard.ErrServeSilent) || seen.Failures < 3 || len(seen.Serve.Applications) != 1 {
			t.Errorf("Serve: %+v", seen)
		}
		if seen := w.see(t, key("j")); seen.Err != nil || time.Since(seen.Answered) > 3*time.Second {
			t.Errorf("the job on the same dashboard: %+v", seen)
		}
		d.ClearFaults()
		pass(time.Minute)
		if seen := w.see(t, cluster("c")); seen.Err != nil {
			t.Errorf("Serve after its silence: %+v", seen)
		}
		if got := w.notified(); got != 2 {
			t.Errorf("told %d times, want 2: the silence and its end", got)
		}
	})
}

func TestServeOnADeadDashboardIsAnError(t *testing.T) {
	cases := map[string]string{
		"given the version cannot be had first": versionPath,
		"given the version cannot be had after": servePath,
	}
	for name, last := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
				d := w.dashboard("c")
				if last == versionPath {
					d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointVersion, Never: true})
				} else {
					w.traffic.afterEach(func(path string) {
						if path == last {
							d.Down()
						}
					})
				}
				w.Track(serveOn("c"))
				pass(20 * time.Second)
				if seen := w.see(t, cluster("c")); seen.Err == nil || seen.Serve != nil || seen.Failures < 2 {
					t.Errorf("seen %+v", seen)
				}
			})
		})
	}
}

func TestObservationsAreCopies(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		w.dashboard("c").DeployServe(oneApp)
		proxy := fakedashboard.NewProxyInProcess()
		proxy.SetTraffic(1, 1)
		w.network.AddProxy("10.0.0.1:8080", proxy)
		w.Track(serveOn("c"))
		w.Track(pod("PodTraffic", 8080, poll.AskTraffic))
		pass(time.Second)
		w.see(t, cluster("c")).Serve.Applications["a"].DeployedConfig["import_path"] = "changed"
		w.see(t, pod("PodTraffic", 8080, poll.AskTraffic).Owner).Traffic.Ongoing = 77
		if got := w.see(t, cluster("c")).Serve.Applications["a"].DeployedConfig["import_path"]; got != "m:a" {
			t.Errorf("the config has become %v", got)
		}
		if got := w.see(t, pod("PodTraffic", 8080, poll.AskTraffic).Owner).Traffic.Ongoing; got != 1 {
			t.Errorf("the traffic has become %v", got)
		}
	})
}

// pod is something to ask about the Pod at 10.0.0.1.
func pod(kind string, port int32, ask poll.Ask) poll.Target {
	name := types.NamespacedName{Namespace: "ns", Name: "pod"}
	return poll.Target{Owner: poll.Key{Kind: kind, NamespacedName: name}, BaseURL: dashboard.PodURL("10.0.0.1", port), Ask: ask}
}

func TestTheHealthOfAProxyIsFollowed(t *testing.T) {
	inWorld(t, poll.Options{Interval: 2 * time.Second, MaxBackoff: 4 * time.Second}, func(t *testing.T, w *world) {
		proxy := fakedashboard.NewProxyInProcess()
		proxy.SetHealthy(false)
		w.network.AddProxy("10.0.0.1:8000", proxy)
		ask := pod("Pod", 8000, poll.AskProxy)
		steps := []struct {
			name    string
			change  func()
			healthy bool
		}{
			{name: "not yet healthy", change: func() {}},
			{name: "healthy", change: func() { proxy.SetHealthy(true) }, healthy: true},
			{name: "being drained", change: func() { proxy.SetHealthy(false) }},
			{name: "gone", change: proxy.Down},
			{name: "healthy again", change: func() { proxy.Up(); proxy.SetHealthy(true) }, healthy: true},
		}
		w.Track(ask)
		for _, step := range steps {
			step.change()
			pass(10 * time.Second)
			seen := w.see(t, ask.Owner)
			if healthy := !seen.Answered.IsZero() && seen.Err == nil; healthy != step.healthy {
				t.Errorf("%s: %+v", step.name, seen)
			}
		}
		if got := w.notified(); got != 4 {
			t.Errorf("told %d times, want 4: not healthy, healthy, not healthy, healthy", got)
		}
	})
}

func TestQuietIsTimedFromTheFirstAnswerOfARow(t *testing.T) {
	inWorld(t, poll.Options{Interval: 2 * time.Second}, func(t *testing.T, w *world) {
		proxy := fakedashboard.NewProxyInProcess()
		w.network.AddProxy("10.0.0.1:8080", proxy)
		ask := pod("PodTraffic", 8080, poll.AskTraffic)
		quiet := func() time.Duration {
			since := w.see(t, ask.Owner).QuietSince
			if since.IsZero() {
				return 0
			}
			return time.Since(since)
		}
		began := time.Now()
		w.Track(ask)
		steps := []struct {
			name        string
			change      func()
			at          time.Duration
			least, most time.Duration
			told        int
		}{
			{name: "no numbers", change: func() {}, at: 11 * time.Second, least: 11 * time.Second, most: 11 * time.Second, told: 1},
			{name: "a request under way", change: func() { proxy.SetTraffic(1, 5) }, at: 21 * time.Second, told: 1},
			{name: "none", change: func() { proxy.SetTraffic(0, 6) }, at: 31 * time.Second, least: 8 * time.Second, most: 10 * time.Second, told: 1},
			{name: "a short one in between", change: func() { proxy.SetTraffic(0, 7) }, at: 37 * time.Second, least: 4 * time.Second, most: 6 * time.Second},
			{name: "no answer in between", change: proxy.Down, at: 51 * time.Second, least: 18 * time.Second, most: 20 * time.Second, told: 1},
			{name: "the same as before", change: proxy.Up, at: 91 * time.Second, least: 58 * time.Second, most: 60 * time.Second, told: 1},
			{name: "a new one", change: func() { proxy.SetTraffic(2, 7) }, at: 101 * time.Second, told: 1},
		}
		for _, step := range steps {
			step.change()
			pass(time.Until(began.Add(step.at)))
			if got := quiet(); got < step.least || got > step.most {
				t.Errorf("%s: quiet for %s, want %s to %s", step.name, got, step.least, step.most)
			}
			if got := w.notified(); got != step.told {
				t.Errorf("%s: told %d times, want %d", step.name, got, step.told)
			}
		}
	})
}
