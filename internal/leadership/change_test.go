package leadership

import (
	"context"
	"testing"
	"time"
)

// inTerm is a Gate in one term.
type inTerm int64

func (g inTerm) Current() (Term, bool) { return Term{Number: int64(g)}, true }

func (g inTerm) Enter(ctx context.Context) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

func TestChangeTellsOfAnotherTermOnce(t *testing.T) {
	var change Change
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	for i, step := range []struct {
		term  int64
		want  bool
		since int
	}{{3, false, 0}, {3, false, 0}, {5, true, 2}, {5, false, 2}, {0, true, 4}, {0, false, 4}} {
		changed, since := change.Seen(inTerm(step.term), at(i))
		if changed != step.want || !since.Equal(at(step.since)) {
			t.Errorf("step %d: term %d counts as another one: %t, want %t; known since second %d, want %d",
				i, step.term, changed, step.want, since.Unix(), step.since)
		}
	}
}
