package fakedashboard_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// send calls the fake over a network and returns the code and the body of the answer.
func send(t *testing.T, network *fakedashboard.Network, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := network.Client().Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func status(t *testing.T, network *fakedashboard.Network, url string) string {
	t.Helper()
	_, body := send(t, network, http.MethodGet, url, "")
	var job struct{ Status string }
	if err := json.Unmarshal([]byte(body), &job); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return job.Status
}

func TestAnswersAreThoseOfRay(t *testing.T) {
	const base = "http://c:8265"
	cases := map[string]struct {
		method, path, body string
		wantCode           int
		wantBody           string
	}{
		"a submission answers with both names of the id":  {"POST", "/api/jobs/", `{"entrypoint":"x","submission_id":"new"}`, 200, `{"job_id":"new","submission_id":"new"}`},
		"a submission without an id is given one":         {"POST", "/api/jobs/", `{"entrypoint":"x"}`, 200, `raysubmit_`},
		"a taken id is refused":                           {"POST", "/api/jobs/", `{"entrypoint":"x","submission_id":"old"}`, 500, "Job with submission_id old already exists. Please use a different submission_id."},
		"an unknown key is refused":                       {"POST", "/api/jobs/", `{"entrypoint":"x","foo":1}`, 400, "Traceback"},
		"a key of a wrong type is refused":                {"POST", "/api/jobs/", `{"entrypoint":5}`, 400, "TypeError"},
		"a submission without an entrypoint is refused":   {"POST", "/api/jobs/", `{}`, 400, "entrypoint"},
		"a body that is no JSON is an inner error":        {"POST", "/api/jobs/", `x`, 500, "Server got itself in trouble"},
		"an unknown job is told with its id":              {"GET", "/api/jobs/no", "", 404, "Job no does not exist"},
		"an unknown job cannot be stopped":                {"POST", "/api/jobs/no/stop", "", 404, "Job no does not exist"},
		"a running job cannot be deleted":                 {"DELETE", "/api/jobs/old", "", 500, "non-terminal state RUNNING"},
		"a running job can be stopped":                    {"POST", "/api/jobs/old/stop", "", 200, `{"stopped":true}`},
		"the list has the job":                            {"GET", "/api/jobs/", "", 200, `"submission_id":"old"`},
		"the logs are there":                              {"GET", "/api/jobs/old/logs", "", 200, `{"logs":`},
		"a path that Ray does not know is not a lost job": {"GET", "/api/nothing", "", 404, "404: Not Found"},
		"the list without its last slash is not found":    {"GET", "/api/jobs", "", 404, "404: Not Found"},
		"the health is told":                              {"GET", "/api/gcs_healthz", "", 200, "success"},
		"the version names the session":                   {"GET", "/api/version", "", 200, `"session_name":"session_`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, d := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
			network.Add("c:8265", d)
			d.PutJob(fakedashboard.Job{SubmissionID: "old", Step: fakedashboard.Step{Status: "RUNNING"}})
			code, body := send(t, network, tc.method, base+tc.path, tc.body)
			if code != tc.wantCode || !strings.Contains(body, tc.wantBody) {
				t.Errorf("%s %s = %d %s, want %d with %q", tc.method, tc.path, code, body, tc.wantCode, tc.wantBody)
			}
		})
	}
}

func TestAHeadIsReplaced(t *testing.T) {
	cases := map[string]struct {
		replace     func(*fakedashboard.Dashboard)
		wantSession bool
		wantJobs    int
	}{
		"given no fault tolerance, then session and jobs are lost": {replace: (*fakedashboard.Dashboard).Restart},
		"given fault tolerance, then session and records stay": {
			replace: (*fakedashboard.Dashboard).RestartWithFaultTolerance, wantSession: true, wantJobs: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := fakedashboard.NewInProcess()
			d.PutJob(fakedashboard.Job{SubmissionID: "runs", Step: fakedashboard.Step{Status: "RUNNING"}})
			d.PutJob(fakedashboard.Job{SubmissionID: "ended", Step: fakedashboard.Step{Status: "SUCCEEDED"}})
			before := d.Session()
			tc.replace(d)
			if same := d.Session() == before; same != tc.wantSession || len(d.JobIDs()) != tc.wantJobs {
				t.Errorf("session kept: %v, jobs: %v", same, d.JobIDs())
			}
			if job, ok := d.Job("runs"); ok && job.Step.Status != "FAILED" {
				t.Errorf("the job that ran is %s", job.Step.Status)
			}
			if job, ok := d.Job("ended"); ok && job.Step.Status != "SUCCEEDED" {
				t.Errorf("the job that had ended is %s", job.Step.Status)
			}
		})
	}
}

