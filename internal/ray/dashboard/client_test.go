package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering returns a client of a server that gives this one answer.
func answering(t *testing.T, code int, body string) *dashboard.Client {
	t.Helper()
	return serving(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
}

func serving(t *testing.T, handler http.HandlerFunc, options ...dashboard.Option) *dashboard.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return dashboard.New(server.URL, append([]dashboard.Option{dashboard.WithHTTPClient(server.Client())}, options...)...)
}

func ptr[T any](value T) *T { return &value }

func TestURL(t *testing.T) {
	cases := map[string]struct {
		host string
		port int32
		want string
	}{
		"a Service name is used as it is":    {host: "demo-head-svc.ns.svc.cluster.local", port: 8265, want: "http://demo-head-svc.ns.svc.cluster.local:8265"},
		"an IPv6 address is put in brackets": {host: "fd00::1", port: 80, want: "http://[fd00::1]:80"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dashboard.URL(tc.host, tc.port); got != tc.want {
				t.Errorf("URL = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestGetJobBelievesOnlyWhatRaySays(t *testing.T) {
	cases := map[string]struct {
		code int
		body string
		want error
	}{
		"given Ray does not know the job, then it is not found":                  {404, "Job j1 does not exist", dashboard.ErrNotFound},
		"given the API server answers 404, then the job is not called unknown":   {404, `{"kind":"Status","status":"Failure","code":404}`, dashboard.ErrNotRay},
		"given it does so in words like Ray's, then neither":                     {404, `{"kind":"Status","message":"Job j1 does not exist"}`, dashboard.ErrNotRay},
		"given it answers 403, then the token is not called wrong":               {403, `{"kind":"Status","message":"services is forbidden"}`, dashboard.ErrNotRay},
		"given it answers with success, then that is not taken for a job":        {200, `{"kind":"Status","status":"Success"}`, dashboard.ErrUnexpectedAnswer},
		"given a page that does not exist, then the job is not called unknown":   {404, "The page does not exist", nil},
		"given a web server answers 404, then the job is not called unknown":     {404, "404: Not Found", nil},
		"given an error with a JSON body, then it is not taken for a job":        {503, `{"submission_id":"j1","status":"Failure"}`, nil},
		"given the token is missing, then that is said":                          {401, "Unauthorized: Missing authentication token", dashboard.ErrUnauthorized},
		"given the token is wrong, then that is said":                            {403, "Forbidden: Invalid authentication token", dashboard.ErrUnauthorized},
		"given a success that is no JSON, then the answer is unexpected":         {200, "<html>welcome</html>", dashboard.ErrUnexpectedAnswer},
		"given a success about another job, then the answer is unexpected":       {200, `{"submission_id":"j2","status":"RUNNING"}`, dashboard.ErrUnexpectedAnswer},
		"given a success without a status, then the answer is unexpected":        {200, `{"submission_id":"j1"}`, dashboard.ErrUnexpectedAnswer},
		"given a success with a status that Ray has not, then it is unexpected":  {200, `{"submission_id":"j1","status":"Failure"}`, dashboard.ErrUnexpectedAnswer},
		"given a success with a status of a wrong type, then it is unexpected":   {200, `{"submission_id":"j1","status":{}}`, dashboard.ErrUnexpectedAnswer},
		"given an answer without end, then only a bounded part of it is read":    {200, strings.Repeat(" ", 2<<20), dashboard.ErrUnexpectedAnswer},
		"given a redirect, then it is an error and not followed":                 {302, "", nil},
		"given an informational code that ends the answer, then it is a failure": {304, "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job, err := answering(t, tc.code, tc.body).GetJob(t.Context(), "j1")
			if err == nil {
				t.Fatalf("GetJob returned %+v, want an error", job)
			}
			for _, known := range []error{dashboard.ErrNotFound, dashboard.ErrUnauthorized, dashboard.ErrUnexpectedAnswer, dashboard.ErrNotRay} {
				if got, want := errors.Is(err, known), tc.want == known; got != want {
					t.Errorf("errors.Is(%q, %q) = %v, want %v", err, known, got, want)
				}
			}
		})
	}
}

func TestGetJobReadsWhatRayTells(t *testing.T) {
	start := time.UnixMilli(1795973720091).UTC()
	cases := map[string]struct {
		body string
		want *dashboard.JobDetails
	}{
		"a job that has just been taken has nulls for what it lacks": {
			body: `{"type":"SUBMISSION","job_id":null,"submission_id":"j1","driver_info":null,"status":"PENDING","entrypoint":"x",
				"message":"Job has not started yet.","error_type":null,"start_time":1795973720091,"end_time":null,"metadata":null,
				"runtime_env":null,"driver_agent_http_address":null,"driver_node_id":null,"driver_exit_code":null}`,
			want: &dashboard.JobDetails{Type: dashboard.JobTypeSubmission, SubmissionID: "j1", Status: dashboard.JobPending,
				Entrypoint: "x", Message: "Job has not started yet.", StartTime: start},
		},
		"a failed job has an end, a reason and an exit code": {
			body: `{"type":"SUBMISSION","job_id":"02000000","submission_id":"j1","status":"FAILED","error_type":"JOB_ENTRYPOINT_COMMAND_ERROR",
				"driver_info":{"id":"02000000","node_ip_address":"10.0.0.1","pid":"77"},"start_time":1795973720091,"end_time":1795973724275,
				"metadata":{"k":"v"},"driver_node_id":"c9aa","driver_exit_code":3}`,
			want: &dashboard.JobDetails{Type: dashboard.JobTypeSubmission, JobID: "02000000", SubmissionID: "j1", Status: dashboard.JobFailed,
				ErrorType: dashboard.ErrorEntrypointCommand, StartTime: start, EndTime: start.Add(4184 * time.Millisecond),
				Metadata: map[string]string{"k": "v"}, DriverExitCode: ptr(int32(3)), DriverNodeID: "c9aa", DriverNodeIP: "10.0.0.1", DriverPID: "77"},
		},
		"words and fields of a later Ray are kept as text or left out": {
			body: `{"type":"BATCH","submission_id":"j1","status":"RUNNING","error_type":"NEW","attempt":{"n":1},"metadata":{"n":5}}`,
			want: &dashboard.JobDetails{Type: "BATCH", SubmissionID: "j1", Status: "RUNNING", ErrorType: "NEW", Metadata: map[string]string{"n": "5"}},
		},
		"a job is recognised by its inner id as well": {
			body: `{"type":"DRIVER","job_id":"j1","submission_id":null,"status":"RUNNING"}`,
			want: &dashboard.JobDetails{Type: dashboard.JobTypeDriver, JobID: "j1", Status: dashboard.JobRunning},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := answering(t, 200, tc.body).GetJob(t.Context(), "j1")
			if err != nil {
				t.Fatalf("GetJob failed: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("GetJob (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, got.Clone()); diff != "" {
				t.Errorf("Clone differs (-original +clone):\n%s", diff)
			}
		})
	}
}

func TestSubmitJobSendsOnlyWhatIsSet(t *testing.T) {
	cases := map[string]struct {
		request dashboard.SubmitRequest
		want    string
	}{
		"given only what is required, then nothing else is sent": {
			request: dashboard.SubmitRequest{Entrypoint: "python a.py && echo \"$X\"", SubmissionID: "j1"},
			want:    `{"entrypoint":"python a.py \u0026\u0026 echo \"$X\"","submission_id":"j1"}`,
		},
		"given everything, then zero counts are sent as well": {
			request: dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "j1", RuntimeEnv: map[string]any{"pip": []any{"a"}},
				Metadata: map[string]string{"k": "v"}, EntrypointNumCPUs: ptr(0.0), EntrypointNumGPUs: ptr(0.5),
				EntrypointMemory: ptr(int64(1 << 40)), EntrypointResources: map[string]float64{"a": 1}},
			want: `{"entrypoint":"x","submission_id":"j1","runtime_env":{"pip":["a"]},"metadata":{"k":"v"},"entrypoint_num_cpus":0,
				"entrypoint_num_gpus":0.5,"entrypoint_memory":1099511627776,"entrypoint_resources":{"a":1}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var body []byte
			var header http.Header
			client := serving(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ = io.ReadAll(r.Body)
				header = r.Header
				_, _ = io.WriteString(w, `{"job_id":"j1","submission_id":"j1"}`)
			}, dashboard.WithToken(token("secret", nil)))

			id, err := client.SubmitJob(t.Context(), tc.request)
			if err != nil || id != "j1" {
				t.Fatalf("SubmitJob = %q, %v", id, err)
			}
			if diff := cmp.Diff(parsed(t, tc.want), parsed(t, string(body))); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if got := header.Get("x-ray-authorization"); got != "Bearer secret" {
				t.Errorf("x-ray-authorization = %q", got)
			}
			for _, unwanted := range []string{"Authorization", "Origin", "Referer"} {
				if header.Get(unwanted) != "" {
					t.Errorf("header %s was sent", unwanted)
				}
			}
		})
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

func TestSubmitJobTellsFailuresApart(t *testing.T) {
	request := dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "j1"}
	cases := map[string]struct {
		prepare func(*fakedashboard.Dashboard)
		want    error
	}{
		"given the id is taken, then it already exists": {
			prepare: func(d *fakedashboard.Dashboard) {
				d.PutJob(fakedashboard.Job{SubmissionID: "j1", Step: fakedashboard.Step{Status: "RUNNING"}})
			},
			want: dashboard.ErrAlreadyExists,
		},
		"given the id is taken and the agent said so, then it already exists": {
			prepare: func(d *fakedashboard.Dashboard) {
				d.Inject(fakedashboard.RefusedByAgent("Job with submission_id j1 already exists. Please use a different submission_id."))
			},
			want: dashboard.ErrAlreadyExists,
		},
		"given no agent is there, then it may be tried again": {
			prepare: func(d *fakedashboard.Dashboard) { d.Inject(fakedashboard.NoAgent(1)) },
			want:    dashboard.ErrNoAgent,
		},
		"given the agent refused, then it is refused although the code is 500": {
			prepare: func(d *fakedashboard.Dashboard) { d.Inject(fakedashboard.RefusedByAgent("bad runtime_env")) },
			want:    dashboard.ErrRefused,
		},
		"given the dashboard refused, then it is refused": {
			prepare: func(d *fakedashboard.Dashboard) {
				d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointSubmit, Code: 400, Body: "TypeError: x"})
			},
			want: dashboard.ErrRefused,
		},
		"given the token is missing, then that is said": {
			prepare: func(d *fakedashboard.Dashboard) { d.RequireToken("secret") },
			want:    dashboard.ErrUnauthorized,
		},
		"given the answer names another job, then it is unexpected": {
			prepare: func(d *fakedashboard.Dashboard) {
				d.Inject(fakedashboard.Fault{Code: 200, Body: `{"job_id":"j9","submission_id":"j9"}`})
			},
			want: dashboard.ErrUnexpectedAnswer,
		},
		"given any other failure, then nothing is claimed": {
			prepare: func(d *fakedashboard.Dashboard) { d.Inject(fakedashboard.Fault{Code: 500, Body: "boom"}) },
		},
	}
	known := []error{dashboard.ErrAlreadyExists, dashboard.ErrNoAgent, dashboard.ErrRefused, dashboard.ErrUnauthorized, dashboard.ErrUnexpectedAnswer}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fake := fakedashboard.New(t)
			tc.prepare(fake)
			_, err := newClient(t, fake).SubmitJob(t.Context(), request)
			if err == nil {
				t.Fatal("SubmitJob succeeded")
			}
			for _, k := range known {
				if got, want := errors.Is(err, k), tc.want == k; got != want {
					t.Errorf("errors.Is(%q, %q) = %v, want %v", err, k, got, want)
				}
			}
		})
	}
}

// newClient returns a client of the fake which leaves no idle connection behind.
func newClient(t *testing.T, fake *fakedashboard.Dashboard, options ...dashboard.Option) *dashboard.Client {
	t.Helper()
	httpClient := dashboard.NewHTTPClient()
	t.Cleanup(httpClient.CloseIdleConnections)
	return dashboard.New(fake.URL(), append([]dashboard.Option{dashboard.WithHTTPClient(httpClient)}, options...)...)
}

func TestLifeOfAJob(t *testing.T) {
	fake := fakedashboard.New(t)
	const id = "a b/ä"
	fake.Script(id, fakedashboard.Steps("PENDING", "RUNNING")...)
	client, ctx := newClient(t, fake), t.Context()

	if _, err := client.GetJob(ctx, id); !errors.Is(err, dashboard.ErrNotFound) {
		t.Fatalf("before the submission: %v", err)
	}
	if _, err := client.SubmitJob(ctx, dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: id}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []dashboard.JobStatus{dashboard.JobPending, dashboard.JobRunning, dashboard.JobRunning} {
		job, err := client.GetJob(ctx, id)
		if err != nil || job.Status != want {
			t.Fatalf("GetJob = %+v, %v; want %s", job, err, want)
		}
	}
	var status *dashboard.StatusError
	if err := client.DeleteJob(ctx, id); !errors.As(err, &status) || status.Code != 500 {
		t.Errorf("deleting a running job: %v", err)
	}
	for _, want := range []bool{true, false} {
		if stopped, err := client.StopJob(ctx, id); err != nil || stopped != want {
			t.Errorf("StopJob = %v, %v; want %v", stopped, err, want)
		}
	}
	if err := client.DeleteJob(ctx, id); err != nil {
		t.Error(err)
	}
	if _, err := client.StopJob(ctx, id); !errors.Is(err, dashboard.ErrNotFound) {
		t.Errorf("stopping a deleted job: %v", err)
	}
	if err := client.DeleteJob(ctx, id); !errors.Is(err, dashboard.ErrNotFound) {
		t.Errorf("deleting a deleted job: %v", err)
	}
}

func TestVersionAndHealth(t *testing.T) {
	fake := fakedashboard.New(t)
	fake.RequireToken("secret")
	client := newClient(t, fake, dashboard.WithToken(token("secret", nil)))

	before, err := client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := dashboard.Version{Protocol: "4", Ray: "2.52.0", Commit: "0000000", Session: fake.Session()}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("Version (-want +got):\n%s", diff)
	}
	fake.Restart()
	if after, err := client.Version(t.Context()); err != nil || after.Session == before.Session {
		t.Errorf("after a restart the session is %q, %v", after.Session, err)
	}
	if err := newClient(t, fake).Healthy(t.Context()); err != nil {
		t.Errorf("health needs no token, but: %v", err)
	}
	if _, err := answering(t, 200, "{}").Version(t.Context()); !errors.Is(err, dashboard.ErrUnexpectedAnswer) {
		t.Errorf("version of something that is not Ray: %v", err)
	}
	if err := answering(t, 200, "<html>").Healthy(t.Context()); !errors.Is(err, dashboard.ErrUnexpectedAnswer) {
		t.Errorf("health of something that is not Ray: %v", err)
	}
	if err := answering(t, 503, "no gcs").Healthy(t.Context()); err == nil {
		t.Error("a dashboard without GCS is called healthy")
	}
}

// token is a source that always gives the same answer.
func token(token string, err error) dashboard.TokenSource {
	return func(context.Context) (string, error) { return token, err }
}

func TestATokenThatCannotBeFoundEndsTheCall(t *testing.T) {
	fake := fakedashboard.New(t)
	client := newClient(t, fake, dashboard.WithToken(token("", errors.New("no such Secret"))))
	_, err := client.Version(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no such Secret") {
		t.Errorf("error is %v, want that of the source", err)
	}
}
