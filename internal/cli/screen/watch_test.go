package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// look is one look, or the error of it.
type look struct {
	picture Picture
	err     error
}

// watch lets the looks be seen one after the other, and returns how it ended.
func watch(t *testing.T, out io.Writer, looks ...look) error {
	t.Helper()
	env := kube.NewEnv(genericiooptions.IOStreams{Out: out}, "kubectl ray", "test")
	env.Now = func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	var ended error
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		next := 0
		ended = Watch(ctx, env, func(context.Context) (Picture, error) {
			if next == len(looks) {
				stop()
				return Picture{}, nil
			}
			next++
			return looks[next-1].picture, looks[next-1].err
		})
	})
	return ended
}

func TestWatchOffATerminalSaysChanges(t *testing.T) {
	var out bytes.Buffer
	err := watch(t, &out,
		look{picture: Picture{"age 1s", "it starts"}}, look{picture: Picture{"age 3s", "it starts"}},
		look{err: errors.New("no answer")}, look{picture: Picture{"age 7s", "it is ready"}})
	want := "2026-11-30T12:00:00Z it starts\n2026-11-30T12:00:00Z no answer\n2026-11-30T12:00:00Z it is ready\n"
	if err != nil || out.String() != want {
		t.Errorf("wrote %q, want %q (%v)", out.String(), want, err)
	}
}

func TestWatchEndsWhenTheFirstLookFails(t *testing.T) {
	wanted := errors.New("not there")
	if err := watch(t, io.Discard, look{err: wanted}); !errors.Is(err, wanted) {
		t.Errorf("ended with %v, want %v", err, wanted)
	}
}

// TestWatchOnATerminalDrawsInPlace uses a terminal of the kernel, which tells that it is one and how wide it is.
func TestWatchOnATerminalDrawsInPlace(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: 57}); err != nil {
		t.Fatal(err)
	}
	if got := kube.Width(terminal); got != 57 {
		t.Errorf("it is %d columns wide, want 57", got)
	}
	if err := watch(t, terminal, look{picture: Picture{"one\n", "x"}}, look{picture: Picture{"one\n", "x"}}, look{picture: Picture{"two\n", "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	// Linux ends the reading of a terminal that nobody has open any more with an error.
	text, _ := io.ReadAll(master)
	want := clear + "one\n" + clear + "two\n"
	if got := strings.ReplaceAll(string(text), "\r\n", "\n"); got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

func TestFit(t *testing.T) {
	five := "one\ntwo\nthree\nfour\nfive\n"
	for name, test := range map[string]struct {
		text          string
		columns, rows int
		want          string
	}{
		"all of it fits, with the cursor below": {five, 20, 6, five},
		"one row is missing":                    {five, 20, 5, "one\ntwo\nthree\n(2 more lines)\n"},
		"a long line takes two rows":            {"0123456789\n0123456789ab\nend\n", 10, 4, "0123456789\n(2 more lines)\n"},
		"colours take no room":                  {"\x1b[31m0123456789\x1b[0m\nend\n", 10, 3, "\x1b[31m0123456789\x1b[0m\nend\n"},
		"the size is not known":                 {five, 0, 0, five},
		"there is no room for anything":         {five, 20, 1, five},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fit(test.text, test.columns, test.rows); got != test.want {
				t.Errorf("it shows %q, want %q", got, test.want)
			}
		})
	}
}
