package rights

import (
	"context"
	"fmt"
	"sync"
)

// May asks the API server for one right.
type May func(ctx context.Context, right Right) (bool, error)

// Ask asks for rights, a few at once, and returns the answers. After the first question that is not answered no others are
// asked, and the error says why.
func Ask(ctx context.Context, asked []Right, atOnce int, may May) (map[Right]bool, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	answers := map[Right]bool{}
	next := make(chan Right)
	var askers sync.WaitGroup
	for range atOnce {
		askers.Go(func() {
			for right := range next {
				allowed, err := may(ctx, right)
				if err != nil {
					cancel(fmt.Errorf("ask the API server whether one may %s: %w", right, err))
					continue
				}
				mu.Lock()
				answers[right] = allowed
				mu.Unlock()
			}
		})
	}
	for _, right := range asked {
		select {
		case next <- right:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	askers.Wait()
	return answers, context.Cause(ctx)
}

// Refused are those of the rights that were answered with no, in their order.
func Refused(asked []Right, answers map[Right]bool) []Right {
	refused := []Right{}
	for _, right := range asked {
		if allowed, answered := answers[right]; answered && !allowed {
			refused = append(refused, right)
		}
	}
	return refused
}
