package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock waits until no other process holds the lock on file and takes it. The
// lock is given back by the returned function, or by the kernel when the
// process ends in whatever way. onWait, if not nil, is called once when it has
// to wait.
func Lock(ctx context.Context, file string, onWait func()) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the lock %s: %w", file, err)
	}
	held, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock %s: %w", file, err)
	}
	for {
		err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { held.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			held.Close()
			return nil, fmt.Errorf("locking %s: %w", file, err)
		}
		if onWait != nil {
			onWait()
			onWait = nil
		}
		select {
		case <-ctx.Done():
			held.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", file, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
