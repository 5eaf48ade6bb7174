package leadership

import (
	"errors"
	"testing"
	"time"
)

func TestWhatWasPlannedInAnEarlierTermIsNotAdmitted(t *testing.T) {
	k := &Keeper{term: Term{Number: 3, Deadline: time.Now().Add(time.Hour)}, valid: true, ended: t.Context()}
	planned := Planned(t.Context(), Term{Number: 3})
	for _, admitted := range []bool{true, false} {
		_, done, err := k.Enter(planned)
		if admitted != (err == nil) || !admitted && !errors.Is(err, ErrNoTerm) {
			t.Errorf("in term %d: %v", k.term.Number, err)
		}
		if err == nil {
			done()
		}
		k.term.Number = 5
	}
	_, done, err := k.Enter(t.Context())
	if err != nil {
		t.Fatalf("what was planned in no term is admitted in any: %v", err)
	}
	done()
}
