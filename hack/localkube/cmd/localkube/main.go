// Command localkube runs a real Kubernetes on this machine, from Go modules and
// Debian packages: no Docker, no registry, no virtual machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		var silent exitCode
		if errors.As(err, &silent) {
			os.Exit(int(silent))
		}
		fmt.Fprintln(os.Stderr, "localkube: "+err.Error())
		os.Exit(1)
	}
}

// exitCode ends the program with that code; everything was said before.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "localkube",
		Short: "A real Kubernetes on this machine, for tests and demonstrations",
		Long: `localkube runs a real Kubernetes on this machine: etcd, the API server, the
controllers, and nodes with kubelet, containerd and kube-proxy, each node in a
network namespace of its own. It needs neither Docker nor a registry nor
anything outside of the machine once its programs are built.

Everything worth keeping lies in $HELIOSTAT_CACHE (default ~/.cache/heliostat).`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		newPrepareCommand(),
		newBuildCommand(),
		newUpCommand(),
		newDownCommand(),
		newStatusCommand(),
		newLoadCommand(),
		newKubeconfigCommand(),
		newKubectlCommand(),
		newProveCommand(),
		newNodeCommand(),
		newProgramCommand(),
		newImageCommand(),
		newAPIServerCommand(),
		newLaunchCommand(),
	)
	return root
}
