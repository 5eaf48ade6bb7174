package delete

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func TestInterruptEndsTheQuestion(t *testing.T) {
	// Given somebody who is asked and does not type anything
	k := clitest.New()
	in, typing := io.Pipe()
	t.Cleanup(func() {
		if err := typing.Close(); err != nil {
			t.Error(err)
		}
	})
	k.Env.In = in

	// When they interrupt
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupt signal received")
	interrupt(interrupted)
	agreed, err := ask(ctx, k.Env, nil)

	// Then the question is over, and that is no agreement
	if agreed || !errors.Is(err, interrupted) {
		t.Errorf("agreed: %v, error %v, want %v", agreed, err, interrupted)
	}
	if want := "nothing was deleted: interrupt signal received"; err == nil || err.Error() != want {
		t.Errorf("said %v, want %s", err, want)
	}
}
