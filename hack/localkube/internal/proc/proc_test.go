package proc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test program play the launcher.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		// launch --name N --records DIR --netns FILE -- ARGS
		err := Launch(os.Args[3], os.Args[5], os.Args[7], os.Args[9:])
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newStarter(t *testing.T) Starter {
	t.Helper()
	dir := t.TempDir()
	return Starter{RecordDir: dir, LogDir: dir, Launcher: []string{"/proc/self/exe", "launch"}}
}

func TestParseStat(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    stat
		wantErr bool
	}{
		"a plain name": {
			text: "7 (sleep) S 1 7 7 0 -1 4194560 88 0 0 0 0 0 0 0 20 0 1 0 12345 2355200 200",
			want: stat{state: 'S', parent: 1, startTicks: 12345},
		},
		"a name with spaces and parentheses": {
			text: "7 (a) b (c) Z 42 7 7 0 -1 4194560 88 0 0 0 0 0 0 0 20 0 1 0 99 2355200 200",
			want: stat{state: 'Z', parent: 42, startTicks: 99},
		},
		"a text that is cut":    {text: "7 (sleep) S 1 7", wantErr: true},
		"a text without a name": {text: "7", wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(test.text))
			if (err != nil) != test.wantErr {
				t.Fatalf("got error %v, want one: %t", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(stat{})); diff != "" {
				t.Errorf("stat (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIsShimOf(t *testing.T) {
	const socket = "/run/localkube/clusters/a/n1/containerd.sock"
	tests := map[string]struct {
		args []string
		want bool
	}{
		"our shim": {
			args: []string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "x", "-address", socket}, want: true,
		},
		"a shim of another containerd": {
			args: []string{"/usr/bin/containerd-shim-runc-v2", "-address", "/run/containerd/containerd.sock"},
		},
		"a shim of a node whose name begins like ours": {
			args: []string{"/usr/bin/containerd-shim-runc-v2", "-address", socket + "2"},
		},
		"an editor that has our socket on its command line": {args: []string{"vi", "-address", socket}},
		"a shim without an address":                         {args: []string{"containerd-shim-runc-v2", "-address"}},
		"a kernel thread":                                   {args: []string{""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			line := strings.Join(test.args, "\x00") + "\x00"
			if got := isShimOf([]byte(line), socket); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestStartedProgramIsRecordedAndStopped(t *testing.T) {
	starter := newStarter(t)
	daemon, err := starter.Start(Spec{Name: "sleeper", Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	var records []Record
	err = WaitFor(t.Context(), time.Minute, "the record is there", func(context.Context) error {
		records, err = Records(starter.RecordDir)
		if err == nil && len(records) == 0 {
			return errors.New("no record yet")
		}
		return err
	}, daemon)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 1 || records[0].Name != "sleeper" || !records[0].Alive() {
		t.Fatalf("got records %+v, want one of a living process called sleeper", records)
	}
	if err := Stop(records[0], time.Minute); err != nil {
		t.Fatal(err)
	}
	daemon.Wait()
	if records[0].Alive() {
		t.Error("the process runs although it was stopped")
	}
	if err := Stop(records[0], 0); err != nil {
		t.Errorf("stopping it a second time: %v", err)
	}
}

func TestStopLeavesAnotherProcessOfThatIDAlone(t *testing.T) {
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		command.Process.Kill()
		command.Wait()
	}()
	live, err := recordOf("sleeper", command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	earlier, reboot := live, live
	earlier.StartTicks--
	reboot.BootID = "another boot"
	for _, stale := range []Record{earlier, reboot} {
		if stale.Alive() {
			t.Errorf("record %+v counts as alive, its process is %+v", stale, live)
		}
		if err := Stop(stale, 0); err != nil {
			t.Errorf("stopping stale record: %v", err)
		}
	}
	if !live.Alive() {
		t.Error("a process was killed that the record does not name")
	}
}

func TestWaitForShowsTheLogOfAProgramThatEnds(t *testing.T) {
	starter := newStarter(t)
	daemon, err := starter.Start(Spec{Name: "broken", Args: []string{"sh", "-c", "echo no such port; exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	err = WaitFor(t.Context(), time.Minute, "it is ready", func(context.Context) error { return errors.New("never") }, daemon)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such port") {
		t.Errorf("got error %v, want one with the exit status and the log", err)
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("x", tailWidth+1)
	tests := map[string]struct {
		content string
		want    []string
	}{
		"an empty log":            {content: "", want: nil},
		"a short log":             {content: "a\nb\n", want: []string{"a", "b"}},
		"more lines than wanted":  {content: strings.Repeat("n\n", tailLines+5), want: strings.Split(strings.Repeat("n ", tailLines)[:2*tailLines-1], " ")},
		"a line too wide to read": {content: long, want: []string{long[:tailWidth] + "..."}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(file, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := tail(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
