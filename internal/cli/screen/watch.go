package screen

import (
	"context"
	"fmt"
	"io"
	"time"
)

// clear moves to the upper left corner and empties the screen below.
const clear = "\x1b[H\x1b[2J"

// every is the pause between two looks.
const every = 2 * time.Second

// Watch draws again and again until the context ends or draw fails. On a terminal the picture is drawn in place; elsewhere
// it is written once for each change, so that a log shows what happened.
func Watch(ctx context.Context, out io.Writer, terminal bool, draw func(context.Context) (string, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for {
		picture, err := draw(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := show(out, terminal, picture, last); err != nil {
			return err
		}
		last = picture
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func show(out io.Writer, terminal bool, picture, last string) error {
	if picture == last {
		return nil
	}
	if terminal {
		picture = clear + picture
	}
	if _, err := fmt.Fprint(out, picture); err != nil {
		return fmt.Errorf("write the screen: %w", err)
	}
	return nil
}
