// Package create makes RayClusters, and worker groups in them, from flags or a configuration file.
package create

import (
	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// New returns the command "create". Flags, defaults and the file are those of KubeRay's plugin (spec/ecosystem.md,
// sections 2.2 and 2.3).
func New(env *kube.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a cluster, or a worker group in one",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(clusterCommand(env), groupCommand(env))
	return cmd
}
