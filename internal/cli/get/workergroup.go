package get

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// group is what is shown of a worker group.
type group struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Name      string `json:"name"`
	// MinReplicas and MaxReplicas are the bounds of DesiredReplicas.
	MinReplicas int32 `json:"minReplicas"`
	MaxReplicas int32 `json:"maxReplicas"`
	// DesiredReplicas are 0 while the group, or the whole cluster, is suspended.
	DesiredReplicas int32 `json:"desiredReplicas"`
	// ReadyReplicas are those of which all hosts are ready.
	ReadyReplicas int32 `json:"readyReplicas"`
	// NumOfHosts is the number of Pods of one replica.
	NumOfHosts int32 `json:"numOfHosts"`
	// Suspended tells whether the group, or the whole cluster, is suspended.
	Suspended bool `json:"suspended"`
	// Resources are what all desired Pods ask for together.
	Resources resources `json:"resources"`
}

func groupCommand(env *kube.Env) *cobra.Command {
	var where scopeFlag
	var cluster string
	cmd := &cobra.Command{
		Use:               "workergroup [GROUP]",
		Aliases:           []string{"workergroups"},
		Short:             "List the worker groups of Ray clusters",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: kube.CompleteFirst(env.CompleteGroups(func([]string) string { return cluster })),
	}
	where.add(cmd)
	addClusterFlag(env, cmd, &cluster)
	output := kube.AddOutputFlag(cmd, kube.OutputJSON, kube.OutputYAML, kube.OutputWide)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := where.scope(env)
		if err != nil {
			return err
		}
		return showGroups(cmd, env, s, cluster, first(args), output.Format)
	}
	return cmd
}

func showGroups(cmd *cobra.Command, env *kube.Env, where scope, cluster, name, format string) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	groups, err := findGroups(cmd.Context(), c, where, cluster, name)
	if err != nil {
		return err
	}
	if format == "" || format == kube.OutputWide {
		return printTable(env, groupColumns(where), groups, format, where)
	}
	if name != "" && len(groups) == 1 {
		return kube.PrintFacts(env.Out, format, groups[0])
	}
	return kube.PrintFacts(env.Out, format, groups)
}

// findGroups reads the groups of a name, or all when it is empty, in the cluster of a name, or in all.
func findGroups(ctx context.Context, c client.Reader, where scope, cluster, name string) ([]group, error) {
	found, err := clusterSource().find(ctx, c, where, cluster)
	if err != nil {
		return nil, err
	}
	pods, err := nodeSource().read(ctx, c, where, "", rayNodes(cluster))
	if err != nil {
		return nil, err
	}
	groups := []group{}
	for _, owner := range found {
		for i := range owner.Spec.WorkerGroupSpecs {
			spec := &owner.Spec.WorkerGroupSpecs[i]
			if name == "" || spec.GroupName == name {
				groups = append(groups, describe(owner, spec, pods))
			}
		}
	}
	if name != "" && len(groups) == 0 {
		return nil, noGroup(where, cluster, name)
	}
	return groups, nil
}

func noGroup(where scope, cluster, name string) error {
	if cluster == "" {
		return fmt.Errorf("no worker group %q in a RayCluster %s", name, where)
	}
	return fmt.Errorf("no worker group %q in RayCluster %q %s", name, cluster, where)
}

func describe(cluster *rayv1.RayCluster, spec *rayv1.WorkerGroupSpec, pods []*corev1.Pod) group {
	g := group{
		Namespace:       cluster.Namespace,
		Cluster:         cluster.Name,
		Name:            spec.GroupName,
		MinReplicas:     ptr.Deref(spec.MinReplicas, 0),
		MaxReplicas:     ptr.Deref(spec.MaxReplicas, math.MaxInt32),
		DesiredReplicas: raycluster.GroupReplicas(spec),
		NumOfHosts:      max(spec.NumOfHosts, 1),
		Suspended:       ptr.Deref(cluster.Spec.Suspend, false) || ptr.Deref(spec.Suspend, false),
	}
	if g.Suspended {
		g.DesiredReplicas = 0
	}
	g.ReadyReplicas = readyReplicas(g, pods)
	for i := range spec.Template.Spec.Containers {
		g.Resources.add(requests(&spec.Template.Spec.Containers[i]), int64(g.DesiredReplicas)*int64(g.NumOfHosts))
	}
	return g
}

// readyReplicas counts the replicas of which every host is ready. Pods that no label assigns to a replica, as older
// operators make them, are taken together in the order in which they come.
func readyReplicas(g group, pods []*corev1.Pod) int32 {
	hosts := map[string]int32{}
	for _, pod := range pods {
		if pod.Namespace == g.Namespace && pod.Labels[rayv1.LabelCluster] == g.Cluster &&
			pod.Labels[rayv1.LabelGroup] == g.Name && ready(pod) {
			hosts[pod.Labels[rayv1.LabelWorkerGroupReplicaName]]++
		}
	}
	var count int32
	for replica, number := range hosts {
		if replica == "" || g.NumOfHosts == 1 {
			count += number / g.NumOfHosts
		} else if number >= g.NumOfHosts {
			count++
		}
	}
	return count
}

func ready(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func groupColumns(where scope) []column[group] {
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	columns := slices.Concat(
		[]column[group]{
			{name: "NAME", cell: func(g group) string { return g.Name }},
			{name: "MIN", cell: func(g group) string { return number(g.MinReplicas) }},
			{name: "MAX", cell: func(g group) string { return number(g.MaxReplicas) }},
			{name: "REPLICAS", cell: func(g group) string { return number(g.ReadyReplicas) + "/" + number(g.DesiredReplicas) }},
		},
		resourceColumns(func(g group) resources { return g.Resources }),
		[]column[group]{
			{name: "CLUSTER", cell: func(g group) string { return g.Cluster }},
			{name: "HOSTS", cell: func(g group) string { return number(g.NumOfHosts) }, wide: true},
			{name: "SUSPENDED", cell: func(g group) string { return strconv.FormatBool(g.Suspended) }, wide: true},
		})
	if where.all() {
		columns = append([]column[group]{{name: namespaceColumn, cell: func(g group) string { return g.Namespace }}}, columns...)
	}
	return columns
}
