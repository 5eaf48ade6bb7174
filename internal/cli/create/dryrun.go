package create

import (
	"errors"

	"github.com/spf13/cobra"
)

// dryRun is the value of the flag --dry-run: how much is only tried.
type dryRun string

const (
	// dryRunNone does what is asked for.
	dryRunNone dryRun = "none"
	// dryRunClient prints the object and talks to no cluster.
	dryRunClient dryRun = "client"
	// dryRunServer lets the API server complete and check the object, and prints what it would store.
	dryRunServer dryRun = "server"
)

// add makes the flag. KubeRay's plugin has it without a value, or with true or false, so that is understood, too.
func (d *dryRun) add(cmd *cobra.Command) {
	*d = dryRunNone
	flag := cmd.Flags().VarPF(d, "dry-run", "", "Print the object as YAML and do not create it. With \"client\", which is meant without "+
		"a value, no cluster is talked to; with \"server\", the API server completes and checks the object.")
	flag.NoOptDefVal = string(dryRunClient)
	// It fails only for a flag that does not exist, and this one was made in the line above.
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(
		[]string{string(dryRunNone), string(dryRunClient), string(dryRunServer)}, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the value.
func (d *dryRun) String() string { return string(*d) }

// Type is the word for the value in the help.
func (d *dryRun) Type() string { return "string" }

// Set reads the value.
func (d *dryRun) Set(value string) error {
	switch value {
	case "true", string(dryRunClient):
		*d = dryRunClient
	case "false", string(dryRunNone):
		*d = dryRunNone
	case string(dryRunServer):
		*d = dryRunServer
	default:
		return errors.New("it must be none, client or server")
	}
	return nil
}
