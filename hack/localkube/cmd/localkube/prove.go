package main

import (
	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/prove"
)

func newProveCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "prove",
		Short: "Check on a running cluster everything that is claimed about it",
		Long: `Check on a running cluster everything that is claimed about it: Pods, DNS,
Services, probes, logs, exec, port-forward, volumes, limits, and that nothing
gets out. Prints PASS or FAIL for each, and removes afterwards what it has made.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			manager, err := newManager(cmd, name)
			if err != nil {
				return err
			}
			prover := &prove.Prover{Out: cmd.OutOrStdout(), Kubectl: manager.Kubectl}
			return prover.Run(cmd.Context())
		},
	}
	addName(command, &name)
	return command
}
