package sim

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is the work queue of one controller on the simulated clock. It keeps the rules of controller-runtime's priority
// queue: an object stands in it once, at the earliest time that was asked for, and is not handed out while it is worked on.
type queue struct {
	worker *worker

	mu       sync.Mutex // sources fill it from several goroutines while a controller starts
	due      map[reconcile.Request]time.Duration
	failures map[reconcile.Request]int
	next     chan reconcile.Request
	shut     chan struct{}
	once     sync.Once
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = (*queue)(nil)

func newQueue(w *worker) *queue {
	return &queue{worker: w, due: map[reconcile.Request]time.Duration{}, failures: map[reconcile.Request]int{},
		next: make(chan reconcile.Request), shut: make(chan struct{})}
}

// Add asks for a pass now.
func (q *queue) Add(item reconcile.Request) { q.AddAfter(item, 0) }

// AddAfter asks for a pass after a time.
func (q *queue) AddAfter(item reconcile.Request, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.worker.world().mono + after
	if due, ok := q.due[item]; !ok || at < due {
		q.due[item] = at
	}
}

// AddRateLimited asks for a pass after a failed one; the wait doubles each time, from 5 ms.
func (q *queue) AddRateLimited(item reconcile.Request) {
	q.mu.Lock()
	count := q.failures[item]
	q.failures[item]++
	q.mu.Unlock()
	q.AddAfter(item, min(5*time.Millisecond<<min(count, 18), 1000*time.Second))
}

// Forget ends a row of failures.
func (q *queue) Forget(item reconcile.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failures, item)
}

// NumRequeues returns the length of the row of failures.
func (q *queue) NumRequeues(item reconcile.Request) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures[item]
}

// Get gives control back to the scheduler and waits for an object from it.
func (q *queue) Get() (reconcile.Request, bool) {
	q.worker.busy = false
	q.worker.world().control <- struct{}{}
	if q.worker.process.dead {
		return reconcile.Request{}, true
	}
	select {
	case item := <-q.next:
		return item, false
	case <-q.shut:
		return reconcile.Request{}, true
	}
}

// Done has nothing to do: the worker is idle when it asks for the next object.
func (q *queue) Done(reconcile.Request) {}

// Len returns how many objects wait.
func (q *queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.due)
}

// ShutDown lets the worker end.
func (q *queue) ShutDown() { q.once.Do(func() { close(q.shut) }) }

// ShutDownWithDrain lets the worker end.
func (q *queue) ShutDownWithDrain() { q.ShutDown() }

// ShuttingDown tells whether the worker is to end.
func (q *queue) ShuttingDown() bool {
	select {
	case <-q.shut:
		return true
	default:
		return false
	}
}

// ready returns the objects that are due, in order.
func (q *queue) ready(now time.Duration) []reconcile.Request {
	var ready []reconcile.Request
	for item, due := range q.due {
		if due <= now {
			ready = append(ready, item)
		}
	}
	if len(ready) > 1 {
		sortRequests(ready)
	}
	return ready
}

// nextDue returns when the next object is due that is not due yet.
func (q *queue) nextDue(now time.Duration) (at time.Duration, ok bool) {
	for _, due := range q.due {
		if due > now && (!ok || due < at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// hand gives an object to the worker, which runs until it parks or is done.
func (q *queue) hand(item reconcile.Request) {
	delete(q.due, item)
	q.worker.busy = true
	q.next <- item
	<-q.worker.world().control
}

func compareRequests(a, b reconcile.Request) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
