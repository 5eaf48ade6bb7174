package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// stubborn is the variable that makes this test program one that does not end when it is interrupted once.
const stubborn = "HELIOSTAT_TEST_STUBBORN"

// plugin is the variable that makes this test program kubectl-ray.
const plugin = "HELIOSTAT_TEST_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(stubborn) != "" {
		beStubborn()
		return
	}
	if os.Getenv(plugin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// beStubborn does what a command does that takes long to clean up: it goes on until its input ends.
func beStubborn() {
	ctx, stop := interruptible(context.Background())
	defer stop()
	fmt.Println("started")
	<-ctx.Done()
	fmt.Println("interrupted")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestControllerRuntimeIsSilent(t *testing.T) {
	// Given controller-runtime as it is when a program starts: it waits for somebody to tell where to log
	if _, settled := ctrllog.Log.WithName("test").GetSink().(ctrllog.NullLogSink); settled {
		t.Fatal("somebody else has told it already")
	}

	// When the program tells it
	silence()

	// Then it does not wait any more, so it never complains
	if sink := ctrllog.Log.WithName("test").GetSink(); sink != (ctrllog.NullLogSink{}) {
		t.Errorf("it logs to a %T", sink)
	}
}

func TestLoginByOpenIDConnect(t *testing.T) {
	// Given the connection of a kubeconfig that logs in by OpenID Connect
	config := &rest.Config{Host: "https://cluster.example", AuthProvider: &clientcmdapi.AuthProviderConfig{
		Name: "oidc", Config: map[string]string{"idp-issuer-url": "https://login.example", "client-id": "kubernetes"}}}

	// When a client is made of it, then the way to log in is known
	if _, err := rest.TransportFor(config); err != nil {
		t.Error(err)
	}
}

func TestSecondInterruptEndsTheProgram(t *testing.T) {
	// Given a program that was interrupted and is not done yet
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	program := exec.CommandContext(ctx, os.Args[0])
	program.Env = append(os.Environ(), stubborn+"=yes")
	if _, err := program.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	expect := func(want string) {
		t.Helper()
		if line, err := said.ReadString('\n'); err != nil || line != want+"\n" {
			t.Fatalf("it said %q, want %q: %v", line, want, err)
		}
	}
	expect("started")
	interrupt(t, program)
	expect("interrupted")

	// When it is interrupted again, maybe before it has seen the end of its context
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case err := <-ended:
			// Then the signal ends it
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
				t.Errorf("it ended with %v, want the signal", err)
			}
			return
		case <-again.C:
			interrupt(t, program)
		}
	}
}

func interrupt(t *testing.T, program *exec.Cmd) {
	t.Helper()
	if err := program.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func TestKubectlCompletesThePlugin(t *testing.T) {
	// Given kubectl-ray in PATH
	path := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(path, "kubectl-ray")); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{"statu": "status\t", "nothing-begins-so": ":4\n"} {
		// When kubectl runs the program that completes it
		complete := exec.CommandContext(t.Context(), "./kubectl_complete-ray", word)
		complete.Env = []string{"PATH=" + path, plugin + "=yes"}
		out, err := complete.Output()

		// Then it says the words, and that files are no words
		if err != nil || !strings.HasPrefix(string(out), want) || !strings.HasSuffix(string(out), ":4\n") {
			t.Errorf("%s: it said %q, want %q first: %v", word, out, want, err)
		}
	}
}
