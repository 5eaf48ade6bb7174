// Package plan is the command that shows what the operator would write now for a RayCluster, and why.
package plan

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// New returns the command `plan`.
func New(env *kube.Env) *cobra.Command {
	var output *kube.Output
	command := &cobra.Command{
		Use:   "plan NAME",
		Short: "Show what the operator would write now for a RayCluster, and why",
		Long: "Show what the operator would write now for a RayCluster, and why, without writing it. The plan is the operator's own, made " +
			"from what stands in the API server at this moment with the operator's default settings. What an operator remembers, such as writes " +
			"that were refused a moment ago, is not part of it. A RayCluster that is as it should be has an empty plan.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.RayCluster),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := reportOf(cmd.Context(), env, args[0])
			if err != nil {
				return kube.ExitError{Code: kube.ExitCannotLook, Err: err}
			}
			text := r.text(screen.Style{Colored: env.Colored(env.Out), Width: kube.Width(env.Out)})
			if output.Format != "" {
				if text, err = kube.MarshalFacts(output.Format, r); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprint(env.Out, text); err != nil {
				return fmt.Errorf("write the plan: %w", err)
			}
			return nil
		},
	}
	output = kube.AddOutputFlag(command, kube.OutputJSON, kube.OutputYAML)
	return command
}

func reportOf(ctx context.Context, env *kube.Env, argument string) (report, error) {
	c, err := env.Client()
	if err != nil {
		return report{}, err
	}
	namespace, err := env.Namespace()
	if err != nil {
		return report{}, err
	}
	target, err := kube.ParseTarget(namespace, argument)
	if err != nil {
		return report{}, err
	}
	if target.Kind != kube.RayCluster {
		return report{}, fmt.Errorf("there are plans for RayClusters only, not for a %s", target.Kind)
	}
	settings := raycluster.DefaultSettings()
	snapshot, err := raycluster.Observe(ctx, indexed{c}, target.NamespacedName, settings, env.Now())
	if err != nil {
		return report{}, err
	}
	if snapshot.Cluster == nil {
		return report{}, fmt.Errorf("no %s %q in namespace %q", target.Kind, target.Name, target.Namespace)
	}
	return describe(target, raycluster.Plan(snapshot, settings, env.Now()))
}

// isWarning tells whether an event needs an eye.
func isWarning(kind string) bool { return kind == corev1.EventTypeWarning }
