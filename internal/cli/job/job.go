// Package job holds the commands about Ray jobs: kubectl ray job submit (spec/ecosystem.md, section 2.8). What is submitted
// goes to Ray's own HTTP API, so that the user's machine needs no ray command.
package job

import (
	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// New returns the command job.
func New(env *kube.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Submit Ray jobs",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSubmit(env, usualPace()))
	return cmd
}
