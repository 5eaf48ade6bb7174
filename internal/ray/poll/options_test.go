package poll_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestAnObservationIsACopy(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		w.dashboard("c").PutJob(fakedashboard.Job{SubmissionID: "j", Metadata: map[string]string{"k": "v"}, Step: fakedashboard.Step{Status: "RUNNING"}})
		w.Track(target("c", "j"))
		pass(0)
		mine := w.see(t, key("j"))
		mine.Job.Status = "CHANGED"
		mine.Job.Metadata["k"] = "changed"
		if theirs := w.see(t, key("j")); theirs.Job.Status != dashboard.JobRunning || theirs.Job.Metadata["k"] != "v" {
			t.Errorf("the change of a copy is seen by others: %+v", theirs.Job)
		}
	})
}

func TestAClockMovedByHandIsFollowed(t *testing.T) {
	hands := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	inWorld(t, poll.Options{Clock: hands}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		w.Track(target("c", "j"))
		synctest.Wait()
		for want := 1; want < 5; want++ {
			if got := d.Requests(fakedashboard.EndpointGet); got != want {
				t.Fatalf("asked %d times, want %d", got, want)
			}
			hands.Step(2999 * time.Millisecond)
			synctest.Wait()
			if got := d.Requests(fakedashboard.EndpointGet); got != want {
				t.Fatalf("asked %d times before it was due, want %d", got, want)
			}
			hands.Step(time.Millisecond)
			synctest.Wait()
		}
		if seen := w.see(t, key("j")); !seen.Asked.Equal(hands.Now()) {
			t.Errorf("asked at %s, want %s", seen.Asked, hands.Now())
		}
	})
}

func TestRetriesFollowTheRandomSource(t *testing.T) {
	times := func(seed uint64) (out []time.Duration) {
		inWorld(t, poll.Options{Random: rand.NewPCG(seed, 0)}, func(_ *testing.T, w *world) {
			w.dashboard("c").Down()
			began := time.Now()
			w.Track(target("c", "j"))
			pass(2 * time.Minute)
			for _, at := range w.traffic.times("c:8265", "/api/jobs/j") {
				out = append(out, at.Sub(began))
			}
		})
		return out
	}
	if diff := cmp.Diff(times(1), times(1)); diff != "" {
		t.Errorf("the same source gave other times:\n%s", diff)
	}
	if cmp.Equal(times(1), times(2)) {
		t.Error("another source gave the same times")
	}
}

func TestMetricsCountEveryResult(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	inWorld(t, poll.Options{Registerer: registry}, func(t *testing.T, w *world) {
		w.dashboard("answered").PutJob(fakedashboard.Job{SubmissionID: "answered", Step: fakedashboard.Step{Status: "RUNNING"}})
		w.dashboard("missing")
		w.dashboard("timeout").Inject(fakedashboard.Fault{Never: true})
		w.dashboard("unreachable").Down()
		w.dashboard("unauthorized").RequireToken("secret")
		w.dashboard("unexpected").Inject(fakedashboard.Fault{Code: 200, Body: "<html>"})
		results := []string{"answered", "missing", "timeout", "unreachable", "unauthorized", "unexpected"}
		for _, result := range results {
			w.Track(target(result, result))
		}
		w.Track(target("gone", "gone"))
		w.Forget(key("gone"))
		pass(5*time.Second + time.Millisecond)

		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				name := family.GetName()
				for _, label := range m.GetLabel() {
					name += "/" + label.GetValue()
				}
				got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		if got["heliostat_dashboard_targets"] != 6 {
			t.Errorf("%v targets, want 6", got["heliostat_dashboard_targets"])
		}
		var sum float64
		for _, result := range results {
			count := got["heliostat_dashboard_poll_total/"+result]
			sum += count
			if count == 0 {
				t.Errorf("result %q was not counted", result)
			}
		}
		if got["heliostat_dashboard_poll_duration_seconds"] != sum {
			t.Errorf("%v durations for %v results", got["heliostat_dashboard_poll_duration_seconds"], sum)
		}
	})
}

