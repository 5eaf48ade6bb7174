package main

import (
	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/proc"
)

// launchName is the command by which localkube starts the programs of a cluster.
const launchName = "launch-component"

func newLaunchCommand() *cobra.Command {
	var name, records, netns string
	command := &cobra.Command{
		Use:    launchName + " --name NAME --records DIR --netns FILE -- PROGRAM [ARG...]",
		Short:  "Become a component of a cluster (used by localkube itself)",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return proc.Launch(name, records, netns, args)
		},
	}
	command.Flags().StringVar(&name, "name", "", "name of the component")
	command.Flags().StringVar(&records, "records", "", "folder for its record")
	command.Flags().StringVar(&netns, "netns", "", "file of the network namespace to enter")
	return command
}
