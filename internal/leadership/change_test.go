package leadership

import "testing"

func TestChangeTellsOfAnotherTermOnce(t *testing.T) {
	var change Change
	for i, step := range []struct {
		term int64
		want bool
	}{{3, false}, {3, false}, {5, true}, {5, false}, {0, true}, {0, false}} {
		if got := change.Seen(Term{Number: step.term}); got != step.want {
			t.Errorf("step %d: term %d counts as another one: %t, want %t", i, step.term, got, step.want)
		}
	}
}
