package proc

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// StartChild starts a program that ends with us, in whatever way we end: the
// kernel kills it when the thread that has started it is gone. The caller has
// locked its goroutine to a thread and keeps it.
func StartChild(name, logFile string, args []string) (*Daemon, error) {
	out, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", name, err)
	}
	defer out.Close()
	command := exec.Command(args[0], args[1:]...)
	command.Stdout, command.Stderr = out, out
	command.Env = environment()
	// A group of its own, so that Ctrl-C reaches us alone and we end it in order.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	daemon, err := watch(name, logFile, command)
	if err != nil {
		return nil, err
	}
	daemon.process = command.Process
	return daemon, nil
}

// Kill ends a child at once and returns when it has ended. Programs that were
// not started by StartChild are left alone.
func (d *Daemon) Kill() {
	if d.process == nil {
		return
	}
	// The only error is that it has ended already.
	_ = d.process.Kill()
	d.Wait()
}
