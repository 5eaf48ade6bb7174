package diagnose

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// LeaseStanding is how it stands with a Lease of the operator.
type LeaseStanding int

const (
	// LeaseHeld has a holder that renews it.
	LeaseHeld LeaseStanding = iota + 1
	// LeaseReleased has none, since a moment ago: a replica is about to take it.
	LeaseReleased
	// LeaseContested is held, and has changed hands often and again just now.
	LeaseContested
	// LeaseExpired is renewed by nobody.
	LeaseExpired
)

const (
	// manyTransitions is the number of holders from which on a Lease that has just changed hands counts as contested.
	manyTransitions = 5
	// justChanged is how long ago that was at most.
	justChanged = 10 * time.Minute
	// skew is by how much the clocks of a user and of the operator may differ.
	skew = 2 * time.Minute
)

// StandingOf judges a Lease.
func (s *Snapshot) StandingOf(l *coordinationv1.Lease) LeaseStanding {
	duration := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 15)) * time.Second
	taken := l.Spec.AcquireTime
	switch {
	case l.Spec.RenewTime == nil || s.Now.Sub(l.Spec.RenewTime.Time) > 2*duration+skew:
		return LeaseExpired
	case ptr.Deref(l.Spec.HolderIdentity, "") == "":
		return LeaseReleased
	case s.often(l) && taken != nil && s.Now.Sub(taken.Time) < justChanged && !s.newlyMade(l):
		return LeaseContested
	default:
		return LeaseHeld
	}
}

// LatestLease is the Lease that was renewed last, or nil where there is none: one of an earlier installation may be left over.
func (o *Operator) LatestLease() *coordinationv1.Lease {
	if len(o.Leases) == 0 {
		return nil
	}
	renewed := func(l *coordinationv1.Lease) time.Time {
		if l.Spec.RenewTime == nil {
			return time.Time{}
		}
		return l.Spec.RenewTime.Time
	}
	return slices.MaxFunc(o.Leases, func(a, b *coordinationv1.Lease) int { return renewed(a).Compare(renewed(b)) })
}

// often tells whether a Lease changes hands more than once an hour. Each upgrade of the operator and each drained node is one change, so
// over months many are well.
func (s *Snapshot) often(l *coordinationv1.Lease) bool {
	if l.Spec.LeaseTransitions == nil || l.CreationTimestamp.IsZero() || *l.Spec.LeaseTransitions < manyTransitions {
		return false
	}
	return float64(*l.Spec.LeaseTransitions) > s.Now.Sub(l.CreationTimestamp.Time).Hours()
}

// newlyMade tells whether the holder of a Lease is a Pod that was made just now and has not restarted, as after an upgrade. The operator
// names itself by its Pod and the time of its start.
func (s *Snapshot) newlyMade(l *coordinationv1.Lease) bool {
	if l.Spec.HolderIdentity == nil {
		return false
	}
	name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	pod := named(s.Operator.Pods, name)
	restarted := func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 }
	return pod != nil && s.youngerThan(pod.CreationTimestamp, justChanged) && !slices.ContainsFunc(pod.Status.ContainerStatuses, restarted)
}
