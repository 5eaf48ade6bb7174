package action

import (
	"context"
	"sync"
)

// batch is what the actions of one plan share while they are performed.
type batch struct {
	*Executor
	actions []Action
	errs    []error
	// slots bounds how many actions are under way at once.
	slots chan struct{}
}

// runAll performs the actions, a bounded number at a time, and returns the error of each. Those that have a key in
// common are begun slowly, one, then two, then four; when the API server refuses one of them, the rest is given up with
// the same error. A quota that has no room for one worker has none for the next hundred.
func (e *Executor) runAll(ctx context.Context, actions []Action) []error {
	b := &batch{Executor: e, actions: actions, errs: make([]error, len(actions)), slots: make(chan struct{}, max(e.Parallel, 1))}
	lines := b.lines()
	if e.Parallel <= 1 {
		// In the order of the plan, which makes simulated histories repeatable.
		for _, line := range lines {
			b.run(ctx, line)
		}
		return b.errs
	}
	var wg sync.WaitGroup
	for _, line := range lines {
		wg.Go(func() { b.run(ctx, line) })
	}
	wg.Wait()
	return b.errs
}

// lines are the positions of the actions of each key, in the order of the plan. An action without a key is a line of
// its own.
func (b *batch) lines() [][]int {
	var lines [][]int
	ofKey := map[string]int{}
	for i, a := range b.actions {
		at, known := ofKey[a.Key()]
		if a.Key() == "" || !known {
			ofKey[a.Key()] = len(lines)
			lines = append(lines, []int{i})
			continue
		}
		lines[at] = append(lines[at], i)
	}
	return lines
}

func (b *batch) run(ctx context.Context, line []int) {
	for size := 1; len(line) > 0; size *= 2 {
		now := line[:min(size, len(line))]
		line = line[len(now):]
		var wg sync.WaitGroup
		for _, i := range now {
			b.slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-b.slots }()
				b.errs[i] = b.do(ctx, b.actions[i])
				logDone(ctx, b.Client.Scheme(), b.actions[i], b.errs[i])
			})
		}
		wg.Wait()
		if err := b.refusal(now); err != nil {
			for _, i := range line {
				b.errs[i] = err
			}
			return
		}
	}
}

func (b *batch) refusal(done []int) error {
	for _, i := range done {
		if refused(b.errs[i]) {
			return b.errs[i]
		}
	}
	return nil
}
