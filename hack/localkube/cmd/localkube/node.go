package main

import (
	"github.com/spf13/cobra"
)

func newNodeCommand() *cobra.Command {
	node := &cobra.Command{
		Use:   "node",
		Short: "Take a node's network away, and give it back",
	}
	for _, one := range []struct {
		use, short string
		plugged    bool
	}{
		{"cut NODE", "Cut a node off from the network; its programs and Pods go on running", false},
		{"restore NODE", "Connect a node to the network again", true},
	} {
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
				return manager.SetPlugged(args[0], one.plugged)
			},
		}
		addName(command, &name)
		node.AddCommand(command)
	}
	return node
}
