package kube

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
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

// CompleteClusterFlag completes the value of the flag of a command that names a RayCluster.
func (e *Env) CompleteClusterFlag(cmd *cobra.Command, name string) {
	// It fails only for a flag that does not exist, which is a mistake that every test of the command shows.
	_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		// Arguments are names of other things, so none of them is taken out.
		return e.CompleteNames(RayCluster)(cmd, nil, toComplete)
	})
}

// CompleteGroups completes the names of worker groups. cluster returns, given the arguments so far, the name of the
// RayCluster whose groups are meant, or "" for those of all.
func (e *Env) CompleteGroups(cluster func(args []string) string) cobra.CompletionFunc {
	return e.completeParts(func(ctx context.Context, c client.Reader, namespace string, args []string) ([]string, error) {
		list := &rayv1.RayClusterList{}
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
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
		return names, nil
	})
}

// CompleteNodes completes the names of the nodes of Ray, which are Pods. cluster returns, given the arguments so far, the
// name of the RayCluster whose nodes are meant, or "" for those of all.
func (e *Env) CompleteNodes(cluster func(args []string) string) cobra.CompletionFunc {
	return e.completeParts(func(ctx context.Context, c client.Reader, namespace string, args []string) ([]string, error) {
		selected := client.MatchingLabels{rayv1.LabelIsRayNode: rayv1.IsRayNodeYes}
		if wanted := cluster(args); wanted != "" {
			selected[rayv1.LabelCluster] = wanted
		}
		list := &corev1.PodList{}
		if err := c.List(ctx, list, client.InNamespace(namespace), selected); err != nil {
			return nil, err
		}
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}

// completeParts completes names of what clusters consist of, each name once.
func (e *Env) completeParts(read func(ctx context.Context, c client.Reader, namespace string, args []string) ([]string, error)) cobra.CompletionFunc {
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
		names, err := read(cmd.Context(), c, namespace, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}
