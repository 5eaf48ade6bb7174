package diagnose

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestStandingOfALease(t *testing.T) {
	before := func(since time.Duration) *metav1.MicroTime { return ptr.To(metav1.NewMicroTime(now.Add(-since))) }
	for name, tc := range map[string]struct {
		change func(*coordinationv1.LeaseSpec)
		want   LeaseStanding
	}{
		"given a holder that renews":          {func(*coordinationv1.LeaseSpec) {}, LeaseHeld},
		"given one that was renewed long ago": {func(l *coordinationv1.LeaseSpec) { l.RenewTime = before(5 * time.Minute) }, LeaseExpired},
		"given one that was never renewed":    {func(l *coordinationv1.LeaseSpec) { l.RenewTime = nil }, LeaseExpired},
		"given a long duration, the same is well": {func(l *coordinationv1.LeaseSpec) {
			l.RenewTime, l.LeaseDurationSeconds = before(5*time.Minute), ptr.To[int32](120)
		}, LeaseHeld},
		"given no duration, the usual one":                 {func(l *coordinationv1.LeaseSpec) { l.RenewTime, l.LeaseDurationSeconds = before(2*time.Minute), nil }, LeaseHeld},
		"given a holder that has let go":                   {func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = ptr.To("") }, LeaseReleased},
		"given a holder that let go long ago":              {func(l *coordinationv1.LeaseSpec) { l.HolderIdentity, l.RenewTime = nil, before(time.Hour) }, LeaseExpired},
		"given many holders, and another one a minute ago": {func(l *coordinationv1.LeaseSpec) { l.AcquireTime = before(time.Minute) }, LeaseContested},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			tc.change(&s.Operator.Leases[0].Spec)
			if got := s.StandingOf(s.Operator.Leases[0]); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheLatestLeaseCounts(t *testing.T) {
	s := healthy()
	latest, old, never := s.Operator.Leases[0], s.Operator.Leases[0].DeepCopy(), &coordinationv1.Lease{}
	old.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now.Add(-time.Hour)))
	s.Operator.Leases = []*coordinationv1.Lease{never, latest, old}
	if got := s.Operator.LatestLease(); got != latest {
		t.Errorf("got %v", got)
	}
	if got := (&Operator{}).LatestLease(); got != nil {
		t.Errorf("of none got %v", got)
	}
}
