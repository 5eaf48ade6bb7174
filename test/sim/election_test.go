package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// The times of the election, as by default.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lease is the Lease: who holds it, and when that was last renewed.
type lease struct {
	holder  string
	renewed time.Duration
}

// holder is the object that the fence compares with.
type holder struct {
	uid  string
	term int64
}

// admit is the fence: of the operators, only the Pod that the holder object names may write. In a namespace that is being
// deleted nothing can be made.
func (w *world) admit(r kube.Request) error {
	if w.vanishing && r.Verb == kube.Create {
		refused := apierrors.NewForbidden(schema.GroupResource{Resource: r.Kind}, r.Name.Name, errors.New("the namespace is being terminated"))
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return refused
	}
	if !isOperator(r.Sender) || w.plan.broken == noFence || r.Sender.UID == w.holder.uid {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: r.Kind}, r.Name.Name,
		fmt.Errorf("heliostat fence: only Pod %s may write, which holds term %d", w.holder.uid, w.holder.term))
}

// renew is what happens to a process when time has passed: it keeps the lease, or learns that it cannot.
func (w *world) renew(p *process) {
	switch {
	case p.stage == standby, p.paused:
	case !w.reaches(p) || p.leaseCut:
		w.lapse(p)
	case w.mono-p.renewed < retryPeriod:
		// It does not look yet.
	case w.lease.holder != p.uid:
		w.endTerm(p)
	default:
		w.extend(p)
	}
}

// extend renews the lease for a process.
func (w *world) extend(p *process) {
	w.lease = lease{holder: p.uid, renewed: w.mono}
	p.renewed, p.deadline = w.mono, w.mono+renewDeadline
}

// lapse ends a term whose deadline has passed.
func (w *world) lapse(p *process) {
	if p.stage != standby && w.mono >= p.deadline {
		w.endTerm(p)
	}
}

// endTerm ends the term of a process, which stays, and gives up what it has under way.
func (w *world) endTerm(p *process) {
	w.note("%s: term %d is over", p.uid, p.term)
	p.stage = standby
	clear(p.poller.saw)
	for _, c := range slices.Clone(w.calls) {
		if c.worker != nil && c.worker.process == p {
			w.abandon(c)
		}
	}
}

// canStand tells whether a process can take the next step towards a term of its own.
func (w *world) canStand(p *process) bool {
	if !w.reaches(p) || p.leaseCut {
		return false
	}
	switch p.stage {
	case standby:
		return w.lease.holder == "" || w.lease.holder == p.uid || w.mono >= w.lease.renewed+leaseDuration
	case won:
		return true
	case fenced:
		return w.plan.broken == noBarrier || !w.behind(p, p.fencedAt)
	default:
		return false
	}
}

// caughtUp asks the real barrier, once, whether the caches show everything that was accepted before the fence moved.
func (w *world) caughtUp(p *process) bool {
	once, cancel := context.WithCancel(context.Background())
	cancel()
	return leadership.Caches{Cache: p.cache, Live: w.server.Live(), Kinds: w.lab.cached}.CatchUp(once) == nil
}

// behind tells whether a cache does not know all changes up to a resourceVersion.
func (w *world) behind(p *process, rv int64) bool {
	return slices.ContainsFunc(w.lab.kinds, func(kind string) bool { return !p.cache.Seen(kind, rv) })
}

// stand takes the next step: win the lease, move the fence, pass the barrier.
func (w *world) stand(p *process) {
	switch p.stage {
	case standby:
		w.terms++
		p.term = w.terms
		w.extend(p)
		p.stage = won
		w.forgetLate(p)
		w.note("%s wins the lease for term %d", p.uid, p.term)
	case won:
		if p.term < w.holder.term {
			w.note("%s cannot move the fence: term %d holds it", p.uid, w.holder.term)
			p.stage = standby
			return
		}
		w.holder = holder{uid: p.uid, term: p.term}
		p.stage, p.fencedAt = fenced, w.server.RV()
		w.note("%s moves the fence to term %d", p.uid, p.term)
	case fenced:
		if w.plan.broken != noBarrier && !w.caughtUp(p) {
			if w.behind(p, w.server.RV()) {
				return // not yet: more was written since
			}
			w.fail("%s: the caches have caught up, but the barrier does not see it", p.uid)
		}
		p.stage = leading
		w.note("%s: term %d begins", p.uid, p.term)
		p.wakeAll()
	}
}

// fenced is what the executor tells when a write was refused: another one leads.
func (p *process) fenced() {
	if p.stage == leading && p.world.holder.uid != p.uid {
		p.world.endTerm(p)
	}
}

// forgetLate drops what the process sent in earlier terms and what has not arrived yet. The fence compares Pods, not
// terms, so it would let such a request in; the protection against it is that no network holds a request so long.
func (w *world) forgetLate(p *process) {
	for _, c := range slices.Clone(w.calls) {
		if c.worker == nil && c.sender.UID == p.uid && !w.plan.lateOwn {
			w.breakOff(c, "is lost for good", errReset())
		}
	}
}

// wakeAll queues everything that the caches show.
func (p *process) wakeAll() {
	for _, bell := range p.bells {
		p.world.must(bell.RingAll(context.Background(), p.cache, bell.list()))
	}
}

// leader returns the process that holds lease, fence and a valid term, or nil.
func (w *world) leader() *process {
	for _, p := range w.processes {
		if p.leads() && w.lease.holder == p.uid && !p.paused {
			return p
		}
	}
	return nil
}
