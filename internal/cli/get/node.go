package get

import (
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// nodeWord is what Ray calls a Pod that runs it.
const nodeWord = "Ray node"

func nodeSource() source[*corev1.Pod] {
	return source[*corev1.Pod]{
		what:   nodeWord,
		object: func() *corev1.Pod { return &corev1.Pod{} },
		list:   func() client.ObjectList { return &corev1.PodList{} },
	}
}

// rayNodes selects the Pods that run Ray, of one cluster when its name is not empty.
func rayNodes(cluster string) client.MatchingLabels {
	selected := client.MatchingLabels{rayv1.LabelIsRayNode: rayv1.IsRayNodeYes}
	if cluster != "" {
		selected[rayv1.LabelCluster] = cluster
	}
	return selected
}

func nodeCommand(env *kube.Env) *cobra.Command {
	var where scopeFlag
	var cluster string
	cmd := &cobra.Command{
		Use:               "node [NODE]",
		Aliases:           []string{"nodes"},
		Short:             "List the nodes of Ray clusters, which are Pods",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kube.CompleteFirst(env.CompleteNodes(func([]string) string { return cluster })),
	}
	where.add(cmd)
	addClusterFlag(env, cmd, &cluster)
	output := kube.AddOutputFlag(cmd, kube.OutputJSON, kube.OutputYAML, kube.OutputWide, kube.OutputName)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := where.scope(env)
		if err != nil {
			return err
		}
		return showNodes(cmd, env, s, cluster, first(args), output.Format)
	}
	return cmd
}

func showNodes(cmd *cobra.Command, env *kube.Env, where scope, cluster, name, format string) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	if cluster != "" {
		if _, err := clusterSource().find(cmd.Context(), c, where, cluster); err != nil {
			return err
		}
	}
	if format != "" && format != kube.OutputWide {
		pods, err := raw(nodeWord, corev1.SchemeGroupVersion.WithKind("Pod")).find(cmd.Context(), c, where, name, rayNodes(cluster))
		if err != nil {
			return err
		}
		return printObjects(env, format, pods, name != "")
	}
	pods, err := nodeSource().find(cmd.Context(), c, where, name, rayNodes(cluster))
	if err != nil {
		return err
	}
	return printTable(env, nodeColumns(env, where), pods, format, where)
}

func nodeColumns(env *kube.Env, where scope) []column[*corev1.Pod] {
	type pod = *corev1.Pod
	label := func(key string) func(pod) string {
		return func(p pod) string { return p.Labels[key] }
	}
	columns := slices.Concat(
		[]column[pod]{{name: "NAME", cell: nameOf[pod]}},
		resourceColumns(func(p pod) resources {
			var sum resources
			if len(p.Spec.Containers) > 0 {
				sum.add(requests(&p.Spec.Containers[0]), 1)
			}
			return sum
		}),
		[]column[pod]{
			{name: "CLUSTER", cell: label(rayv1.LabelCluster)},
			{name: "TYPE", cell: label(rayv1.LabelNodeType)},
			{name: "WORKER GROUP", cell: label(rayv1.LabelGroup)},
			{name: "AGE", cell: ageOf[pod](env.Now())},
			{name: "PHASE", cell: func(p pod) string { return string(p.Status.Phase) }, wide: true},
			{name: "IP", cell: func(p pod) string { return orNone(p.Status.PodIP) }, wide: true},
			{name: "NODE", cell: func(p pod) string { return orNone(p.Spec.NodeName) }, wide: true},
		})
	if where.all() {
		columns = withNamespace(columns)
	}
	return columns
}

// addClusterFlag adds the flag -c, which narrows a list to one RayCluster.
func addClusterFlag(env *kube.Env, cmd *cobra.Command, cluster *string) {
	cmd.Flags().StringVarP(cluster, "ray-cluster", "c", "", "Show only those of this Ray cluster.")
	env.CompleteClusterFlag(cmd, "ray-cluster")
}
