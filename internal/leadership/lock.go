package leadership

import (
	"context"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renewalLock reports each write that made or kept this process the holder, with the time its request was sent.
// client-go's elector has no call-back for renewals, and the deadline of a term must follow from them.
type renewalLock struct {
	resourcelock.Interface
	renewed func(sent time.Time, transitions int)
}

// Create makes the Lease and reports it as a renewal.
func (l *renewalLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update renews, acquires or releases the Lease; the first two are reported.
func (l *renewalLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *renewalLock) write(
	ctx context.Context,
	record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	sent := time.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == l.Identity() {
		l.renewed(sent, record.LeaderTransitions)
	}
	return nil
}
