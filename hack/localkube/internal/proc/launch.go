package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

// Launch turns the current process into a component: it writes the record of
// itself, enters the network namespace (a file; empty means none) and executes
// argv. It returns only when that fails.
//
// The process writes its own record so that there is no moment in which it runs
// without one, however the command that started it ends.
func Launch(name, recordDir, netns string, argv []string) error {
	if len(argv) == 0 {
		return errors.New("no program to run")
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("finding the program of %s: %w", name, err)
	}
	record, err := recordOf(name, os.Getpid())
	if err != nil {
		return err
	}
	record.Args, record.NetNS = argv, netns
	if err := state.WriteJSON(recordFile(recordDir, name), record); err != nil {
		return fmt.Errorf("recording process %s: %w", name, err)
	}
	// A namespace is entered by a thread; the thread that executes the program
	// becomes the process, so it has to be the same one.
	runtime.LockOSThread()
	if netns != "" {
		if err := EnterNetNS(netns); err != nil {
			return err
		}
	}
	return fmt.Errorf("executing %s: %w", program, unix.Exec(program, argv, os.Environ()))
}

// EnterNetNS moves the calling thread into the network namespace of a file. The
// caller has locked the thread.
func EnterNetNS(file string) error {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening network namespace %s: %w", file, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering network namespace %s: %w", file, err)
	}
	return nil
}
