package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Spec describes one long-running program.
type Spec struct {
	// Name names its record and its log.
	Name string
	// Args is the program and its arguments.
	Args []string
	// NetNS is the file of the network namespace it runs in; empty means ours.
	NetNS string
}

// Starter starts programs that outlive the command that starts them.
type Starter struct {
	// RecordDir and LogDir exist.
	RecordDir, LogDir string
	// Launcher is the command line that leads to Launch; name, record folder,
	// namespace and the program's arguments are added to it.
	Launcher []string
}

// Daemon is a started program.
type Daemon struct {
	Name string
	// Log is the file with all it has printed.
	Log     string
	ended   chan struct{}
	process *os.Process
	err     error
}

// environment is what programs get to see. Nothing else of ours: a proxy
// setting, for example, would send the cluster's own traffic elsewhere.
func environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
}

// Start starts a program in a session of its own. Its output is added to its log.
func (s Starter) Start(spec Spec) (*Daemon, error) {
	logFile := filepath.Join(s.LogDir, spec.Name+".log")
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", spec.Name, err)
	}
	defer out.Close()
	args := append([]string{}, s.Launcher[1:]...)
	args = append(args, "--name", spec.Name, "--records", s.RecordDir, "--netns", spec.NetNS, "--")
	args = append(args, spec.Args...)
	command := exec.Command(s.Launcher[0], args...)
	command.Stdout, command.Stderr = out, out
	command.Env = environment()
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return watch(spec.Name, logFile, command)
}

// watch starts a command and notices its end.
func watch(name, logFile string, command *exec.Cmd) (*Daemon, error) {
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	daemon := &Daemon{Name: name, Log: logFile, ended: make(chan struct{})}
	go func() {
		daemon.err = command.Wait()
		close(daemon.ended)
	}()
	return daemon, nil
}

// Ended returns nil while the program runs, and afterwards an error with how it
// ended and its last log lines.
func (d *Daemon) Ended() error {
	select {
	case <-d.ended:
		cause := d.err
		if cause == nil {
			cause = errors.New("exit status 0")
		}
		return fmt.Errorf("%s ended: %w%s", d.Name, cause, lastLines(d.Name, d.Log))
	default:
		return nil
	}
}

// Wait returns when the program has ended.
func (d *Daemon) Wait() { <-d.ended }

// WaitFor asks ready again and again until it returns nil. It gives up after
// limit, when ctx ends, or as soon as one of the daemons has ended; its error
// then carries the last log lines of the daemon, or of all when it is not
// known which is to blame.
func WaitFor(ctx context.Context, limit time.Duration, what string, ready func(context.Context) error, daemons ...*Daemon) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		last = ready(limited)
		if last == nil {
			return nil
		}
		for _, daemon := range daemons {
			if err := daemon.Ended(); err != nil {
				return fmt.Errorf("waiting until %s: %w", what, err)
			}
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
			}
			var tails strings.Builder
			for _, daemon := range daemons {
				tails.WriteString(lastLines(daemon.Name, daemon.Log))
			}
			return fmt.Errorf("waiting until %s took more than %s: %w%s", what, limit, last, tails.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
