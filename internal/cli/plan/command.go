// Package plan is the command that shows what the operator would write now for an object of ray.io/v1, and why.
package plan

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
)

// New returns the command `plan`.
func New(env *kube.Env) *cobra.Command {
	var output *kube.Output
	command := &cobra.Command{
		Use:   "plan (NAME | TYPE/NAME)",
		Short: "Show what the operator would write now, and why",
		Long: "Show what the operator would write now for a Ray cluster, job, service or cron job, and why, without writing it. The plan is " +
			"the operator's own, made from what stands in the API server at this moment, with the settings of the operator's Deployment, or the " +
			"default ones where that may not be read; it says which. What an operator remembers, such as what Ray has said and which writes were " +
			"refused a moment ago, is not known here: it is shown what Ray is asked, what is waited for, and what cannot be told. An object that " +
			"is as it should be has an empty plan.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
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
	_, target, err := kube.Find(ctx, c, namespace, argument)
	if err != nil {
		return report{}, err
	}
	o, err := operatorOf(ctx, c, target.Namespace)
	if err != nil {
		return report{}, err
	}
	outlook, err := o.outlook(ctx, indexed{c}, target, env.Now())
	if err != nil {
		return report{}, err
	}
	r, err := describe(target, outlook)
	r.Settings = o.origin
	return r, err
}

// isWarning tells whether an event needs an eye.
func isWarning(kind string) bool { return kind == corev1.EventTypeWarning }
