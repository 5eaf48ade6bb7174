package kube

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Sleep waits for the span of time. When the context ends first, it returns the context's error at once.
func Sleep(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-clock.RealClock{}.After(span):
		return nil
	}
}
