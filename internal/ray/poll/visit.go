package poll

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/census"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

const (
	// refreshVersionAfter is the number of visits after which the version is read again although nothing hints at a
	// change. A head that was replaced gives hints: it was silent, or it has lost the job.
	refreshVersionAfter = 10
	// slowVisit is the time above which a dashboard goes to the lane of the doubtful ones.
	slowVisit = time.Second
)

// question is one request about one target.
type question struct {
	target *target
	asked  time.Time
	// wantVersion asks for the version although nothing hints at a change; known is the one that was read last.
	wantVersion bool
	known       dashboard.Version
	// before is what is known of the actors, nil to ask for everything whatever Ray says of them; jobs asks for jobs as well.
	before *census.Ledger
	jobs   bool
}

// reply is what came back.
type reply struct {
	answer
	// version is nil if it was not read.
	version *dashboard.Version
}

// visit asks one dashboard for all its targets that are due, one after the other.
func (p *Poller) visit(ctx context.Context, h *host) {
	began := p.options.Clock.Now()
	for ctx.Err() == nil {
		q, asking, found := p.nextQuestion(ctx, h, began)
		if !found {
			break
		}
		r := ask(asking, h.client, q)
		changed, goOn := p.record(asking, h, q, r)
		for _, owner := range changed {
			p.options.Notify(owner)
		}
		if !goOn {
			break
		}
	}
	p.settle(h, began)
}

// nextQuestion picks the target that has been due the longest. There is none once the visit has taken as long as a
// request may, so that a slow dashboard with many targets holds its place among the running visits no longer than that.
func (p *Poller) nextQuestion(ctx context.Context, h *host, began time.Time) (question, context.Context, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.options.Clock.Now()
	var first *target
	for _, t := range h.targets {
		if !t.due.After(now) && (first == nil || t.due.Before(first.due)) {
			first = t
		}
	}
	if first == nil || now.Sub(began) > p.options.Timeout {
		return question{}, nil, false
	}
	asking, interrupt := context.WithCancel(ctx)
	first.interrupt = interrupt
	first.refresh = false
	return question{target: first, asked: now, wantVersion: h.staleVersion >= refreshVersionAfter, known: h.version,
		before: first.comparable(), jobs: first.want.Jobs}, asking, true
}

// ask puts the question to Ray.
func ask(ctx context.Context, client *dashboard.Client, q question) reply {
	switch q.target.Ask {
	case AskServe:
		return askServe(ctx, client, q)
	case AskProxy:
		return askProxy(ctx, client, q)
	case AskTraffic:
		return askTraffic(ctx, client, q)
	case AskCensus:
		return askCensus(ctx, client, q)
	}
	return askJob(ctx, client, q)
}

// askJob asks for a job. The version is read after the job, so that the session that goes with a missing job is one that
// began before the question or later, never one that had ended by then.
func askJob(ctx context.Context, client *dashboard.Client, q question) reply {
	r := reply{answer: answer{asked: q.asked}}
	id := q.target.SubmissionID
	if id != "" {
		job, err := client.GetJob(ctx, id)
		switch {
		case errors.Is(err, dashboard.ErrNotFound):
			r.presence = Missing
		case err != nil:
			r.err = fmt.Errorf("asking for job %q: %w", id, err)
			return r
		default:
			r.presence, r.job = Found, job
		}
	}
	if r.presence == Found && !q.wantVersion {
		return r
	}
	version, err := client.Version(ctx)
	if err == nil {
		r.version = &version
		return r
	}
	// A job that was found is a fact whatever happens next. That it is missing means something only together with the
	// session in which it is.
	if r.presence != Found {
		r.err = fmt.Errorf("asking for the version of Ray: %w", err)
	}
	return r
}

// errReplaced says that the session changed again and again while Serve was asked for.
var errReplaced = errors.New("the head was replaced while it was asked")

// askServe asks for the report of Serve. Both a full and an empty report have consequences.
func askServe(ctx context.Context, client *dashboard.Client, q question) reply {
	return inOneSession(ctx, client, q, func(r *reply) error {
		serve, err := client.Serve(ctx)
		if err != nil {
			return fmt.Errorf("asking for the report of Ray Serve: %w", err)
		}
		r.serve = serve
		return nil
	})
}

