package sim

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

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
		return t.process.world.dashboard(request.Method, request.URL, body)
	}}
	answer, err := t.process.exchange(request.Context(), c)
	if err != nil {
		return nil, err
	}
	reply, isReply := answer.(reply)
	if !isReply {
		return nil, errReset()
	}
	return &http.Response{StatusCode: reply.code, Body: io.NopCloser(strings.NewReader(reply.body)), Header: http.Header{}}, nil
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

// poller stands in for internal/ray/poll, both for the one that asks dashboards and for the one that asks Pods: it asks when
// the scheduler says so, and wakes as that package does.
type poller struct {
	process *process
	// wake has the object planned that has asked.
	wake func(poll.Key)
	seen map[poll.Key]*tracked
	// sessions are the lives of heads as last read, by dashboard; see readSession.
	sessions map[string]session
	// saw are the submissions of which a plan was told in this term that they have succeeded.
	saw map[string]bool
}

// session is a life of a head, and how often it was taken for granted since it was read.
type session struct {
	name string
	age  int
}

// tracked is a target with the last answer about it, and when the next question is due.
type tracked struct {
	poll.Observation
	next time.Duration
	// heard is an answer on its way to a question that was sent at asked.
	heard *poll.Observation
	asked time.Duration
}

func newPoller(p *process) *poller {
	return &poller{process: p, seen: map[poll.Key]*tracked{}, sessions: map[string]session{}, saw: map[string]bool{}}
}

const (
	// askEvery is the pause between two questions to a dashboard, askPodEvery that between two to a Pod.
	askEvery    = 3 * time.Second
	askPodEvery = 2 * time.Second
	// patience is how long the poller waits for an answer.
	patience = 5 * time.Second
	// readSessionEvery is the number of questions after which the life of the head is read again although nothing hints at
	// another one.
	readSessionEvery = 10
)

// Track begins to ask about a target.
func (a *poller) Track(target poll.Target) {
	if seen := a.seen[target.Owner]; seen == nil || seen.Target != target {
		a.seen[target.Owner] = &tracked{Observation: poll.Observation{Target: target}}
	}
}

// Forget ends that.
func (a *poller) Forget(key poll.Key) { delete(a.seen, key) }

// Refresh makes the next question due now.
func (a *poller) Refresh(key poll.Key) {
	if seen := a.seen[key]; seen != nil {
		seen.next = 0
	}
}

// Observation returns the last answer.
func (a *poller) Observation(key poll.Key) (poll.Observation, bool) {
	seen := a.seen[key]
	if seen == nil {
		return poll.Observation{}, false
	}
	copied := seen.Observation
	copied.Job, copied.Serve = copied.Job.Clone(), copied.Serve.Clone()
	if copied.Job != nil && copied.Job.Status == dashboard.JobSucceeded && a.process.leads() {
		a.saw[copied.Target.SubmissionID] = true
	}
	return copied, true
}

// due returns the targets to ask about now, in order.
func (a *poller) due() []poll.Key {
	var due []poll.Key
	for key, seen := range a.seen {
		if seen.next <= a.process.world.mono || seen.heard != nil {
			due = append(due, key)
		}
	}
	slices.SortFunc(due, func(a, b poll.Key) int { return strings.Compare(a.String(), b.String()) })
	return due
}

// ask asks Ray about one target, or takes in the answer, and tells whether that woke the controller.
func (a *poller) ask(key poll.Key) bool {
	w, seen := a.process.world, a.seen[key]
	if seen == nil {
		return false
	}
	if seen.heard == nil {
		answer := a.answer(seen.Observation)
		seen.heard, seen.asked = &answer, w.mono
		if w.may(slowRay, 4) {
			w.note("fault: %s waits for Ray", a.process.uid)
			return false
		}
	}
	before, after := seen.Observation, *seen.heard
	if w.mono-seen.asked > patience {
		after = unanswered(before, after.Asked, context.DeadlineExceeded)
	}
	if w.atAnswer(a.process, before, after) {
		after = unanswered(before, after.Asked, errReset())
	}
	*seen = tracked{Observation: after, next: w.mono + pauseOf(key)}
	if !tells(before, after) {
		return false
	}
	w.note("%s hears from Ray: %s", a.process.uid, tidings(after))
	a.wake(key)
	return true
}

func pauseOf(key poll.Key) time.Duration {
	if strings.HasPrefix(key.Kind, "Pod") {
		return askPodEvery
	}
	return askEvery
}

func tidings(o poll.Observation) string {
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case o.Job != nil:
		return string(o.Job.Status) + " in " + o.SessionName
	case o.Target.Ask == poll.AskServe:
		return "Serve on " + o.Target.Owner.Name + ": " + statuses(o.Serve)
	case o.Target.Ask != poll.AskJob:
		return o.Target.Owner.String() + " answers"
	default:
		return o.JobFound.String() + " in " + o.SessionName
	}
}

// answer asks Ray now.
func (a *poller) answer(o poll.Observation) poll.Observation {
	if o.Target.Ask == poll.AskProxy || o.Target.Ask == poll.AskTraffic {
		return a.answerOfPod(o)
	}
	w, now := a.process.world, a.process.Now()
	head := w.headAt(o.Target.BaseURL)
	switch {
	case head == nil:
		delete(a.sessions, o.Target.BaseURL)
		return unanswered(o, now, errNoHead)
	case w.mono < w.raySilent, w.may(noAnswer, 8):
		delete(a.sessions, o.Target.BaseURL)
		return unanswered(o, now, errReset())
	}
	o.Asked, o.Answered, o.Err, o.Failures, o.FailingSince = now, now, nil, 0, time.Time{}
	if o.Target.Ask == poll.AskServe {
		o.Serve, o.SessionName = w.told(head), sessionOf(head)
		return o
	}
	o.JobFound, o.Job = poll.Missing, nil
	if job := w.jobOn(head, o.Target.SubmissionID); job != nil {
		o.JobFound, o.Job = poll.Found, job.Clone()
	}
	o.SessionName = a.readSession(o.Target.BaseURL, sessionOf(head), o.JobFound == poll.Missing)
	return o
}

// readSession is the life of the head that the poller tells. It is read for a job that is missing, and else only now and
// then, so it may be one that is over.
func (a *poller) readSession(url, now string, must bool) string {
	known, ok := a.sessions[url]
	known.age++
	if !ok || must || known.age >= readSessionEvery {
		known = session{name: now}
	}
	a.sessions[url] = known
	return known.name
}

// unanswered is what follows from a question that was not answered.
func unanswered(o poll.Observation, asked time.Time, err error) poll.Observation {
	o.Asked, o.Err = asked, err
	o.Failures++
	if o.FailingSince.IsZero() {
		o.FailingSince = asked
	}
	return o
}

// tells is the rule by which the real poller wakes.
func tells(before, after poll.Observation) bool {
	if before.QuietSince.IsZero() != after.QuietSince.IsZero() || !reflect.DeepEqual(before.Serve, after.Serve) ||
		(before.Traffic != nil && before.Traffic.Reported) != (after.Traffic != nil && after.Traffic.Reported) {
		return true
	}
	status := func(o poll.Observation) dashboard.JobStatus {
		if o.Job == nil {
			return ""
		}
		return o.Job.Status
	}
	return before.Answered.IsZero() != after.Answered.IsZero() || before.JobFound != after.JobFound ||
		before.SessionName != after.SessionName || (before.Err == nil) != (after.Err == nil) || status(before) != status(after)
}
