package leadership

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkLimit bounds how long one look at the Holder may take.
const checkLimit = 5 * time.Second

// announce tells that a term has started, and how it stands.
func (k *Keeper) announce(ctx context.Context, standing Standing, took time.Duration) {
	note := fmt.Sprintf("%s leads in term %d, %.1f seconds after it won the lease", k.options.Identity, standing.Term, took.Seconds())
	switch {
	case standing.Fenced:
		k.tell(ctx, corev1.EventTypeNormal, "TermStarted", note+"; the API server refuses writes of all other replicas")
	case standing.Reason == ReasonOff:
		k.tell(ctx, corev1.EventTypeNormal, "TermStarted", note)
	default:
		k.options.Log.Info("The API server does not fence this term", "reason", standing.Reason, "message", standing.Message)
		k.tell(ctx, corev1.EventTypeWarning, "TermStartedUnfenced", note+", without the fence: "+standing.Message)
	}
}

// tell sends an event about the Lease.
func (k *Keeper) tell(ctx context.Context, kind, reason, note string) {
	if k.options.Events == nil {
		return
	}
	lease, err := k.options.Leases.Leases(k.options.Namespace).Get(ctx, k.options.Name, metav1.GetOptions{})
	if err != nil {
		k.options.Log.V(1).Info("An event is not sent, because the Lease cannot be read", "event", reason, "error", err.Error())
		return
	}
	const longest = 1024 // bytes; the API server's limit for a note
	k.options.Events.Eventf(lease, nil, kind, reason, "TakeOver", "%s", note[:min(len(note), longest)])
}

// watch looks from time to time whether this replica is still the holder, or whether the fence can be had by now. In
// either case the term ends, and the replica stands again.
func (k *Keeper) watch(held context.Context, standing Standing) {
	if k.options.Fence == nil || standing.Reason == ReasonNotInPod {
		return
	}
	tick := time.NewTicker(checkPeriod)
	defer tick.Stop()
	for {
		select {
		case <-held.Done():
			return
		case <-tick.C:
		}
		if standing.Fenced {
			k.checkHolder(held, standing.Term)
			continue
		}
		available, err := k.options.Fence.Available(held, standing.Reason)
		if err == nil && available {
			k.options.Log.Info("The fence is there by now; a new term begins behind it")
			k.resign()
		}
	}
}

// Fenced is to be called when the API server has refused a write because this replica is not the holder, see Refused. It
// returns at once. Either the term is over, or the API server that answered lags behind; then everything is planned again
// a little later.
func (k *Keeper) Fenced() {
	k.options.Metrics.refusedBy(byFence)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.valid || k.checking || k.options.Fence == nil {
		return
	}
	k.checking = true
	ended, term := k.ended, k.term
	go func() {
		ours := k.checkHolder(ended, term.Number)
		select {
		case <-ended.Done():
		case <-time.After(k.options.RetryPeriod):
		}
		k.mu.Lock()
		k.checking = false
		k.mu.Unlock()
		if ours && ended.Err() == nil && k.options.OnTerm != nil {
			k.options.OnTerm(term)
		}
	}()
}

// checkHolder ends the term if the Holder names another one. It returns false in that case.
func (k *Keeper) checkHolder(ctx context.Context, term int64) bool {
	limited, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	ours, err := k.options.Fence.Ours(limited, term)
	if err != nil || ours {
		return true
	}
	k.options.Log.Info("Another replica is the holder; this one stands again", "term", term)
	k.tell(limited, corev1.EventTypeWarning, "Fenced", k.options.Identity+" is not the holder any more; its writes were refused by the API server")
	k.resign()
	return false
}

// resign ends the term at once, cancels what is under way, and stands for election again.
func (k *Keeper) resign() {
	k.close()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stand()
}
