package kube

import "github.com/spf13/cobra"

// MarkUsageErrors makes a command and those below it end with ExitCannotLook when they are called in a wrong way: with an
// unknown flag or a value that the flag does not take, with wrong arguments, or without a flag that must be given. So
// scripts can tell that from what a command finds out. All commands must have been added before.
func MarkUsageErrors(root *cobra.Command) {
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// A flag that a group of commands does not know may be one of the command that is not known either.
		if cmd.HasSubCommands() {
			if unknown := cmd.ValidateArgs(cmd.Flags().Args()); unknown != nil {
				return unknown
			}
		}
		return usage(err)
	})
	markArguments(root)
}

func markArguments(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(err)
		}
		// cobra looks at these later, and has no place to mark their errors.
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return usage(err)
		}
		if err := cmd.ValidateFlagGroups(); err != nil {
			return usage(err)
		}
		return nil
	}
	for _, sub := range cmd.Commands() {
		markArguments(sub)
	}
}

// usage marks an error.
func usage(err error) error { return ExitError{Code: ExitCannotLook, Err: err} }
