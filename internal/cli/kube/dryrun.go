package kube

import (
	"errors"

	"github.com/spf13/cobra"
)

// DryRun is the value of the flag --dry-run: how much is only tried.
type DryRun string

// The ways to try.
const (
	// DryRunNone does what is asked for.
	DryRunNone DryRun = "none"
	// DryRunClient prints the object and talks to no cluster.
	DryRunClient DryRun = "client"
	// DryRunServer lets the API server complete and check the object, and prints what it would store.
	DryRunServer DryRun = "server"
)

// AddFlag gives the command the flag. KubeRay's plugin has it without a value, or with true or false, so that is understood,
// too.
func (d *DryRun) AddFlag(cmd *cobra.Command, usage string) {
	*d = DryRunNone
	cmd.Flags().VarPF(d, "dry-run", "", usage).NoOptDefVal = string(DryRunClient)
	// It fails only for a flag that does not exist, and this one was made in the line above.
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(
		[]string{string(DryRunNone), string(DryRunClient), string(DryRunServer)}, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the value.
func (d *DryRun) String() string { return string(*d) }

// Type is the word for the value in the help.
func (d *DryRun) Type() string { return "string" }

// Set reads the value.
func (d *DryRun) Set(value string) error {
	switch value {
	case "true", string(DryRunClient):
		*d = DryRunClient
	case "false", string(DryRunNone):
		*d = DryRunNone
	case string(DryRunServer):
		*d = DryRunServer
	default:
		return errors.New("it must be none, client or server")
	}
	return nil
}
