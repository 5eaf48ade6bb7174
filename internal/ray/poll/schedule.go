package poll

import (
	"container/heap"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// minimumGap is the least time between two questions about the same target, whoever asks for a refresh.
const minimumGap = 200 * time.Millisecond

// address tells dashboards apart. The same URL with another token is another dashboard: one may answer, the other not.
type address struct {
	url    string
	secret types.NamespacedName
}

func (t Target) address() address {
	at := address{url: t.BaseURL}
	if t.Secret != "" {
		at.secret = types.NamespacedName{Namespace: t.Owner.Namespace, Name: t.Secret}
	}
	return at
}

// host is a dashboard with the targets on it. Everything in it but the client is guarded by the poller's lock.
type host struct {
	address address
	client  *dashboard.Client
	targets map[Key]*target

	// version is the last one that was read, and staleVersion how many visits ago, or more than that if it is in doubt.
	version      dashboard.Version
	staleVersion int
	// failures is how many visits in a row found the dashboard silent. Until retryAt it is left alone.
	failures int
	retryAt  time.Time
	// answered is true once the dashboard has given any answer, and slow if the last visit took long.
	answered bool
	slow     bool

	// due is the time of the next visit, index the place in the queue of its lane; -1 during a visit or without targets.
	due   time.Time
	index int
	lane  int
	// visiting is true from the moment that a visit was dispatched until it has been settled.
	visiting bool
}

// target is a Target with what was observed of it.
type target struct {
	Target
	host *host
	seen Observation
	due  time.Time
	// interrupt breaks off the request that is on its way; nil if there is none.
	interrupt context.CancelFunc
	// refresh asks for a question as soon as possible, but after the one that is on its way.
	refresh bool
	// want is what is to be asked for besides actors, with AskCensus; brief counts the questions in a row that were for
	// actors alone, and moving means that the last answer was news.
	want   Want
	brief  int
	moving bool
}

// The lanes of the schedule: dashboards that answered well the last time, that failed or were slow the last time, and that
// have never answered.
const (
	trusted = iota
	doubtful
	fresh
	lanes
)

// schedule holds the dashboards that wait for a visit and decides which one is next.
type schedule struct {
	// limit is how many visits may run at the same time.
	limit   int
	waiting [lanes]queue
	running [lanes]int
}

// open reports whether one more visit may begin in the lane. A quarter of the limit is kept for trusted dashboards, and
// each of the other lanes gets at most half, so that dead dashboards do not keep new ones from being asked.
func (s *schedule) open(lane int) bool {
	running := s.running[trusted] + s.running[doubtful] + s.running[fresh]
	if running >= s.limit {
		return false
	}
	if lane == trusted {
		return true
	}
	unproven := s.running[doubtful] + s.running[fresh]
	return s.running[lane] < max(1, s.limit/2) && unproven < max(1, s.limit-max(1, s.limit/4))
}

// first returns the host that is due first among those that may be visited, or nil.
func (s *schedule) first() *host {
	var first *host
	for lane := range s.waiting {
		if !s.open(lane) || len(s.waiting[lane]) == 0 {
			continue
		}
		if h := s.waiting[lane][0]; first == nil || h.due.Before(first.due) {
			first = h
		}
	}
	return first
}

// next returns when the next visit can begin; false if that depends on the end of a running one, or on a new target.
func (s *schedule) next() (time.Time, bool) {
	h := s.first()
	if h == nil {
		return time.Time{}, false
	}
	return h.due, true
}

// take removes and returns a host that is due, or nil. The caller visits it and gives it back with release.
func (s *schedule) take(now time.Time) *host {
	h := s.first()
	if h == nil || h.due.After(now) {
		return nil
	}
	s.remove(h)
	h.visiting = true
	s.running[h.lane]++
	return h
}

// release ends a visit.
func (s *schedule) release(h *host) {
	h.visiting = false
	s.running[h.lane]--
}

// put makes the host wait for its due time, or moves it if it waits already.
func (s *schedule) put(h *host) {
	s.remove(h)
	switch {
	case h.failures > 0 || h.slow:
		h.lane = doubtful
	case !h.answered:
		h.lane = fresh
	default:
		h.lane = trusted
	}
	heap.Push(&s.waiting[h.lane], h)
}

// remove makes the host wait no more.
func (s *schedule) remove(h *host) {
	if h.index >= 0 {
		heap.Remove(&s.waiting[h.lane], h.index)
	}
}

// queue is a heap of hosts by due time.
type queue []*host

// Len, Less, Swap, Push and Pop are what container/heap needs.
func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a host.
func (q *queue) Push(x any) {
	h := x.(*host)
	h.index = len(*q)
	*q = append(*q, h)
}

// Pop removes the last host.
func (q *queue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	h.index = -1
	return h
}

// host returns the dashboard at the address, which it makes if need be. The lock is held.
func (p *Poller) host(at address) *host {
	if h, ok := p.hosts[at]; ok {
		return h
	}
	var token dashboard.TokenSource
	if at.secret.Name != "" {
		token = p.options.Tokens(at.secret)
	}
	h := &host{
		address: at,
		client: dashboard.New(at.url, dashboard.WithHTTPClient(p.options.HTTPClient), dashboard.WithToken(token),
			dashboard.WithTimeouts(p.options.Timeout, 0)),
		targets:      map[Key]*target{},
		staleVersion: refreshVersionAfter,
		index:        -1,
	}
	p.hosts[at] = h
	return h
}

// remove drops a target, and its host with the last one. The lock is held.
func (p *Poller) remove(t *target) {
	if t.interrupt != nil {
		t.interrupt()
	}
	delete(p.targets, t.Owner)
	delete(t.host.targets, t.Owner)
	p.reschedule(t.host)
}

// reschedule puts a host into the queue at the time at which its first target is due. A host that is being visited is left
// to the end of the visit. The lock is held.
func (p *Poller) reschedule(h *host) {
	if h.visiting {
		return
	}
	if len(h.targets) == 0 {
		p.schedule.remove(h)
		delete(p.hosts, h.address)
		return
	}
	first := true
	for _, t := range h.targets {
		if t.refresh {
			p.hurry(t)
		}
		if first || t.due.Before(h.due) {
			h.due = t.due
			first = false
		}
	}
	if h.due.Before(h.retryAt) {
		h.due = h.retryAt
	}
	p.schedule.put(h)
	p.rouse()
}

// hurry makes the target due now and ends the sparing of its host. The lock is held.
func (p *Poller) hurry(t *target) {
	t.refresh = false
	t.due = p.options.Clock.Now()
	if soonest := t.seen.Asked.Add(minimumGap); t.due.Before(soonest) {
		t.due = soonest
	}
	t.host.retryAt = time.Time{}
}

// backoff returns how long to wait after so many failures in a row: the interval, doubled with each, up to the maximum,
// of which between half and all is taken. The lock is held.
func (p *Poller) backoff(failures int) time.Duration {
	delay := p.options.Interval
	for i := 1; i < failures && delay < p.options.MaxBackoff; i++ {
		delay *= 2
	}
	delay = min(delay, p.options.MaxBackoff)
	return delay/2 + time.Duration(p.random.Float64()*float64(delay/2))
}
