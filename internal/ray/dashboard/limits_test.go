package dashboard_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestCallsAreBoundedInTime(t *testing.T) {
	cases := map[string]struct {
		options   []dashboard.Option
		wantRead  time.Duration
		wantWrite time.Duration
	}{
		"given no limits, then those that suit Ray are used": {wantRead: 5 * time.Second, wantWrite: 30 * time.Second},
		"given limits, then these are used": {
			options:  []dashboard.Option{dashboard.WithTimeouts(time.Second, time.Minute)},
			wantRead: time.Second, wantWrite: time.Minute,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, network := fakedashboard.NewInProcess(), fakedashboard.NewNetwork()
				network.Add("c:8265", fake)
				fake.Inject(fakedashboard.Fault{Never: true, TakesEffect: true})
				client := dashboard.New("http://c:8265", append(tc.options, dashboard.WithHTTPClient(network.Client()))...)

				began := time.Now()
				_, err := client.GetJob(t.Context(), "j1")
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != tc.wantRead {
					t.Errorf("GetJob took %s: %v", took, err)
				}
				began = time.Now()
				_, err = client.SubmitJob(t.Context(), dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "j1"})
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != tc.wantWrite {
					t.Errorf("SubmitJob took %s: %v", took, err)
				}
				if got := fake.Submissions("j1"); got != 1 {
					t.Errorf("the submission that timed out was accepted %d times, want 1", got)
				}
			})
		})
	}
}

func TestRedirectsCarryNoTokenAway(t *testing.T) {
	reached := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(elsewhere.Close)
	client := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	}, dashboard.WithToken(token("secret", nil)))

	if _, err := client.GetJob(t.Context(), "j1"); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	if reached {
		t.Error("the redirect was followed")
	}
}

func TestInvalidCallsAreNotSent(t *testing.T) {
	client := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	_, getErr := client.GetJob(t.Context(), "")
	_, stopErr := client.StopJob(t.Context(), "")
	_, submitErr := client.SubmitJob(t.Context(), dashboard.SubmitRequest{Entrypoint: "x"})
	for _, err := range []error{getErr, stopErr, submitErr, client.DeleteJob(t.Context(), "")} {
		if err == nil {
			t.Error("a call without an id succeeded")
		}
	}
}

func TestJobStatusesAreUnderstood(t *testing.T) {
	cases := map[dashboard.JobStatus]struct{ known, terminal bool }{
		dashboard.JobPending:   {known: true},
		dashboard.JobRunning:   {known: true},
		dashboard.JobStopped:   {known: true, terminal: true},
		dashboard.JobSucceeded: {known: true, terminal: true},
		dashboard.JobFailed:    {known: true, terminal: true},
		"PAUSED":               {},
		"":                     {},
	}
	for status, want := range cases {
		if status.Known() != want.known || status.Terminal() != want.terminal {
			t.Errorf("%q: known %v, terminal %v; want %+v", status, status.Known(), status.Terminal(), want)
		}
	}
}

func TestAWrongAddressIsAnError(t *testing.T) {
	for _, address := range []string{"", "http://[::1", "cluster:8265", "http://127.0.0.1:1"} {
		if err := dashboard.New(address).Healthy(t.Context()); err == nil {
			t.Errorf("calling %q succeeded", address)
		}
	}
}
