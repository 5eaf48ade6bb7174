package main

import (
	"errors"
	"os/exec"

	"github.com/spf13/cobra"
)

func newKubectlCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "kubectl [--name NAME] -- ARG...",
		Short: "Run kubectl against a cluster",
		Long: `Run kubectl against a cluster, for example
  localkube kubectl -- get pods --all-namespaces
It is the kubectl of the cluster's own Kubernetes release.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			kubectl, err := manager.Kubectl(cmd.Context(), args...)
			if err != nil {
				return err
			}
			kubectl.Stdin, kubectl.Stdout, kubectl.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			err = kubectl.Run()
			var ended *exec.ExitError
			if errors.As(err, &ended) && ended.ExitCode() > 0 {
				return exitCode(ended.ExitCode())
			}
			return err
		},
	}
	addName(command, &name)
	return command
}
