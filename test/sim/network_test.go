package sim

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// call is a request under way. The one who sent it waits for the answer, or has given up while the request travels on.
type call struct {
	// worker waits for the answer; nil when nobody does.
	worker *worker
	sender kube.Sender
	what   string
	// kind is that of the object that is written, or empty.
	kind string
	// mutates is false for reads; patch is true for patches.
	mutates, patch bool
	// carryOut is what happens when the request arrives.
	carryOut func() (any, error)
	// held requests are stuck in the network until the faults are over.
	held bool
	done bool
	// lost is what the sender gets instead of the answer.
	lost error
	// answer and err are what the sender gets.
	answer any
	err    error
}

// toRay tells requests to Ray from those to the API server.
func (c *call) toRay() bool { return strings.HasPrefix(c.what, "Ray ") }

// exchange sends a request and waits for its answer.
func (p *process) exchange(ctx context.Context, c *call) (any, error) {
	w := p.world
	worker := workerOf(ctx)
	c.worker, c.sender = worker, kube.Sender{Name: p.name, UID: p.uid, Term: p.term}
	if c.mutates {
		w.sent++
		if worker.matters {
			w.spots = append(w.spots, w.sent)
		}
	}
	w.calls = append(w.calls, c)
	if c.mutates && w.sent == w.plan.at {
		w.note("incident: %s at: %s", w.plan.incident.name, c.what)
		w.plan.incident.strike(p, c)
	}
	if !c.mutates && p.blind {
		p.blind, c.lost = false, errReset()
	}
	if err := worker.park(func() bool { return c.done }); err != nil {
		return nil, err
	}
	return c.answer, c.err
}

// send is how the process's client writes to the API server.
func (p *process) send(ctx context.Context, r kube.Request) (client.Object, error) {
	r.Sender = kube.Sender{Name: p.name, UID: p.uid, Term: p.term}
	var rv int64
	answer, err := p.exchange(ctx, &call{what: r.String(), kind: r.Kind, mutates: true, patch: r.Verb == kube.Patch, carryOut: func() (any, error) {
		object, err := p.world.server.Do(r)
		rv = p.world.server.RV()
		return object, err
	}})
	if err != nil {
		return nil, err
	}
	p.own[r.Kind], p.own[r.Kind+"/"+r.Name.String()] = rv, rv
	return answer.(client.Object), nil
}

// arrive lets a request arrive, and answers it.
func (w *world) arrive(c *call) {
	w.tick()
	if !slices.Contains(w.calls, c) {
		return // its sender gave up in that moment
	}
	c.answer, c.err = c.carryOut()
	if c.lost != nil {
		c.err = c.lost
	}
	if c.mutates || c.err != nil {
		w.note("%s: %s%s", c.sender.UID, c.what, outcome(c.err))
	}
	w.settleCall(c)
}

// breakOff answers a request that does not arrive, or whose true answer is lost.
func (w *world) breakOff(c *call, why string, err error) {
	w.note("%s: %s: %s", c.sender.UID, c.what, why)
	c.answer, c.err = nil, err
	w.settleCall(c)
}

func (w *world) settleCall(c *call) {
	c.done = true
	w.calls = slices.DeleteFunc(w.calls, func(other *call) bool { return other == c })
}

// abandon lets the sender give up a request, which travels on.
func (w *world) abandon(c *call) {
	if !c.mutates {
		w.breakOff(c, "is given up", context.DeadlineExceeded)
		return
	}
	w.note("%s gives up waiting for: %s", c.sender.UID, c.what)
	c.answer, c.err, c.done, c.worker = nil, context.DeadlineExceeded, true, nil
}

func outcome(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// live reads from the API server.
type live struct{ process *process }

// Get reads one object when the request arrives.
func (l live) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	_, err := l.process.exchange(ctx, &call{what: "read " + key.Name, carryOut: func() (any, error) {
		return nil, l.process.world.server.Live().Get(ctx, key, into, options...)
	}})
	return err
}

// List reads objects when the request arrives.
func (l live) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	_, err := l.process.exchange(ctx, &call{what: "list", carryOut: func() (any, error) {
		return nil, l.process.world.server.Live().List(ctx, into, options...)
	}})
	return err
}

// cached reads from the caches of the process, as the client of controller-runtime does that waits for its own writes.
type cached struct{ process *process }

// Get waits for the process's own writes of the object.
func (r cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind := r.process.world.lab.schema.KindOf(into)
	if err := r.wait(ctx, kind, r.process.own[kind+"/"+key.String()]); err != nil {
		return err
	}
	return r.process.cache.Get(ctx, key, into, options...)
}

// List waits for the process's own writes of the kind.
func (r cached) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	kind := r.process.world.lab.schema.KindOf(into)
	if err := r.wait(ctx, kind, r.process.own[kind]); err != nil {
		return err
	}
	return r.process.cache.List(ctx, into, options...)
}

func (r cached) wait(ctx context.Context, kind string, rv int64) error {
	p := r.process
	worker := workerOf(ctx)
	if worker == nil || !worker.busy || p.hears {
		return nil // a handler of events, which waits for nothing
	}
	seen := func() bool { return !p.world.plan.readOwnWrites || p.cache.Seen(kind, rv) }
	torn := p.world.plan.tornReads && p.world.chaos && p.world.rng.IntN(24) == 0
	if !torn && seen() {
		if p.dead {
			return errKilled
		}
		return nil
	}
	return worker.park(seen)
}

// isOperator tells the operator's requests from those of the rest of Kubernetes.
func isOperator(s kube.Sender) bool { return strings.HasPrefix(s.Name, "operator") }
