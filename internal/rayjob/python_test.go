package rayjob

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// clientModule stands in for Ray's own client, of which only the interface matters here.
const clientModule = `
import json, os, pathlib

class JobSubmissionClient:
    def __init__(self, address, headers=None):
        assert address.startswith("http://127.0.0.1:"), address
        assert headers is None, headers

    def submit_job(self, **job):
        pathlib.Path(os.environ["SUBMITTED"]).write_text(json.dumps(job))
        return job["submission_id"]

    def get_job_status(self, id):
        assert id == "train-x7k2m", id
        first, _, rest = pathlib.Path(os.environ["STATUS"]).read_text().partition(" ")
        if rest: pathlib.Path(os.environ["STATUS"]).write_text(rest)
        return first
`

// fakeDashboard answers what scripts ask the dashboard.
type fakeDashboard struct {
	session string
	token   string
	// unwell is how many more times it says that it cannot reach the GCS.
	unwell atomic.Int32
	// away is how many more times nobody answers what is asked after that.
	away atomic.Int32
}

func (d *fakeDashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/gcs_healthz" && d.unwell.Add(-1) >= 0:
		http.Error(w, "Health check failed due to: no GCS", http.StatusServiceUnavailable)
	case r.URL.Path == "/api/gcs_healthz":
		fmt.Fprint(w, "success")
	case d.away.Add(-1) >= 0:
		panic(http.ErrAbortHandler) // the connection is cut
	case d.token != "" && r.Header.Get("x-ray-authorization") != "Bearer "+d.token:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case r.URL.Path == "/api/version":
		fmt.Fprintf(w, `{"ray_version": "2.52.0", "session_name": %q}`, d.session)
	default:
		http.NotFound(w, r)
	}
}

// realPython is the path of a python; false, with a line in the log, where there is none.
func realPython(t *testing.T) (string, bool) {
	t.Helper()
	found, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Logf("there is no python3 here, so the programs are not run: %v", err)
		return "", false
	}
	return strings.TrimSpace(string(found)), true
}

// pythonContainer returns a container with a real python and the stand-in for Ray's client.
func pythonContainer(t *testing.T, python string) container {
	t.Helper()
	c := newContainer(t)
	c.Install(t, "python", "exec "+python+` "$@"`)
	if err := os.MkdirAll(c.path("modules/ray"), 0o700); err != nil {
		t.Fatalf("making a directory for the stand-in of Ray's client: %v", err)
	}
	c.put(t, filepath.Join("modules", "ray", "job_submission.py"), clientModule)
	c.Variables["PYTHONPATH"] = c.path("modules")
	return c
}

// on makes the job run on the dashboard at the URL, as seen by the submitter and by the sidecar.
func on(url string) func(*rayv1.RayJob) {
	host := strings.TrimPrefix(url, "http://")
	return func(j *rayv1.RayJob) {
		j.Status.DashboardURL = host
		var port int32
		if _, err := fmt.Sscanf(host, "127.0.0.1:%d", &port); err != nil {
			panic(err)
		}
		j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "dashboard", ContainerPort: port}}
	}
}

