package kube

import (
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// CompleteFirst completes the first argument only.
func CompleteFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, toComplete)
	}
}

// CompleteGroups completes the names of worker groups. cluster returns, given the arguments so far, the name of the
// RayCluster whose groups are meant, or "" for those of all.
func (e *Env) CompleteGroups(cluster func(args []string) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		*e.Flags.Timeout = completionTime
		c, err := e.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		namespace, err := e.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list := &rayv1.RayClusterList{}
		if err := c.List(cmd.Context(), list, client.InNamespace(namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		wanted := cluster(args)
		var names []string
		for i := range list.Items {
			if wanted != "" && list.Items[i].Name != wanted {
				continue
			}
			for j := range list.Items[i].Spec.WorkerGroupSpecs {
				names = append(names, list.Items[i].Spec.WorkerGroupSpecs[j].GroupName)
			}
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}
