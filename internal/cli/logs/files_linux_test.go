package logs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/cli/podtest"
)

// put writes to the end of a file.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// here runs a command on this machine and shows its lines.
func here(t *testing.T, command []string) *podtest.Screen {
	t.Helper()
	screen := podtest.NewScreen()
	printed := &printer{out: screen}
	files := &titled{each: printed.line}
	out := &lines{each: files.line}
	ctx, cancel := context.WithCancel(t.Context())
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Stdout = out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = run.Wait() // It was killed.
	})
	return screen
}

func TestFilesThatComeLaterAreFollowed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	screen := here(t, followFilesCommand(dir, 1, "0.01"))
	// Nothing is there yet, not even the directory.
	if err := os.Mkdir(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "notes.txt", "no log\n")
	put(t, dir, "worker-1.out", "one\n")
	screen.Await(t, "[worker-1.out] one\n")
	put(t, dir, "worker-2.err", "another\n")
	screen.Await(t, "[worker-2.err] another\n")
	put(t, dir, "worker-1.out", "two\nthree\n")
	screen.Await(t, "[worker-1.out] three\n")
	if err := os.Rename(filepath.Join(dir, "worker-1.out"), filepath.Join(dir, "worker-1.out.1")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "worker-1.out", "after the rotation\n")
	screen.Await(t, "[worker-1.out] after the rotation\n")
	want := "[worker-1.out] one\n[worker-2.err] another\n[worker-1.out] two\n[worker-1.out] three\n[worker-1.out] after the rotation\n"
	if diff := cmp.Diff(want, screen.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestFilesArePrintedOnce(t *testing.T) {
	cases := map[string]struct {
		files map[string]string
		tail  int64
		want  string
	}{
		"given none, then nothing":               {tail: everything},
		"given some, then all of them":           {map[string]string{"a.log": "1\n2\n", "b.out": "3\n", "c.txt": "4\n"}, everything, "==> a.log <==\n1\n2\n\n==> b.out <==\n3\n"},
		"given a number, then that many of each": {map[string]string{"a.log": "1\n2\n"}, 1, "==> a.log <==\n2\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				put(t, dir, name, text)
			}
			command := printFilesCommand(dir, tc.tail)
			got, err := exec.CommandContext(t.Context(), command[0], command[1:]...).Output()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}
