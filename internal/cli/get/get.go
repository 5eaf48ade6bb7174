// Package get lists Ray's objects, the worker groups and nodes inside of clusters, and the token of a cluster.
package get

import (
	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// New returns the command "get". Names, flags and columns are those of KubeRay's plugin (spec/ecosystem.md, section 2.1);
// jobs, services and cron jobs are added, and the flag -o.
func New(env *kube.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get",
		Aliases: []string{"list"},
		Short:   "List clusters, jobs, services, cron jobs, worker groups and nodes, or print a token",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(clusters().command(env), groupCommand(env), nodeCommand(env), jobs().command(env),
		services().command(env), cronJobs().command(env), tokenCommand(env))
	return cmd
}
