package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Lag is how late an API server gets what etcd tells it; at first it does not lag.
type Lag struct{ nanoseconds atomic.Int64 }

// Set changes the lag, for what comes from now on.
func (l *Lag) Set(lag time.Duration) { l.nanoseconds.Store(int64(lag)) }

// NewPair returns the configurations of two API servers on one etcd, and the lag of the second one. They belong to the
// calling test alone and end with it. args are further flags of both; a flag whose value contains "NAME" has "first" and
// "second" there.
func NewPair(tb testing.TB, args ...string) (first, second *rest.Config, lag *Lag) {
	tb.Helper()
	lag = &Lag{}
	started, err := launch(named(args, "first")...)
	if err != nil {
		tb.Fatalf("starting an API server for this test: %v", err)
	}
	tb.Cleanup(started.stop)
	line, err := commandLine(started.command.Process.Pid)
	if err != nil {
		tb.Fatal(err)
	}
	server, err := startSecond(tb, line, lag, named(args, "second"))
	if err != nil {
		tb.Fatalf("starting a second API server: %v", err)
	}
	first = configOf(tb, started)
	second = rest.CopyConfig(first)
	second.Host = server
	ready, err := discovery.NewDiscoveryClientForConfig(second)
	if err != nil {
		tb.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(tb.Context(), time.Second, establishLimit, true, func(ctx context.Context) (bool, error) {
		return ready.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() == nil, nil
	})
	if err != nil {
		tb.Fatalf("waiting until the second API server is ready: %v", err)
	}
	return first, second, lag
}

func named(args []string, name string) []string {
	var all []string
	for _, arg := range args {
		all = append(all, strings.ReplaceAll(arg, "NAME", name))
	}
	return all
}

// commandLine is that of the kube-apiserver which localkube has started.
func commandLine(localkube int) ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		line := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		if slices.Contains(line, "kube-apiserver") && parentOf(filepath.Dir(file)) == localkube {
			return line, nil
		}
	}
	return nil, errors.New("no kube-apiserver runs below localkube")
}

func parentOf(process string) int {
	text, err := os.ReadFile(filepath.Join(process, "stat"))
	if err != nil {
		return 0
	}
	// The name of the program is in brackets, and may have anything in it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

// startSecond starts a server with the command line of the first one, but for its port and its way to etcd.
func startSecond(tb testing.TB, line []string, lag *Lag, args []string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	replaced := []string{}
	for _, arg := range line {
		name, value, _ := strings.Cut(arg, "=")
		switch {
		case name == "--etcd-servers":
			late, err := startLate(tb, strings.TrimPrefix(value, "https://"), lag)
			if err != nil {
				return "", err
			}
			arg = name + "=https://" + late
		case name == "--secure-port":
			arg = fmt.Sprintf("%s=%d", name, port)
		case slices.ContainsFunc(args, func(own string) bool { return strings.HasPrefix(own, name+"=") }):
			continue
		}
		replaced = append(replaced, arg)
	}
	replaced = append(replaced, args...)
	command := exec.Command(replaced[0], replaced[1:]...)
	var said tail
	command.Stdout, command.Stderr = &said, &said
	ended, err := StartChild(command)
	if err != nil {
		return "", err
	}
	tb.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if tb.Failed() {
			tb.Logf("--- the second API server's last words\n%s", said.String())
		}
	})
	return fmt.Sprintf("https://127.0.0.1:%d", port), nil
}

// StartChild starts a program that the kernel kills when this process ends, however it does. The channel is closed when the
// program has ended.
func StartChild(command *exec.Cmd) (<-chan struct{}, error) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begun, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The signal comes when the thread ends that started the child, so the thread must stay.
		runtime.LockOSThread()
		begun <- command.Start()
		// How it ended has no one to tell: what uses it fails.
		_ = command.Wait()
	}()
	return ended, <-begun
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	const keep = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(len(t.text)-keep, 0):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// startLate listens for connections and leads them to another address. What comes back is handed on after a while.
func startLate(tb testing.TB, to string, lag *Lag) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	tb.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			go func() {
				// A connection that breaks is what the two see, and all that there is to say.
				_, _ = io.Copy(server, client)
				server.Close()
			}()
			go delay(client, server, lag)
		}
	}()
	return listener.Addr().String(), nil
}

// delay hands on what it reads, each piece as late as the lag says, until either side ends.
func delay(to, from net.Conn, lag *Lag) {
	type piece struct {
		text []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<16)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.text); err != nil {
				from.Close()
				break
			}
		}
		for range pieces { // so that the reader is not stopped
		}
	}()
	defer close(pieces)
	for {
		text := make([]byte, 32<<10)
		n, err := from.Read(text)
		if n > 0 {
			pieces <- piece{text: text[:n], due: time.Now().Add(time.Duration(lag.nanoseconds.Load()))}
		}
		if err != nil {
			return
		}
	}
}
