package leadership

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renewalLock reports each write that made or kept this process the holder, with the time its request was sent.
// client-go's elector has no call-back for renewals, and the deadline of a term must follow from them.
//
// It also keeps the elector from releasing a lease that another replica has taken: client-go reads the Lease before the
// release, but decides by what it saw at its last renewal.
type renewalLock struct {
	resourcelock.Interface
	renewed func(sent time.Time, transitions int, made bool)

	holder string // of the Lease that was read last
}

// errNotOurs is the answer to a release of another replica's lease.
var errNotOurs = errors.New("the lease is held by another replica; it is not released")

// Get reads the Lease.
func (l *renewalLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
	}
	return record, raw, err
}

// Create makes the Lease and reports it as a renewal.
func (l *renewalLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, true, l.Interface.Create)
}

// Update renews, acquires or releases the Lease; the first two are reported.
func (l *renewalLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.holder != l.Identity() {
		return errNotOurs
	}
	return l.write(ctx, record, false, l.Interface.Update)
}

func (l *renewalLock) write(
	ctx context.Context,
	record resourcelock.LeaderElectionRecord,
	made bool,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	sent := time.Now()
	if err := send(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == l.Identity() {
		l.renewed(sent, record.LeaderTransitions, made)
	}
	return nil
}
