package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// errNoHead is the answer where no head is ready.
var errNoHead = errors.New("connect: connection refused")

// rayJob is a job as one head knows it. It is lost with that head.
type rayJob struct {
	dashboard.JobDetails
	head types.UID
	ends dashboard.JobStatus
}

// headAt returns the ready head Pod behind the address of a head Service, or nil.
func (w *world) headAt(address string) *corev1.Pod {
	service, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ".")
	found := w.server.Get("Service", types.NamespacedName{Namespace: namespace, Name: service})
	if found == nil {
		return nil
	}
	owner := metav1.GetControllerOf(found)
	for _, object := range w.server.List("Pod") {
		pod := object.(*corev1.Pod)
		of := metav1.GetControllerOf(pod)
		head := pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead
		if head && owner != nil && of != nil && of.UID == owner.UID && podReady(pod) {
			return pod
		}
	}
	return nil
}

func podReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (w *world) jobOn(head *corev1.Pod, id string) *rayJob {
	for _, job := range w.rayJobs {
		if job.head == head.UID && job.SubmissionID == id {
			return job
		}
	}
	return nil
}

// startJob is what Ray does with a submission under an id that it does not know.
func (w *world) startJob(head *corev1.Pod, id string) {
	ends := dashboard.JobSucceeded
	if n := len(w.rayJobs); n < len(w.scenario.outcomes) {
		ends = w.scenario.outcomes[n]
	}
	job := &rayJob{head: head.UID, ends: ends}
	job.SubmissionID, job.Status, job.StartTime = id, dashboard.JobPending, w.now()
	w.rayJobs = append(w.rayJobs, job)
	w.note("Ray starts job %s", id)
	w.count("submission")
	w.submitted[id]++
	if w.submitted[id] > 1 {
		w.fail("Ray was given job %s a second time", id)
	}
}

// canProgress tells whether a job goes on by itself.
func (w *world) canProgress(job *rayJob) bool {
	last := job.Status == dashboard.JobRunning && job.ends == forever
	return !job.Status.Terminal() && !last && !w.headGone(job)
}

// progress moves a job on by one state.
func (w *world) progress(job *rayJob) {
	switch job.Status {
	case dashboard.JobPending:
		job.Status = dashboard.JobRunning
	case dashboard.JobRunning:
		job.Status, job.EndTime = job.ends, w.now()
	}
	w.note("Ray: job %s is %s", job.SubmissionID, job.Status)
}

// headGone tells whether the head of a job is gone, and the job with it.
func (w *world) headGone(job *rayJob) bool {
	return !slices.ContainsFunc(w.server.List("Pod"), func(pod object) bool { return pod.GetUID() == job.head })
}

// http is the process's way to Ray.
func (p *process) http() *http.Client { return &http.Client{Transport: transport{p}} }

type transport struct{ process *process }

// RoundTrip sends a request to the dashboard of a head.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	c := &call{what: "Ray " + request.Method + " " + request.URL.Path, mutates: true, carryOut: func() (any, error) {
		return t.process.world.dashboard(request.URL, body)
	}}
	answer, err := t.process.exchange(request.Context(), c)
	if err != nil {
		return nil, err
	}
	reply := answer.(reply)
	return &http.Response{StatusCode: reply.code, Body: io.NopCloser(strings.NewReader(reply.body)), Header: http.Header{}}, nil
}

// reply is status code and body of an answer.
type reply struct {
	code int
	body string
}

// dashboard answers a request as Ray's dashboard does.
func (w *world) dashboard(to *url.URL, body []byte) (any, error) {
	head := w.headAt(to.Host)
	if head == nil {
		return nil, errNoHead
	}
	path := strings.TrimPrefix(to.Path, "/api/jobs/")
	if path == "" {
		var request dashboard.SubmitRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return reply{http.StatusBadRequest, err.Error()}, nil
		}
		if w.jobOn(head, request.SubmissionID) != nil {
			return reply{http.StatusBadRequest, fmt.Sprintf("Job with submission_id %s already exists. Please use a different submission_id.", request.SubmissionID)}, nil
		}
		w.startJob(head, request.SubmissionID)
		return reply{http.StatusOK, fmt.Sprintf(`{"job_id":%q,"submission_id":%q}`, request.SubmissionID, request.SubmissionID)}, nil
	}
	id := strings.TrimSuffix(path, "/stop")
	job := w.jobOn(head, id)
	if job == nil {
		return reply{http.StatusNotFound, fmt.Sprintf("Job %s does not exist", id)}, nil
	}
	stopped := !job.Status.Terminal()
	if stopped {
		job.Status, job.EndTime = dashboard.JobStopped, w.now()
		w.note("Ray: job %s is stopped", id)
	}
	return reply{http.StatusOK, fmt.Sprintf(`{"stopped":%t}`, stopped)}, nil
}

