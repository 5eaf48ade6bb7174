package poll_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestAJobIsFollowedToItsEndAndOnlyChangesAreTold(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "PENDING"}})
		d.Script("j", fakedashboard.Step{Status: "PENDING", Reads: 4}, fakedashboard.Step{Status: "RUNNING", Reads: 6}, fakedashboard.Step{Status: "SUCCEEDED"})
		began := time.Now()
		w.Track(target("c", "j"))
		pass(0)
		seen := w.see(t, key("j"))
		if seen.JobFound != poll.Found || seen.Job.Status != dashboard.JobPending || !seen.Answered.Equal(began) ||
			seen.SessionName != d.Session() || seen.RayVersion != "2.52.0" || seen.Err != nil {
			t.Errorf("after the first answer: %+v", seen)
		}
		pass(time.Minute)
		if seen := w.see(t, key("j")); seen.Job.Status != dashboard.JobSucceeded || time.Since(seen.Answered) > 3*time.Second {
			t.Errorf("at the end: %+v", seen)
		}
		if got := w.notified(); got != 3 {
			t.Errorf("told %d times, want 3: PENDING, RUNNING, SUCCEEDED", got)
		}
		if got := d.Requests(fakedashboard.EndpointGet); got != 21 {
			t.Errorf("asked %d times in a minute, want 21", got)
		}
		if got := d.Requests(fakedashboard.EndpointVersion); got != 3 {
			t.Errorf("asked %d times for the version in 21 visits, want 3", got)
		}
	})
}

func TestASubmissionIsSeenAtOnceAfterARefresh(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		w.Track(target("c", "j"))
		pass(time.Second)
		if seen := w.see(t, key("j")); seen.JobFound != poll.Missing || seen.Job != nil || seen.SessionName != d.Session() {
			t.Errorf("before the submission: %+v", seen)
		}
		client := dashboard.New(target("c", "j").BaseURL, dashboard.WithHTTPClient(w.network.Client()))
		if _, err := client.SubmitJob(t.Context(), dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "j"}); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			w.Refresh(key("j"))
		}
		pass(0)
		if seen := w.see(t, key("j")); seen.JobFound != poll.Found {
			t.Errorf("after the refresh: %+v", seen)
		}
		if got := d.Requests(fakedashboard.EndpointGet); got != 2 {
			t.Errorf("asked %d times, want 2: calls in quick succession are joined", got)
		}
		w.Refresh(poll.Key{Kind: "RayJob"})
	})
}

func TestARefreshDuringARequestLeadsToAnother(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointGet, TakesEffect: true, Delay: time.Second, Times: 1})
		w.Track(target("c", "j"))
		pass(500 * time.Millisecond)
		d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "RUNNING"}})
		w.Refresh(key("j"))
		pass(600 * time.Millisecond)
		if seen := w.see(t, key("j")); seen.JobFound != poll.Found {
			t.Errorf("the answer is the one from before the change: %+v", seen)
		}
	})
}

func TestARestartedHeadIsNoticed(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "RUNNING"}})
		w.Track(target("c", "j"))
		w.Track(poll.Target{Owner: poll.Key{Kind: "RayCluster"}, BaseURL: dashboard.URL("c", 8265)})
		pass(10 * time.Second)
		before := w.see(t, key("j"))
		w.notified()

		d.Restart()
		pass(4 * time.Second)
		after := w.see(t, key("j"))
		if after.JobFound != poll.Missing || after.SessionName == before.SessionName || after.SessionName != d.Session() {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
		if seen := w.see(t, poll.Key{Kind: "RayCluster"}); seen.SessionName != d.Session() || seen.JobFound != poll.Unknown {
			t.Errorf("a target without a job: %+v", seen)
		}
		if got := w.notified(); got != 2 {
			t.Errorf("told %d times, want each owner once", got)
		}
	})
}

