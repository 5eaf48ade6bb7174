// Package fakedashboard plays the dashboard of a Ray head for tests, and the Serve proxies of its Pods. It keeps its jobs and
// Serve applications in memory, answers in the words and with the status codes of Ray (checked against Ray 2.60), moves both
// along scripts, and fails in the ways that real dashboards do: slowly, silently, or after it has done what it was asked to.
//
// Use New for a dashboard that listens on the loopback address, and NewInProcess together with a Network where the code
// under test computes the address itself, or where time is virtual (testing/synctest).
package fakedashboard

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// Step is one station in the life of a job.
type Step struct {
	// Status is the word that Ray uses, such as "RUNNING".
	Status string
	// Message defaults to what Ray says for that status.
	Message string
	// ErrorType is sent as null if empty.
	ErrorType string
	// ExitCode is the driver's; nil if it has none.
	ExitCode *int
	// Reads is how often a job is read in this step before it moves on; 0 means once. The last step of a script stays.
	Reads int
}

// Steps returns one step for each status.
func Steps(statuses ...string) []Step {
	steps := make([]Step, 0, len(statuses))
	for _, status := range statuses {
		steps = append(steps, Step{Status: status})
	}
	return steps
}

// Job is a job as the dashboard keeps it.
type Job struct {
	SubmissionID string
	Entrypoint   string
	Metadata     map[string]string
	RuntimeEnv   map[string]any
	// NumCPUs, NumGPUs and Resources are reserved for the entrypoint; nil if the submission did not say.
	NumCPUs, NumGPUs *float64
	Resources        map[string]float64
	Step             Step
	StartTime        time.Time
	EndTime          time.Time

	script []Step
	reads  int
}

// Dashboard is a scripted dashboard. All methods may be called at any time, also while it serves.
type Dashboard struct {
	mu            sync.Mutex
	version       string
	session       int
	token         string
	down          bool
	jobs          map[string]*Job
	scripts       map[string][]Step
	defaultScript []Step
	stopScript    []Step
	faults        []*Fault
	attempts      map[string]int
	submissions   map[string]int
	requests      map[Endpoint]int
	nodes         []Node
	actors        []Actor

	serve              serveState
	serveScripts       map[string][]ServeStep
	defaultServeScript []ServeStep
	serveProxies       []ServeProxy
	serveLag           int
	serveRefusal       string
	servePuts          int
	lastServePut       []byte

	server *httptest.Server
	closed chan struct{}
}

// New starts a dashboard on the loopback address; it ends with the test. Jobs are PENDING, then RUNNING, then SUCCEEDED
// unless a script says otherwise.
func New(tb testing.TB) *Dashboard {
	tb.Helper()
	d := NewInProcess()
	d.server = httptest.NewServer(d)
	tb.Cleanup(func() {
		close(d.closed)
		d.server.Close()
	})
	return d
}

// NewInProcess returns a dashboard without a listener. It is reached through a Network.
func NewInProcess() *Dashboard {
	return &Dashboard{
		version:            "2.52.0",
		session:            1,
		jobs:               map[string]*Job{},
		scripts:            map[string][]Step{},
		defaultScript:      Steps("PENDING", "RUNNING", "SUCCEEDED"),
		stopScript:         Steps("STOPPED"),
		attempts:           map[string]int{},
		submissions:        map[string]int{},
		requests:           map[Endpoint]int{},
		serve:              newServeState(),
		serveScripts:       map[string][]ServeStep{},
		defaultServeScript: ServeSteps("DEPLOYING", "RUNNING"),
		closed:             make(chan struct{}),
	}
}

// URL is the base URL of a dashboard made by New.
func (d *Dashboard) URL() string { return d.server.URL }

// Script sets the life of the job that is, or will be, submitted under id. The first step is what its first reader sees.
func (d *Dashboard) Script(id string, steps ...Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scripts[id] = slices.Clone(steps)
	if job, ok := d.jobs[id]; ok {
		job.follow(steps)
	}
}

// SetDefaultScript sets the life of jobs without a script of their own that are submitted from now on.
func (d *Dashboard) SetDefaultScript(steps ...Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.defaultScript = slices.Clone(steps)
}

// SetStopScript sets what becomes of jobs that are stopped from now on. They are STOPPED at once otherwise; real ones take
// some seconds, or end in another way before the signal reaches them.
func (d *Dashboard) SetStopScript(steps ...Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopScript = slices.Clone(steps)
}