func TestScriptsWithRealPython(t *testing.T) {
	python, ok := realPython(t)
	if !ok {
		return
	}
	const odd = "echo 'a \"b\" $HOME `id` \\' && \n\tpython \"日本 😀\" --x=$(HOME)\n"
	const severalCommands = "echo one && echo two ; python job.py --q '(a b)'"
	type outcome struct {
		Submitted, Followed bool
		Code                int
	}
	entry := func(text string) func(*rayv1.RayJob) { return func(j *rayv1.RayJob) { j.Spec.Entrypoint = text } }
	session := func(name string) func(*rayv1.RayJob) {
		return func(j *rayv1.RayJob) {
			j.Spec.Entrypoint, j.Status.Submission = odd, &rayv1.RayJobSubmission{SessionName: name}
		}
	}
	for name, tc := range map[string]struct {
		mode   string
		edit   func(*rayv1.RayJob)
		env    map[string]string
		known  bool
		unwell int32
		away   int32
		// silent is how often nobody answers who wants to follow the log.
		silent string
		status string
		token  string
		// admitted is the session that the operator has let the sidecar submit to, if not any; "later" lets it wait first.
		admitted string
		want     outcome
		says     string
	}{
		"a submitter":                           {mode: "submitter", edit: entry(odd), want: outcome{Submitted: true, Followed: true}, says: "The job is submitted."},
		"a submitter of several commands (L38)": {mode: "submitter", edit: entry(severalCommands), want: outcome{Submitted: true, Followed: true}},
		"a sidecar of several commands (L38)": {mode: "sidecar", edit: entry(severalCommands), status: "SUCCEEDED",
			want: outcome{Submitted: true, Followed: true}},
		"a submitter that waits for the dashboard": {mode: "submitter", edit: entry(odd), unwell: 2,
			want: outcome{Submitted: true, Followed: true}, says: "Waiting for the Ray dashboard at http://127.0.0.1:"},
		"a submitter that has waited long enough": {mode: "submitter", edit: entry(odd), unwell: 1 << 20, env: map[string]string{"SECONDS": "300"},
			want: outcome{Code: 1}, says: "did not become healthy within 300 seconds"},
		"a submitter whose log cannot be followed at first": {mode: "submitter", edit: entry(odd), silent: "4", want: outcome{Submitted: true, Followed: true}},
		"a submitter whose log cannot be followed":          {mode: "submitter", edit: entry(odd), silent: "5", want: outcome{Submitted: true, Followed: true, Code: 1}},
		"a sidecar whose log cannot be followed at first":   {mode: "sidecar", edit: entry(odd), silent: "2", status: "SUCCEEDED", want: outcome{Submitted: true, Followed: true}},
		"a second submitter":                                {mode: "submitter", edit: session("another"), known: true, want: outcome{Followed: true}},
		"the same head":                                     {mode: "submitter", edit: session("session_1"), want: outcome{Submitted: true, Followed: true}},
		"a head that is away for a moment": {mode: "submitter", edit: session("session_1"), away: 1, want: outcome{Submitted: true, Followed: true},
			says: "The Ray dashboard does not answer, trying again: Remote end closed connection without response"},
		"another head": {mode: "submitter", edit: session("session_0"), want: outcome{Code: 1},
			says: "The head of the Ray cluster was replaced (session session_1 instead of session_0). The job is not submitted to the new one."},
		"the same head, asking for a token": {mode: "submitter", edit: session("session_1"), token: "secret", env: map[string]string{"RAY_AUTH_TOKEN": "secret"},
			want: outcome{Submitted: true, Followed: true}},
		"the same head, asking for a token that is in a file": {mode: "submitter", edit: session("session_1"), token: "secret", env: map[string]string{"RAY_AUTH_TOKEN_PATH": "token"},
			want: outcome{Submitted: true, Followed: true}},
		"the same head, asking for another token": {mode: "submitter", edit: session("session_1"), token: "secret", want: outcome{Code: 1}, says: "401"},
		"a sidecar whose job succeeds":            {mode: "sidecar", edit: entry(odd), status: "PENDING RUNNING SUCCEEDED", want: outcome{Submitted: true, Followed: true}},
		"a sidecar whose job fails":               {mode: "sidecar", edit: entry(odd), status: "FAILED", want: outcome{Submitted: true, Followed: true, Code: 1}},
		"a sidecar whose job is stopped":          {mode: "sidecar", edit: entry(odd), status: "STOPPED", want: outcome{Submitted: true, Followed: true, Code: 1}},
		"a sidecar that is let in to its head": {mode: "sidecar", edit: entry(odd), admitted: "session_1", status: "SUCCEEDED",
			want: outcome{Submitted: true, Followed: true}},
		"a sidecar that was let in to an earlier life of its head": {mode: "sidecar", edit: entry(odd), admitted: "session_0", status: "SUCCEEDED",
			want: outcome{Code: 1}, says: "The job is not submitted to the new one."},
		"a sidecar that waits to be let in": {mode: "sidecar", edit: entry(odd), admitted: "later", status: "SUCCEEDED",
			want: outcome{Submitted: true, Followed: true}, says: "Waiting for the operator to record which head takes the job"},
		"a sidecar that waits for the dashboard": {mode: "sidecar", edit: entry(odd), unwell: 2, status: "SUCCEEDED",
			want: outcome{Submitted: true, Followed: true}, says: "Waiting for the Ray dashboard at http://localhost:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := pythonContainer(t, python)
			dashboard := &fakeDashboard{session: "session_1", token: tc.token}
			dashboard.unwell.Store(tc.unwell)
			dashboard.away.Store(tc.away)
			server := httptest.NewServer(dashboard)
			defer server.Close()
			c.put(t, "token", "secret\n")
			c.put(t, "STATUS", tc.status)
			if tc.silent != "" {
				c.put(t, "SILENT", tc.silent)
			}
			if tc.admitted != "" {
				c.put(t, "session", tc.admitted)
			}
			if tc.admitted == "later" {
				c.put(t, "session", "")
				c.Install(t, "sleep", "echo session_1 > session")
			}
			if tc.known {
				c.put(t, "KNOWN", "")
			}
			for name, value := range tc.env {
				c.Variables[name] = value
			}
			job := example(on(server.URL), tc.edit)
			result, err := c.run(submitters(t, job)[tc.mode])
			if err != nil {
				t.Fatal(err)
			}
			got := outcome{Submitted: c.has("SUBMITTED"), Code: result.Code}
			for _, call := range result.Calls {
				got.Followed = got.Followed || strings.HasPrefix(strings.Join(call, " "), "ray job logs ")
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("what happened (-want +got):\n%s\n%s\n%s", d, result.Stdout, result.Stderr)
			}
			if text := result.Stdout + result.Stderr; !strings.Contains(text, tc.says) {
				t.Errorf("the script says\n%s\nwant %q in it", text, tc.says)
			}
			if got.Submitted {
				checkSubmitted(t, c, job.Spec.Entrypoint)
			}
		})
	}
}

