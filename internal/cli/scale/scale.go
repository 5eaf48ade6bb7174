// Package scale changes the number of replicas of a worker group.
package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// leave is the value of a flag that is not given: the number stays as it is.
const leave = -1

// New returns the command "scale", which has one object to scale: cluster (spec/ecosystem.md, section 2.5).
func New(env *kube.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Change the number of replicas of a worker group",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(clusterCommand(env))
	return cmd
}

// request is what the user asks for.
type request struct {
	cluster, group     string
	replicas, min, max int32
}

func clusterCommand(env *kube.Env) *cobra.Command {
	var r request
	cmd := &cobra.Command{
		Use:               "cluster NAME --worker-group GROUP",
		Short:             "Change the number of replicas of a worker group of a Ray cluster",
		Example:           "  " + env.Program + " scale cluster mine --worker-group gpu --replicas 8 --max-replicas 8",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: kube.CompleteFirst(env.CompleteNames(kube.RayCluster)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.cluster = args[0]
			if err := r.check(); err != nil {
				return err
			}
			return r.run(cmd.Context(), env)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&r.group, "worker-group", "w", "", "Name of the worker group. It must be given.")
	flags.Int32VarP(&r.replicas, "replicas", "r", leave, "Number of replicas; -1 leaves it as it is.")
	flags.Int32Var(&r.min, "min-replicas", leave, "Least number of replicas; -1 leaves it as it is.")
	flags.Int32Var(&r.max, "max-replicas", leave, "Greatest number of replicas; -1 leaves it as it is.")
	// These fail only for flags that do not exist, and this one was made above.
	_ = cmd.MarkFlagRequired("worker-group")
	_ = cmd.RegisterFlagCompletionFunc("worker-group", env.CompleteGroups(func(args []string) string {
		return strings.Join(args, "")
	}))
	return cmd
}

// check judges what can be judged without looking at the cluster.
func (r request) check() error {
	given := false
	for _, flag := range []struct {
		name  string
		value int32
	}{{"--replicas", r.replicas}, {"--min-replicas", r.min}, {"--max-replicas", r.max}} {
		if flag.value < leave {
			return fmt.Errorf("%s is %d: it must be 0 or more, or -1 to leave the number as it is", flag.name, flag.value)
		}
		given = given || flag.value != leave
	}
	if !given {
		return errors.New("nothing to change: give at least one of --replicas, --min-replicas and --max-replicas")
	}
	return nil
}

func (r request) run(ctx context.Context, env *kube.Env) error {
	namespace, err := env.Namespace()
	if err != nil {
		return err
	}
	c, err := env.Client()
	if err != nil {
		return err
	}
	var found scaled
	// The operator writes the status all the time, so somebody who is in the way is no reason to trouble the user.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var err error
		found, err = r.scale(ctx, c, namespace)
		return err
	})
	if err != nil {
		return err
	}
	return found.tell(env)
}

// scaled is a group and what became of it.
type scaled struct {
	cluster *rayv1.RayCluster
	group   *rayv1.WorkerGroupSpec
	size    size
	// changes are those that were written.
	changes []change
}

// scale looks at the group, and writes what is to be changed if nobody changes the cluster meanwhile.
func (r request) scale(ctx context.Context, c client.Client, namespace string) (scaled, error) {
	cluster, index, err := findGroup(ctx, c, namespace, r.cluster, r.group)
	if err != nil {
		return scaled{}, err
	}
	s := scaled{cluster: cluster, group: &cluster.Spec.WorkerGroupSpecs[index]}
	was := sizeOf(s.group)
	s.size = was.with(r)
	if err := s.size.check(); err != nil {
		return scaled{}, fmt.Errorf("scale %s: %w", s.place(), err)
	}
	s.changes = s.size.changes(was)
	if len(s.changes) == 0 {
		return s, nil
	}
	if err := write(ctx, c, cluster, index, s.changes); err != nil {
		return scaled{}, fmt.Errorf("scale %s: %w", s.place(), err)
	}
	return s, nil
}

// place names the group.
func (s scaled) place() string {
	return fmt.Sprintf("worker group %s of RayCluster %s/%s", s.group.GroupName, s.cluster.Namespace, s.cluster.Name)
}

// tell says what was done.
func (s scaled) tell(env *kube.Env) error {
	if len(s.changes) == 0 {
		_, err := fmt.Fprintf(env.Out, "Skipped %s: it has %s already\n", s.place(), s.size)
		return err
	}
	if err := s.warn(env); err != nil {
		return err
	}
	words := make([]string, 0, len(s.changes))
	for _, change := range s.changes {
		words = append(words, change.String())
	}
	_, err := fmt.Fprintf(env.Out, "Scaled %s: %s\n", s.place(), strings.Join(words, ", "))
	return err
}

// warn tells why the number of Pods may not become what was asked for.
func (s scaled) warn(env *kube.Env) error {
	var warning string
	switch {
	case isTrue(s.cluster.Spec.Suspend):
		warning = fmt.Sprintf("RayCluster %s/%s is suspended: it has no workers until it is resumed", s.cluster.Namespace, s.cluster.Name)
	case isTrue(s.group.Suspend):
		warning = s.place() + " is suspended: it has no workers until it is resumed"
	case isTrue(s.cluster.Spec.EnableInTreeAutoscaling):
		warning = "Ray's autoscaler is on and sets the number of replicas within the bounds"
	default:
		return nil
	}
	_, err := fmt.Fprintln(env.ErrOut, "Warning:", warning)
	return err
}

func isTrue(flag *bool) bool { return flag != nil && *flag }

// findGroup reads a RayCluster and returns the index of a worker group in it.
func findGroup(ctx context.Context, c client.Reader, namespace, name, group string) (*rayv1.RayCluster, int, error) {
	object, _, err := kube.Find(ctx, c, namespace, "raycluster/"+name)
	if err != nil {
		return nil, 0, err
	}
	cluster, ok := object.(*rayv1.RayCluster)
	if !ok {
		return nil, 0, fmt.Errorf("%s/%s is not a RayCluster", namespace, name)
	}
	names := make([]string, 0, len(cluster.Spec.WorkerGroupSpecs))
	for i := range cluster.Spec.WorkerGroupSpecs {
		if cluster.Spec.WorkerGroupSpecs[i].GroupName == group {
			return cluster, i, nil
		}
		names = append(names, cluster.Spec.WorkerGroupSpecs[i].GroupName)
	}
	if len(names) == 0 {
		return nil, 0, fmt.Errorf("no worker group %q in RayCluster %s/%s: it has none", group, namespace, name)
	}
	return nil, 0, fmt.Errorf("no worker group %q in RayCluster %s/%s: it has %s", group, namespace, name, strings.Join(names, ", "))
}
