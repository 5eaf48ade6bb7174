package create

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// groupOptions are the flags of "create workergroup".
type groupOptions struct {
	cluster  string
	config   config
	workers  group
	replicas int32
	least    int32
	most     int32
	hosts    int32
}

func groupCommand(env *kube.Env) *cobra.Command {
	o := &groupOptions{}
	cmd := &cobra.Command{
		Use:               "workergroup GROUP --ray-cluster CLUSTER",
		Short:             "Add a worker group to a Ray cluster",
		Example:           "  " + env.Program + " create workergroup gpu --ray-cluster mine --worker-gpu 1 --worker-max-replicas 4",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := o.read(cmd, args[0])
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), env, spec)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.cluster, "ray-cluster", "c", "", "Name of the Ray cluster. It must be given.")
	addImageFlags(cmd, &o.config)
	addWorkerFlags(cmd, &o.workers, &o.replicas, &o.hosts)
	flags.Int32Var(&o.least, "worker-min-replicas", 1, "Least number of replicas.")
	flags.Int32Var(&o.most, "worker-max-replicas", 10, "Greatest number of replicas.")
	// It fails only for a flag that does not exist, and this one was made above.
	_ = cmd.MarkFlagRequired("ray-cluster")
	env.CompleteClusterFlag(cmd, "ray-cluster")
	return cmd
}

// read returns the group that the flags describe.
func (o *groupOptions) read(cmd *cobra.Command, name string) (*rayv1.WorkerGroupSpec, error) {
	c := o.config
	followVersion(cmd, &c)
	workers := o.workers
	workers.Name, workers.Replicas, workers.NumOfHosts = name, &o.replicas, &o.hosts
	workers.MinReplicas, workers.MaxReplicas = &o.least, &o.most
	c.WorkerGroups = []group{workers}
	// The rules for a cluster hold for its groups; this one stands for the cluster that exists.
	c.Name = "cluster"
	if p := c.validate(); p != nil {
		return nil, p.asFlag()
	}
	spec := c.workerGroup(&workers)
	return &spec, nil
}

func (o *groupOptions) run(ctx context.Context, env *kube.Env, spec *rayv1.WorkerGroupSpec) error {
	namespace, err := env.Namespace()
	if err != nil {
		return err
	}
	c, err := env.Client()
	if err != nil {
		return err
	}
	var cluster *rayv1.RayCluster
	// The operator writes the status all the time, so somebody who is in the way is no reason to trouble the user.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var err error
		cluster, err = o.add(ctx, c, namespace, spec)
		return err
	})
	if err != nil {
		return err
	}
	if err := o.warn(env, cluster, spec); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "Updated Ray cluster %s/%s with new worker group\n", namespace, o.cluster)
	return err
}

// add adds the group if nobody changes the cluster meanwhile.
func (o *groupOptions) add(ctx context.Context, c client.Client, namespace string, spec *rayv1.WorkerGroupSpec) (*rayv1.RayCluster, error) {
	object, _, err := kube.Find(ctx, c, namespace, "raycluster/"+o.cluster)
	if err != nil {
		return nil, err
	}
	cluster, ok := object.(*rayv1.RayCluster)
	if !ok {
		return nil, fmt.Errorf("%s/%s is not a RayCluster", namespace, o.cluster)
	}
	for i := range cluster.Spec.WorkerGroupSpecs {
		if cluster.Spec.WorkerGroupSpecs[i].GroupName == spec.GroupName {
			return nil, fmt.Errorf("RayCluster %s/%s has a worker group %q already: choose another name", namespace, o.cluster, spec.GroupName)
		}
	}
	addition, err := additionOf(cluster, spec)
	if err != nil {
		return nil, err
	}
	if err := kube.PatchUnchanged(ctx, c, cluster, addition); err != nil {
		return nil, fmt.Errorf("add worker group %s to RayCluster %s/%s: %w", spec.GroupName, namespace, o.cluster, err)
	}
	return cluster, nil
}

// additionOf puts the group at the end of the list, or makes the list.
func additionOf(cluster *rayv1.RayCluster, spec *rayv1.WorkerGroupSpec) (kube.Addition, error) {
	content, err := toContent(spec)
	if err != nil {
		return kube.Addition{}, err
	}
	const list = "/spec/workerGroupSpecs"
	if len(cluster.Spec.WorkerGroupSpecs) == 0 {
		return kube.Addition{Path: list, Value: []any{content}}, nil
	}
	return kube.Addition{Path: list + "/-", Value: content}, nil
}

// warn tells of workers that cannot join, because Ray wants one version in the whole cluster. Of an image that the user
// chose, nobody knows the version.
func (o *groupOptions) warn(env *kube.Env, cluster *rayv1.RayCluster, spec *rayv1.WorkerGroupSpec) error {
	version := o.config.RayVersion
	chosen := spec.Template.Spec.Containers[0].Image != blueprint.Image(version)
	if chosen || cluster.Spec.RayVersion == "" || cluster.Spec.RayVersion == version {
		return nil
	}
	_, err := fmt.Fprintf(env.ErrOut, "Warning: RayCluster %s/%s runs Ray %s, and workers of Ray %s cannot join it: "+
		"give --ray-version or --image.\n", cluster.Namespace, cluster.Name, cluster.Spec.RayVersion, version)
	return err
}