// SetStep moves an existing job to a step, where it stays. It panics if there is no such job.
func (d *Dashboard) SetStep(id string, step Step) {
	d.mu.Lock()
	defer d.mu.Unlock()
	job, ok := d.jobs[id]
	if !ok {
		panic(fmt.Sprintf("fakedashboard: there is no job %q", id))
	}
	job.follow([]Step{step})
}

// PutJob records a job that someone else submitted. It counts as no submission.
func (d *Dashboard) PutJob(job Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if job.StartTime.IsZero() {
		job.StartTime = time.Now()
	}
	job.follow([]Step{job.Step})
	d.jobs[job.SubmissionID] = &job
}

// Job returns a copy of the job of that id.
func (d *Dashboard) Job(id string) (Job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	job, ok := d.jobs[id]
	if !ok {
		return Job{}, false
	}
	out := *job
	out.Metadata = maps.Clone(job.Metadata)
	out.RuntimeEnv = maps.Clone(job.RuntimeEnv)
	out.script = nil
	return out, true
}

// JobIDs returns the submission ids of all jobs, sorted.
func (d *Dashboard) JobIDs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.jobs))
}

// Submissions is how often a job was accepted under id, over all restarts. More than one is what "submitted twice" means.
func (d *Dashboard) Submissions(id string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.submissions[id]
}

// Attempts is how often a submission under id arrived, whatever became of it.
func (d *Dashboard) Attempts(id string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempts[id]
}

// Requests is how often the endpoint was called, whatever the answer.
func (d *Dashboard) Requests(endpoint Endpoint) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requests[endpoint]
}

// SetVersion sets the Ray version that the dashboard reports; it is "2.52.0" otherwise.
func (d *Dashboard) SetVersion(version string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version = version
}

// RequireToken makes the dashboard refuse calls without this token; an empty one lets everybody in.
func (d *Dashboard) RequireToken(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.token = token
}

// Session is the name of the current session.
func (d *Dashboard) Session() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessionName()
}

func (d *Dashboard) sessionName() string {
	return fmt.Sprintf("session_2026-01-01_00-00-%02d_000000_1", d.session)
}

// Restart plays a head that was replaced without fault tolerance of the GCS: a new session begins, all jobs are gone, and
// Serve is not started.
func (d *Dashboard) Restart() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session++
	clear(d.jobs)
	d.actors = nil
	d.serve = newServeState()
}

// RestartWithFaultTolerance plays a head that was replaced with fault tolerance of the GCS: session and records stay, those
// of Serve too, and jobs that had not ended are FAILED, since their drivers died with the head.
func (d *Dashboard) RestartWithFaultTolerance() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, job := range d.jobs {
		if !terminal(job.Step.Status) {
			job.follow([]Step{{Status: "FAILED", ErrorType: "JOB_SUPERVISOR_ACTOR_DIED", Message: "The job supervisor actor died."}})
		}
	}
}

// Down makes the dashboard unreachable: connections break without an answer.
func (d *Dashboard) Down() { d.setDown(true) }

// Up ends Down.
func (d *Dashboard) Up() { d.setDown(false) }

func (d *Dashboard) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *Dashboard) isDown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

// follow puts the job at the beginning of a script.
func (j *Job) follow(script []Step) {
	j.script = slices.Clone(script)
	j.reads = 0
	j.enter(j.script[0])
}

// enter puts the job into a step.
func (j *Job) enter(step Step) {
	j.Step = step
	if terminal(step.Status) && j.EndTime.IsZero() {
		j.EndTime = time.Now()
	}
	if j.Step.Message == "" {
		j.Step.Message = usualMessage(step.Status)
	}
}

// advance counts one read and moves on when the step has been read often enough.
func (j *Job) advance() {
	j.reads++
	if len(j.script) < 2 || j.reads < max(1, j.script[0].Reads) {
		return
	}
	j.script = j.script[1:]
	j.reads = 0
	j.enter(j.script[0])
}

func terminal(status string) bool {
	return status == "STOPPED" || status == "SUCCEEDED" || status == "FAILED"
}

func usualMessage(status string) string {
	switch status {
	case "PENDING":
		return "Job has not started yet."
	case "RUNNING":
		return "Job is currently running."
	case "SUCCEEDED":
		return "Job finished successfully."
	case "STOPPED":
		return "Job was intentionally stopped."
	case "FAILED":
		return "Job entrypoint command failed with exit code 1, last available logs (truncated to 20,000 chars):\n"
	}
	return ""
}
