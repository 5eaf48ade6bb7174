package screen

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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
	last, shown := Picture{}, drawing{}
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
		if shown, err = show(env, picture, last, shown); err != nil {
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

// show writes a picture if it is another than the last one. It returns what is on the terminal now.
func show(env *kube.Env, picture, last Picture, shown drawing) (drawing, error) {
	text := ""
	now := shown
	if kube.Terminal(env.Out) {
		now.columns, now.rows = kube.Size(env.Out)
		now.text = fit(picture.Screen, now.columns, now.rows)
		// A terminal that has another size has moved what stood there.
		if now != shown {
			text = clear + now.text
		}
	} else if picture.Line != last.Line {
		text = env.Now().Format(time.RFC3339) + " " + picture.Line + "\n"
	}
	if _, err := fmt.Fprint(env.Out, text); err != nil {
		return now, fmt.Errorf("write the screen: %w", err)
	}
	return now, nil
}

// drawing is what stands on a terminal of some size.
type drawing struct {
	text          string
	columns, rows int
}

// fit returns as many of the first lines of a text as a screen has room for, and says how many are left out. Otherwise the
// terminal would scroll the first lines away. A line that is wider than the screen takes several rows of it.
func fit(text string, columns, rows int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	lines = lines[:len(lines)-1]
	// The cursor stands on the last row.
	room, used, shown := rows-1, 0, 0
	for i, line := range lines {
		used += height(line, columns)
		if used < room {
			shown = i + 1
		}
	}
	if used <= room || shown == 0 {
		return text
	}
	return strings.Join(lines[:shown], "") + fmt.Sprintf("(%d more lines)\n", len(lines)-shown)
}

// height is how many rows of a screen a line takes.
func height(line string, columns int) int {
	// What sets colours takes no room.
	plain := strings.NewReplacer(reset, "", bold, "", red, "", yellow, "", "\n", "").Replace(line)
	width := utf8.RuneCountInString(plain)
	if columns <= 0 || width == 0 {
		return 1
	}
	return (width + columns - 1) / columns
}