func TestSilenceIsToldWhenItBeginsAndWhenItEnds(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "RUNNING"}})
		w.Track(target("c", "j"))
		pass(time.Second)
		w.notified()
		d.Down()
		down := time.Now()
		pass(5 * time.Minute)

		seen := w.see(t, key("j"))
		if seen.Err == nil || seen.Failures < 8 || seen.Failures > 30 || seen.FailingSince.Sub(down) > 3*time.Second || time.Since(seen.Asked) > 31*time.Second {
			t.Errorf("during the silence: %+v", seen)
		}
		if seen.JobFound != poll.Found || seen.Job.Status != dashboard.JobRunning || seen.Answered.After(down) {
			t.Errorf("what Ray last said was not kept: %+v", seen)
		}
		gaps := w.traffic.times("c:8265", "/api/jobs/j")
		if last := gaps[len(gaps)-1].Sub(gaps[len(gaps)-2]); last < 15*time.Second || longestGap(gaps) > 30*time.Second {
			t.Errorf("a silent dashboard is asked after %s, and %s at most", last, longestGap(gaps))
		}
		if got := w.notified(); got != 1 {
			t.Errorf("told %d times of the silence, want 1", got)
		}
		d.Up()
		w.Refresh(key("j"))
		pass(250 * time.Millisecond)
		if seen := w.see(t, key("j")); seen.Err != nil || seen.Failures != 0 || !seen.FailingSince.IsZero() || time.Since(seen.Answered) > 250*time.Millisecond {
			t.Errorf("after the silence: %+v", seen)
		}
		if got := w.notified(); got != 1 {
			t.Errorf("told %d times of the end of the silence, want 1", got)
		}
	})
}

func TestDeadDashboardsDelayNoOthers(t *testing.T) {
	faults := map[string]fakedashboard.Fault{
		"given they never answer": {Never: true},
		"given they answer late":  {Delay: 4500 * time.Millisecond},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			inWorld(t, poll.Options{Concurrency: 8}, func(t *testing.T, w *world) {
				var live []string
				for i := range 20 {
					live = append(live, fmt.Sprintf("live-%d", i))
					w.dashboard(live[i])
					w.Track(target(live[i], live[i]))
				}
				pass(time.Second)
				for i := range 100 {
					dead := fmt.Sprintf("dead-%d", i)
					w.dashboard(dead).Inject(fault)
					w.Track(target(dead, dead))
				}
				pass(4 * time.Minute)
				for _, l := range live {
					times := w.traffic.times(l+":8265", "/api/jobs/"+l)
					if longestGap(times) > 3100*time.Millisecond || len(times) < 76 {
						t.Errorf("%s was asked %d times, with a gap of %s", l, len(times), longestGap(times))
					}
				}
				newcomer := w.dashboard("new")
				w.Track(target("new", "new"))
				pass(0)
				if got := newcomer.Requests(fakedashboard.EndpointGet); got != 1 {
					t.Errorf("a new dashboard was asked %d times, want at once", got)
				}
			})
		})
	}
}

func TestTheNumberOfRequestsIsBounded(t *testing.T) {
	inWorld(t, poll.Options{Concurrency: 8}, func(t *testing.T, w *world) {
		for i := range 60 {
			d := w.dashboard(fmt.Sprintf("c%d", i))
			d.Inject(fakedashboard.Fault{Delay: 100 * time.Millisecond})
			for j := range 3 {
				w.Track(target(fmt.Sprintf("c%d", i), fmt.Sprintf("j%d-%d", i, j)))
			}
		}
		pass(time.Minute)
		if w.traffic.most != 8 || w.traffic.mostOne != 1 {
			t.Errorf("%d requests at the same time, want 8; %d to one dashboard, want 1", w.traffic.most, w.traffic.mostOne)
		}
	})
}

func TestAllTargetsOfADashboardLearnOfItsSilenceTogether(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		w.dashboard("c").Inject(fakedashboard.Fault{Never: true})
		for i := range 50 {
			w.Track(target("c", fmt.Sprintf("j%d", i)))
		}
		pass(5 * time.Second)
		for i := range 50 {
			if seen := w.see(t, key(fmt.Sprintf("j%d", i))); seen.Err == nil || seen.Failures != 1 {
				t.Errorf("job %d: %+v", i, seen)
			} else if got, want := seen.Err.Error(), "asking Ray at http://c:8265: no answer within 5s: context deadline exceeded"; got != want {
				t.Errorf("job %d: %q, want %q", i, got, want)
			}
		}
	})
}