// checkSubmitted compares the entrypoint that Ray's client was given.
func checkSubmitted(t *testing.T, c container, entrypoint string) {
	t.Helper()
	text, err := os.ReadFile(c.path("SUBMITTED"))
	if err != nil {
		t.Fatal(err)
	}
	var submitted struct{ Entrypoint string }
	if err := json.Unmarshal(text, &submitted); err != nil {
		t.Fatalf("Ray's client was given %q: %v", text, err)
	}
	if submitted.Entrypoint != entrypoint {
		t.Errorf("Ray's client was given the entrypoint %q, want %q", submitted.Entrypoint, entrypoint)
	}
}

// Real python is too slow for a property, so it reads many of the texts that the property is made of at once.
func TestPythonReadsWhatItIsGiven(t *testing.T) {
	python, ok := realPython(t)
	if !ok {
		return
	}
	c := pythonContainer(t, python)
	server := httptest.NewServer(&fakeDashboard{session: "session_1"})
	defer server.Close()
	var text strings.Builder
	for seed := range 200 {
		text.WriteString(anyText().Example(seed))
	}
	job := example(on(server.URL), func(j *rayv1.RayJob) { j.Spec.Entrypoint = text.String() })
	result, err := c.run(submitters(t, job)["submitter"])
	if err != nil {
		t.Fatal(err)
	}
	if result.Code != 0 {
		t.Fatalf("the script ended with %d: %s", result.Code, result.Stderr)
	}
	checkSubmitted(t, c, text.String())
}
