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

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-io/heliostat/internal/cli"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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

// calledAs is what a user types to run this program: kubectl finds its plugins by the name of their file.
func calledAs(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return name
}
