// Command kubectl-ray is the kubectl plugin `kubectl ray`, which works as well under its own name.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that a kubeconfig may ask for, as kubectl has them
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-io/heliostat/internal/cli"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// version is set by the linker.
var version = "dev"

func main() {
	silence()
	ctx, stop := interruptible(context.Background())
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := cli.New(streams, calledAs(os.Args[0]), version)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return
	}
	var exit kube.ExitError
	if !errors.As(err, &exit) {
		exit = kube.ExitError{Code: kube.ExitFailed, Err: err}
	}
	if exit.Err != nil {
		fmt.Fprintln(os.Stderr, "Error:", exit.Err)
	}
	os.Exit(exit.Code)
}

// silence keeps controller-runtime from complaining, with a stack trace, that nobody told it where to log. What concerns
// the user comes as an error or a warning.
func silence() { ctrllog.SetLogger(logr.Discard()) }

// interruptible returns a context that ends when the user interrupts, so that commands can clean up. Who interrupts again
// does not want to wait for that, and ends the program.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// calledAs is what a user types to run this program: kubectl finds its plugins by the name of their file.
func calledAs(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return name
}
