package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/cluster"
)

// fault is something that is done to a part of a running cluster.
type fault struct {
	use, short string
	do         func(ctx context.Context, m cluster.Manager, part string) error
}

func newNodeCommand() *cobra.Command {
	return faults("node", "Take a node's network or its power away, and give it back",
		fault{"cut NODE", "Cut a node off from the network; its programs and Pods go on running",
			func(_ context.Context, m cluster.Manager, node string) error { return m.SetPlugged(node, false) }},
		fault{"restore NODE", "Connect a node to the network again",
			func(_ context.Context, m cluster.Manager, node string) error { return m.SetPlugged(node, true) }},
		fault{"off NODE", "End all that runs on a node at once, as a power cut does",
			func(ctx context.Context, m cluster.Manager, node string) error { return m.PowerOff(ctx, node) }},
		fault{"on NODE", "Start a node that is off",
			func(ctx context.Context, m cluster.Manager, node string) error { return m.PowerOn(ctx, node) }},
	)
}

func newProgramCommand() *cobra.Command {
	return faults("program", "Stop a program of the control plane, for example kube-apiserver, and start it again",
		fault{"stop PROGRAM", "Kill a program",
			func(_ context.Context, m cluster.Manager, program string) error { return m.StopProgram(program) }},
		fault{"start PROGRAM", "Start a program that was stopped, as it was started first",
			func(_ context.Context, m cluster.Manager, program string) error { return m.StartProgram(program) }},
	)
}

func faults(use, short string, all ...fault) *cobra.Command {
	parent := &cobra.Command{Use: use, Short: short}
	for _, one := range all {
		var name string
		command := &cobra.Command{
			Use:   one.use,
			Short: one.short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				manager, err := newManager(cmd, name)
				if err != nil {
					return err
				}
				return one.do(cmd.Context(), manager, args[0])
			},
		}
		addName(command, &name)
		parent.AddCommand(command)
	}
	return parent
}