func TestOneBrokenJobDoesNotTouchTheOthersOfItsDashboard(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointGet, JobID: "bad", Code: 500, Body: "boom"})
		w.Track(target("c", "bad"))
		w.Track(target("c", "good"))
		pass(5 * time.Minute)
		if seen := w.see(t, key("bad")); seen.Err == nil || seen.JobFound != poll.Unknown {
			t.Errorf("the broken job: %+v", seen)
		}
		times := w.traffic.times("c:8265", "/api/jobs/good")
		if seen := w.see(t, key("good")); seen.Err != nil || len(times) < 98 || longestGap(times) > 3*time.Second {
			t.Errorf("the other job was asked for %d times, with a gap of %s: %+v", len(times), longestGap(times), seen)
		}
		if bad := w.traffic.times("c:8265", "/api/jobs/bad"); len(bad) > 25 {
			t.Errorf("the broken job was asked for %d times in five minutes", len(bad))
		}
	})
}

func TestAMissingJobCountsOnlyTogetherWithItsSession(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointVersion, Code: 503})
		d.PutJob(fakedashboard.Job{SubmissionID: "there", Step: fakedashboard.Step{Status: "SUCCEEDED"}})
		w.Track(target("c", "missing"))
		w.Track(target("c", "there"))
		pass(time.Second)
		if seen := w.see(t, key("missing")); seen.JobFound != poll.Unknown || seen.Err == nil {
			t.Errorf("the missing job: %+v", seen)
		}
		if seen := w.see(t, key("there")); seen.JobFound != poll.Found || seen.Err != nil {
			t.Errorf("the job that is there: %+v", seen)
		}
	})
}

func TestAChangedTargetBeginsAnew(t *testing.T) {
	changes := map[string]func(*poll.Target){
		"given another dashboard":  func(t *poll.Target) { t.BaseURL = dashboard.URL("other", 8265) },
		"given another job":        func(t *poll.Target) { t.SubmissionID = "k" },
		"given another owner's id": func(t *poll.Target) { t.OwnerUID = "uid-2" },
		"given another token":      func(t *poll.Target) { t.Secret = "secret" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
				hanging := w.dashboard("c")
				w.dashboard("other")
				before := target("c", "j")
				w.Track(before)
				pass(time.Second)
				hanging.Inject(fakedashboard.Fault{Never: true, Times: 1})
				pass(3 * time.Second)
				w.Track(before)

				after, changed := before, time.Now()
				change(&after)
				w.Track(after)
				if seen := w.see(t, key("j")); seen.Target != after || !seen.Asked.IsZero() && seen.Asked.Before(changed) {
					t.Errorf("the observation was not dropped: %+v", seen)
				}
				pass(0)
				if seen := w.see(t, key("j")); !seen.Answered.Equal(changed) || seen.Failures != 0 {
					t.Errorf("the changed target was not asked for at once: %+v", seen)
				}
			})
		})
	}
}

func TestAForgottenTargetIsLeftAlone(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.Inject(fakedashboard.Fault{Never: true})
		w.Track(target("c", "j"))
		w.Track(target("c", "k"))
		pass(time.Second)
		w.Forget(key("j"))
		w.Forget(key("k"))
		w.Forget(key("never seen"))
		pass(10 * time.Minute)
		if _, ok := w.Observation(key("j")); ok {
			t.Error("an observation is left")
		}
		if got := d.Requests(fakedashboard.EndpointGet); got != 1 || w.traffic.total != 0 {
			t.Errorf("%d requests were sent, %d of them still run", got, w.traffic.total)
		}
		if got := w.notified(); got != 0 {
			t.Errorf("told %d times", got)
		}
	})
}

func TestAWrongTokenIsTold(t *testing.T) {
	inWorld(t, poll.Options{}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		d.Inject(fakedashboard.Fault{Code: 503, Times: 2})
		d.RequireToken("secret")
		w.Track(target("c", "j"))
		pass(30 * time.Second)
		if got := w.notified(); got != 2 {
			t.Errorf("told %d times, want 2: of the error, and that it is about the token", got)
		}
		want := "asking Ray at http://c:8265: Ray refused the authentication token (401 Unauthorized: Unauthorized: Missing authentication token)"
		if got := w.see(t, key("j")).Err; got == nil || got.Error() != want {
			t.Errorf("error is %q, want %q", got, want)
		}
		right := target("c", "j")
		right.Secret = "secret"
		w.Track(right)
		pass(0)
		if seen := w.see(t, key("j")); seen.Err != nil || seen.JobFound != poll.Missing {
			t.Errorf("with the token: %+v", seen)
		}
	})
}