// sendToRay is the goroutine that carries out what action.Ray was given, whenever the scheduler lets it.
func (p *process) sendToRay(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.ray.resume:
			p.world.didSend = p.sender.Step(ctx)
			p.ray.busy = false
			p.world.control <- struct{}{}
		}
	}
}

// letSend lets the goroutine for Ray go on, or take up a request, and tells whether there was one.
func (p *process) letSend() bool {
	if p.ray.parked {
		if !p.ray.canGoOn() {
			return false
		}
		p.ray.goOn()
		return true
	}
	p.world.didSend = true // if it parks
	p.ray.busy = true
	p.ray.goOn()
	return p.world.didSend
}

// poller stands in for internal/ray/poll: it asks when the scheduler says so, and wakes as that package does.
type poller struct {
	process *process
	bell    *wake.Bell
	seen    map[poll.Key]*tracked
}

// tracked is a target with the last answer about it, and when the next question is due.
type tracked struct {
	poll.Observation
	next time.Duration
}

func newPoller(p *process) *poller { return &poller{process: p, seen: map[poll.Key]*tracked{}} }

// askEvery is the pause between two questions about one job.
const askEvery = 3 * time.Second

// Track begins to ask about a target.
func (a *poller) Track(target poll.Target) {
	if seen := a.seen[target.Owner]; seen == nil || seen.Target != target {
		a.seen[target.Owner] = &tracked{Observation: poll.Observation{Target: target}}
	}
}

// Forget ends that.
func (a *poller) Forget(key poll.Key) { delete(a.seen, key) }

// Observation returns the last answer.
func (a *poller) Observation(key poll.Key) (poll.Observation, bool) {
	seen := a.seen[key]
	if seen == nil {
		return poll.Observation{}, false
	}
	return seen.Observation, true
}

// due returns the targets to ask about now, in order.
func (a *poller) due() []poll.Key {
	var due []poll.Key
	for key, seen := range a.seen {
		if seen.next <= a.process.world.mono {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b poll.Key) int { return strings.Compare(a.String(), b.String()) })
	return due
}

// ask asks Ray about one target, and tells whether that woke the controller.
func (a *poller) ask(key poll.Key) bool {
	before := a.seen[key].Observation
	after := before
	after.Asked = a.process.Now()
	if head := a.process.world.headAt(before.Target.BaseURL); head == nil {
		after.Err = errNoHead
		after.Failures++
		if after.FailingSince.IsZero() {
			after.FailingSince = after.Asked
		}
	} else {
		after.Answered, after.Err, after.Failures, after.FailingSince = after.Asked, nil, 0, time.Time{}
		after.JobFound, after.Job, after.SessionName = poll.Missing, nil, string(head.UID)
		if job := a.process.world.jobOn(head, before.Target.SubmissionID); job != nil {
			details := job.JobDetails
			after.JobFound, after.Job = poll.Found, &details
		}
	}
	*a.seen[key] = tracked{Observation: after, next: a.process.world.mono + askEvery}
	if !tells(before, after) {
		return false
	}
	a.process.world.note("%s hears from Ray: %s", a.process.uid, after.JobFound)
	a.bell.Ring(key.NamespacedName)
	return true
}

// tells is the rule by which the real poller wakes.
func tells(before, after poll.Observation) bool {
	status := func(o poll.Observation) dashboard.JobStatus {
		if o.Job == nil {
			return ""
		}
		return o.Job.Status
	}
	return before.Answered.IsZero() != after.Answered.IsZero() || before.JobFound != after.JobFound ||
		before.SessionName != after.SessionName || (before.Err == nil) != (after.Err == nil) || status(before) != status(after)
}
