package job

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func TestTheStyleOfTheProgress(t *testing.T) {
	ray := newFakeRay(t, "")
	ray.Script("mine", fakedashboard.Steps("SUCCEEDED")...)
	w := newWorld(t, ray)
	code := w.submit(t, "--log-style", "record", "--log-color", "true", "--name", "j", "--submission-id", "mine", "--working-dir", sources(t), "--", "python", "main.py")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, w.ErrOut)
	}
	for line := range strings.Lines(w.ErrOut.String()) {
		if !strings.HasPrefix(line, "2026-11-30T12:00:00Z ") {
			t.Errorf("no time before %q", line)
		}
	}
	if !strings.HasSuffix(w.ErrOut.String(), "Job mine \x1b[32mSUCCEEDED\x1b[0m.\n") {
		t.Errorf("the result is not green: %q", w.ErrOut)
	}
}

func TestTheBarGrowsWithTheUpload(t *testing.T) {
	cases := map[string]struct {
		live bool
		want string
	}{
		"given a person watches, then a bar is drawn over the one before": {true,
			"\rUploading [====================                    ]  50%\rUploading [========================================] 100%\n"},
		"given nobody does, then none is": {false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			u := &upload{Reader: strings.NewReader("1234"), progress: &progress{out: &out, now: clitest.Now, live: tc.live}, size: 4, moved: func() {}}
			for range 2 {
				if _, err := io.ReadFull(u, make([]byte, 2)); err != nil {
					t.Fatal(err)
				}
			}
			if out.String() != tc.want {
				t.Errorf("drew %q, want %q", &out, tc.want)
			}
		})
	}
}