// inOneSession asks for something that counts only if the head was in the same session before it and after it; a session
// never comes back. Otherwise it is asked for once more.
func inOneSession(ctx context.Context, client *dashboard.Client, q question, ask func(*reply) error) reply {
	r := reply{answer: answer{asked: q.asked}}
	before := q.known
	if before.Ray == "" {
		version, err := client.Version(ctx)
		if err != nil {
			r.err = fmt.Errorf("asking for the version of Ray: %w", err)
			return r
		}
		before = version
	}
	for range 2 {
		if r.err = ask(&r); r.err != nil {
			return r
		}
		after, err := client.Version(ctx)
		if err != nil {
			r.err = fmt.Errorf("asking for the version of Ray: %w", err)
			return r
		}
		r.version = &after
		if after.Session == before.Session {
			return r
		}
		before = after
	}
	return reply{answer: answer{asked: q.asked, err: errReplaced}, version: r.version}
}

// askProxy asks a Serve proxy whether it takes requests.
func askProxy(ctx context.Context, client *dashboard.Client, q question) reply {
	r := reply{answer: answer{asked: q.asked}}
	if err := client.ProxyHealth(ctx); err != nil {
		r.err = fmt.Errorf("asking the Serve proxy: %w", err)
	}
	return r
}

// askTraffic asks a Pod for what its Serve proxies are busy with.
func askTraffic(ctx context.Context, client *dashboard.Client, q question) reply {
	r := reply{answer: answer{asked: q.asked}}
	traffic, err := client.ServeTraffic(ctx)
	if err != nil {
		r.err = fmt.Errorf("asking for the traffic of the Serve proxies: %w", err)
		return r
	}
	r.traffic = &traffic
	return r
}

// record keeps what came back, and returns the owners to tell and whether the visit can go on.
func (p *Poller) record(asking context.Context, h *host, q question, r reply) ([]Key, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := q.target
	// Whoever broke the request off does not want to know, and nothing was learned about the dashboard.
	if asking.Err() != nil {
		return nil, true
	}
	t.interrupt()
	t.interrupt = nil
	p.metrics.count(r.answer, p.options.Clock.Since(q.asked))

	if r.version != nil {
		h.version, h.staleVersion = *r.version, 0
	}
	if silent(r.err) {
		r.err = aboutDashboard(h.address.url, r.err)
		return p.recordSilence(h, r.answer), false
	}
	now := p.options.Clock.Now()
	h.answered, h.failures, h.retryAt = true, 0, time.Time{}
	before := t.seen
	t.seen = before.after(r.answer, h.version)
	t.counted(before.Ledger, r.answer)
	t.due = now.Add(p.options.Interval)
	if r.err != nil {
		t.due = now.Add(p.backoff(t.seen.Failures))
	}
	if t.seen.tells(before) {
		return []Key{t.Owner}, true
	}
	return nil, true
}

// recordSilence notes for all targets of the host that it gives no answer. The lock is held.
func (p *Poller) recordSilence(h *host, a answer) []Key {
	h.failures++
	h.staleVersion = refreshVersionAfter
	h.retryAt = p.options.Clock.Now().Add(p.backoff(h.failures))
	var changed []Key
	for _, t := range h.targets {
		before := t.seen
		t.seen = before.after(a, h.version)
		if t.seen.tells(before) {
			changed = append(changed, t.Owner)
		}
	}
	return changed
}

// settle ends a visit and arranges the next one.
func (p *Poller) settle(h *host, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.staleVersion++
	h.slow = p.options.Clock.Since(began) > slowVisit
	p.schedule.release(h)
	p.reschedule(h)
}

// aboutDashboard turns an error about one call into one about the dashboard, for targets that were not asked for share it.
func aboutDashboard(url string, err error) error {
	var call *dashboard.CallError
	var status *dashboard.StatusError
	switch {
	case errors.As(err, &call):
		err = call.Err
	case errors.As(err, &status):
		general := *status
		general.Call = ""
		err = &general
	}
	return fmt.Errorf("asking Ray at %s: %w", url, err)
}