func TestJobsFollowTheirScripts(t *testing.T) {
	network, d := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
	network.Add("c:8265", d)
	d.SetDefaultScript(fakedashboard.Step{Status: "PENDING", Reads: 2}, fakedashboard.Step{Status: "FAILED"})
	send(t, network, http.MethodPost, "http://c:8265/api/jobs/", `{"entrypoint":"x","submission_id":"j"}`)
	for _, want := range []string{"PENDING", "PENDING", "FAILED", "FAILED"} {
		if got := status(t, network, "http://c:8265/api/jobs/j"); got != want {
			t.Errorf("status = %s, want %s", got, want)
		}
	}
	d.SetStep("j", fakedashboard.Step{Status: "STOPPED"})
	if got := status(t, network, "http://c:8265/api/jobs/j"); got != "STOPPED" {
		t.Errorf("status = %s, want the step that was set", got)
	}
	if d.Submissions("j") != 1 || d.Attempts("j") != 1 || d.Requests(fakedashboard.EndpointGet) != 5 {
		t.Errorf("%d submissions, %d attempts, %d reads", d.Submissions("j"), d.Attempts("j"), d.Requests(fakedashboard.EndpointGet))
	}
}

func TestAJobMayTakeItsTimeToStop(t *testing.T) {
	network, d := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
	network.Add("c:8265", d)
	d.PutJob(fakedashboard.Job{SubmissionID: "j", Step: fakedashboard.Step{Status: "RUNNING"}})
	d.SetStopScript(fakedashboard.Step{Status: "RUNNING", Reads: 2}, fakedashboard.Step{Status: "SUCCEEDED"})
	if code, _ := send(t, network, http.MethodPost, "http://c:8265/api/jobs/j/stop", ""); code != http.StatusOK {
		t.Errorf("stop = %d", code)
	}
	for _, want := range []string{"RUNNING", "RUNNING", "SUCCEEDED", "SUCCEEDED"} {
		if got := status(t, network, "http://c:8265/api/jobs/j"); got != want {
			t.Errorf("status = %s, want %s", got, want)
		}
	}
}

func TestFaultsHitWhatTheyName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, d := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
		network.Add("c:8265", d)
		d.PutJob(fakedashboard.Job{SubmissionID: "a", Step: fakedashboard.Step{Status: "RUNNING"}})
		d.PutJob(fakedashboard.Job{SubmissionID: "b", Step: fakedashboard.Step{Status: "RUNNING"}})
		d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointGet, JobID: "a", Times: 2, Code: 503, Body: "busy"})
		d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointSubmit, TakesEffect: true, Delay: time.Minute, Code: 504})

		began := time.Now()
		for i, want := range []int{200, 503, 503, 200} {
			id := "a"
			if i == 0 {
				id = "b"
			}
			if got, _ := send(t, network, http.MethodGet, "http://c:8265/api/jobs/"+id, ""); got != want {
				t.Errorf("read %d = %d, want %d", i, got, want)
			}
		}
		code, _ := send(t, network, http.MethodPost, "http://c:8265/api/jobs/", `{"entrypoint":"x","submission_id":"j"}`)
		if code != 504 || time.Since(began) != time.Minute || d.Submissions("j") != 1 {
			t.Errorf("code %d after %s, %d submissions", code, time.Since(began), d.Submissions("j"))
		}
		d.ClearFaults()
		if code, _ := send(t, network, http.MethodDelete, "http://c:8265/api/jobs/none", ""); code != 404 {
			t.Errorf("code %d after the faults were cleared", code)
		}
	})
}

func TestTheNetworkFindsDashboardsByHost(t *testing.T) {
	network := fakedashboard.NewNetwork()
	if _, failure := send(t, network, http.MethodGet, "http://c:8265/api/version", ""); !strings.Contains(failure, "no such host") {
		t.Errorf("an unknown host: %s", failure)
	}
	network.OnUnknown(func(host string) *fakedashboard.Dashboard {
		if host != "c:8265" {
			return nil
		}
		return fakedashboard.NewInProcess()
	})
	for range 2 {
		if code, _ := send(t, network, http.MethodGet, "http://c:8265/api/version", ""); code != 200 {
			t.Errorf("a supplied host answers %d", code)
		}
	}
	d := network.Dashboard("c:8265")
	if d.Requests(fakedashboard.EndpointVersion) != 2 {
		t.Error("the host was supplied more than once")
	}
	d.Down()
	if _, failure := send(t, network, http.MethodGet, "http://c:8265/api/version", ""); !strings.Contains(failure, "connection refused") {
		t.Errorf("a host that is down: %s", failure)
	}
	d.Up()
	network.Remove("c:8265")
	if code, _ := send(t, network, http.MethodGet, "http://c:8265/api/version", ""); code != 200 || network.Dashboard("c:8265") == d {
		t.Errorf("a removed host was not supplied anew: %d", code)
	}
}
