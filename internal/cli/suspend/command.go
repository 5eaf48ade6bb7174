// Package suspend holds the commands that stop an object and let it go on.
package suspend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// NewSuspend returns the command `suspend`.
func NewSuspend(env *kube.Env) *cobra.Command {
	return newCommand(env, true, "suspend", "Stop Ray clusters, jobs, services or cron jobs without deleting them",
		"Set spec.suspend. A RayCluster and a RayService give up their Pods, a RayJob its present attempt, a RayCronJob its next runs.", "suspended")
}

// NewResume returns the command `resume`.
func NewResume(env *kube.Env) *cobra.Command {
	return newCommand(env, false, "resume", "Let suspended Ray clusters, jobs, services or cron jobs go on",
		"Unset spec.suspend. A RayJob starts a new attempt.", "resumed")
}

func newCommand(env *kube.Env, value bool, use, short, long, done string) *cobra.Command {
	return &cobra.Command{
		Use:               use + " (NAME | TYPE/NAME)...",
		Short:             short,
		Long:              long,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, argument := range args {
				if err := set(cmd.Context(), env, argument, value, done); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func set(ctx context.Context, env *kube.Env, argument string, value bool, done string) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	namespace, err := env.Namespace()
	if err != nil {
		return err
	}
	object, target, err := kube.Find(ctx, c, namespace, argument)
	if err != nil {
		return err
	}
	if suspended(object) == value {
		return say(env, target, "already "+done)
	}
	if err := refuse(object, value); err != nil {
		return fmt.Errorf("%s is not %s: %w", target, done, err)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"suspend": value}})
	if err != nil {
		return fmt.Errorf("write the patch for %s: %w", target, err)
	}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(kube.FieldManager)); err != nil {
		return fmt.Errorf("set spec.suspend of %s: %w", target, err)
	}
	return say(env, target, done)
}

// refuse tells why an object cannot be suspended. A RayJob that keeps its cluster would end as ValidationFailed.
func refuse(object client.Object, value bool) error {
	job, isJob := object.(*rayv1.RayJob)
	if value && isJob && !job.Spec.ShutdownAfterJobFinishes {
		return errors.New("it needs spec.shutdownAfterJobFinishes: true, because a suspended RayJob gives up its cluster")
	}
	return nil
}

func say(env *kube.Env, target kube.Target, what string) error {
	if _, err := fmt.Fprintf(env.Out, "%s %s\n", target, what); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func suspended(object client.Object) bool {
	switch o := object.(type) {
	case *rayv1.RayCluster:
		return ptr.Deref(o.Spec.Suspend, false)
	case *rayv1.RayJob:
		return o.Spec.Suspend
	case *rayv1.RayService:
		return o.Spec.Suspend
	case *rayv1.RayCronJob:
		return ptr.Deref(o.Spec.Suspend, false)
	default:
		return false
	}
}
