package screen

import (
	"context"
	"fmt"
	"time"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// clear moves to the upper left corner and empties the screen below.
const clear = "\x1b[H\x1b[2J"

// every is the pause between two looks.
const every = 2 * time.Second

// Picture is what one look has seen.
type Picture struct {
	// Screen is all of it, for a terminal.
	Screen string
	// Line is the gist without what changes with time alone, for a log.
	Line string
}

// Watch draws again and again until the context ends. On a terminal the screen is drawn in place; elsewhere there is one line for
// each change, so that a log shows what happened. An error ends it only at the first look: later ones may pass, and are shown.
func Watch(ctx context.Context, env *kube.Env, draw func(context.Context) (Picture, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := Picture{}
	for {
		picture, err := draw(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && last == Picture{}:
			return err
		case err != nil:
			picture = Picture{Screen: last.Screen + "\n(" + err.Error() + ")\n", Line: err.Error()}
		}
		if err := show(env, picture, last); err != nil {
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

func show(env *kube.Env, picture, last Picture) error {
	text := ""
	switch {
	case kube.Terminal(env.Out) && picture.Screen != last.Screen:
		text = clear + picture.Screen
	case !kube.Terminal(env.Out) && picture.Line != last.Line:
		text = env.Now().Format(time.RFC3339) + " " + picture.Line + "\n"
	}
	if _, err := fmt.Fprint(env.Out, text); err != nil {
		return fmt.Errorf("write the screen: %w", err)
	}
	return nil
}