func TestNothingIsKnownBeforeTheStart(t *testing.T) {
	poller := poll.New(poll.Options{})
	poller.Track(target("c", "j"))
	poller.Refresh(key("j"))
	seen, ok := poller.Observation(key("j"))
	if diff := cmp.Diff(poll.Observation{Target: target("c", "j")}, seen); !ok || diff != "" {
		t.Errorf("observation (-want +got), %v:\n%s", ok, diff)
	}
	poller.Forget(key("j"))
	if _, ok := poller.Observation(key("j")); ok {
		t.Error("a forgotten target is still there")
	}
}

func TestStartRefusesWhatCannotWork(t *testing.T) {
	registry := prometheus.NewRegistry()
	ended, stop := context.WithCancel(t.Context())
	stop()
	first := poll.New(poll.Options{Registerer: registry})
	if err := first.Start(ended); err != nil {
		t.Fatal(err)
	}
	if err := first.Start(ended); err == nil {
		t.Error("a poller was started twice")
	}
	if err := poll.New(poll.Options{Registerer: registry}).Start(ended); err == nil {
		t.Error("the same metrics were registered twice")
	}
	if first.NeedLeaderElection() {
		t.Error("a standby replica would observe nothing")
	}
}

func TestAnythingMayBeCalledAtAnyTime(t *testing.T) {
	inWorld(t, poll.Options{Concurrency: 4}, func(t *testing.T, w *world) {
		for i := range 10 {
			d := w.dashboard(fmt.Sprintf("c%d", i))
			switch i % 3 {
			case 1:
				d.Inject(fakedashboard.Fault{Never: true})
			case 2:
				d.Inject(fakedashboard.Fault{Delay: 50 * time.Millisecond})
			}
		}
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(caller), 7))
				for range 2000 {
					owner := fmt.Sprintf("j%d", random.IntN(30))
					switch random.IntN(6) {
					case 0, 1:
						w.Track(target(fmt.Sprintf("c%d", random.IntN(10)), owner))
					case 2:
						w.Forget(key(owner))
					case 3:
						w.Refresh(key(owner))
					case 4:
						w.Observation(key(owner))
					case 5:
						<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
					}
				}
			})
		}
		callers.Wait()
		if w.traffic.most > 4 || w.traffic.mostOne > 1 {
			t.Errorf("%d requests at the same time, %d to one dashboard", w.traffic.most, w.traffic.mostOne)
		}
		for i := range 30 {
			w.Track(target("c0", fmt.Sprintf("j%d", i)))
		}
		pass(3 * time.Second)
		for i := range 30 {
			if seen := w.see(t, key(fmt.Sprintf("j%d", i))); time.Since(seen.Answered) > 4*time.Second {
				t.Errorf("after the storm j%d is not asked for: %+v", i, seen)
			}
		}
	})
}

func TestARealConnectionInRealTime(t *testing.T) {
	d := fakedashboard.New(t)
	succeeded := make(chan struct{})
	var poller *poll.Poller
	poller = poll.New(poll.Options{Interval: 5 * time.Millisecond, HTTPClient: dashboard.NewHTTPClient(), Notify: func(owner poll.Key) {
		if seen, _ := poller.Observation(owner); seen.Job != nil && seen.Job.Status == dashboard.JobSucceeded {
			close(succeeded)
		}
	}})
	d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "PENDING"}})
	d.Script("j", fakedashboard.Steps("PENDING", "RUNNING", "SUCCEEDED")...)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- poller.Start(ctx) }()
	poller.Track(poll.Target{Owner: key("j"), BaseURL: d.URL(), SubmissionID: "j"})
	select {
	case <-succeeded:
	case <-time.After(time.Minute):
		seen, _ := poller.Observation(key("j"))
		t.Errorf("the job was not seen to succeed: %+v", seen)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
