package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Stop ends the process of a record: with SIGTERM, and with SIGKILL when it
// still runs after grace. A grace of zero means SIGKILL at once. It returns nil
// when the process does not run any more.
func Stop(record Record, grace time.Duration) error {
	if !record.Alive() {
		return nil
	}
	// On Linux a Process is a handle on one process, not a number. The record is
	// compared once more after the handle was taken, so what is signalled is
	// what was compared.
	handle, err := os.FindProcess(record.PID)
	if err != nil {
		return fmt.Errorf("looking for %s, process %d: %w", record.Name, record.PID, err)
	}
	defer func() { _ = handle.Release() }()
	if !record.Alive() {
		return nil
	}
	if grace > 0 {
		if err := signal(handle, syscall.SIGTERM); err != nil {
			return fmt.Errorf("ending %s, process %d: %w", record.Name, record.PID, err)
		}
		if goneWithin(record, grace) {
			return nil
		}
	}
	if err := signal(handle, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing %s, process %d: %w", record.Name, record.PID, err)
	}
	if !goneWithin(record, 10*time.Second) {
		return fmt.Errorf("%s, process %d, still runs ten seconds after it was killed", record.Name, record.PID)
	}
	return nil
}

func signal(handle *os.Process, sent syscall.Signal) error {
	if err := handle.Signal(sent); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func goneWithin(record Record, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !record.Alive() {
			return true
		}
	}
	return !record.Alive()
}

// Forget removes the record of a process that has ended.
func Forget(dir, name string) error {
	if err := os.Remove(recordFile(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the record of %s: %w", name, err)
	}
	return nil
}

// Shims returns the containerd shims that serve the containerd at socket. They
// are not started by us and outlive containerd, so there is no record of them;
// but each is told the socket of its own containerd on its command line, and no
// other process has that program and that argument.
func Shims(socket string) ([]Record, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var shims []Record
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Processes come and go while we look: one that cannot be read is gone.
		commandLine, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || !isShimOf(commandLine, socket) {
			continue
		}
		if record, err := recordOf("shim", pid); err == nil {
			shims = append(shims, record)
		}
	}
	return shims, nil
}

// isShimOf reports whether a command line, with a NUL after each argument, is
// that of a shim of the containerd at socket.
func isShimOf(commandLine []byte, socket string) bool {
	var args []string
	for arg := range bytes.SplitSeq(bytes.TrimRight(commandLine, "\x00"), []byte{0}) {
		args = append(args, string(arg))
	}
	if filepath.Base(args[0]) != "containerd-shim-runc-v2" {
		return false
	}
	at := slices.Index(args, "-address")
	return at >= 0 && at+1 < len(args) && args[at+1] == socket
}
