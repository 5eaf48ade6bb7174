// Package diagnose is the command that says why an object is not as it should be.
package diagnose

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
)

type options struct {
	output *kube.Output
	watch  bool
}

// New returns the command `diagnose`. It exits with 0 when nothing was found, 1 when something was, 2 when it could not
// look.
func New(env *kube.Env) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "diagnose (NAME | TYPE/NAME)",
		Short: "Say why a Ray cluster, job, service or cron job is not as it should be",
		Long: "Say why a Ray cluster, job, service or cron job is not as it should be: each finding has its evidence, its cause and " +
			"what to do.\n\nExit codes: 0 nothing was found, 1 something was found, 2 it was not possible to look.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), env, args[0])
		},
	}
	o.output = kube.AddOutputFlag(command, kube.OutputJSON, kube.OutputYAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "Look again every two seconds, until interrupted.")
	return command
}

func (o *options) run(ctx context.Context, env *kube.Env, name string) error {
	looker, err := look.OpenThorough(env)
	if err != nil {
		return err
	}
	if o.watch {
		return screen.Watch(ctx, env, func(ctx context.Context) (screen.Picture, error) {
			r, err := once(ctx, looker, name)
			if err != nil {
				return screen.Picture{}, err
			}
			text, err := o.text(env, r)
			return screen.Picture{Screen: text, Line: r.line()}, err
		})
	}
	r, err := once(ctx, looker, name)
	if err != nil {
		return err
	}
	text, err := o.text(env, r)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(env.Out, text); err != nil {
		return fmt.Errorf("write the findings: %w", err)
	}
	switch {
	case r.found():
		return kube.ExitError{Code: kube.ExitFailed}
	case r.blind():
		return kube.ExitError{Code: kube.ExitCannotLook}
	default:
		return nil
	}
}

// once looks once.
func once(ctx context.Context, looker *look.Looker, name string) (report, error) {
	sight, err := looker.At(ctx, name)
	if err != nil {
		return report{}, err
	}
	return reportOf(sight), nil
}

func (o *options) text(env *kube.Env, r report) (string, error) {
	if o.output.Format != "" {
		return kube.MarshalFacts(o.output.Format, r)
	}
	return r.text(screen.Style{Colored: env.Colored(env.Out), Width: kube.Width(env.Out)}), nil
}
