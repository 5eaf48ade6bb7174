// Package status is the command that shows an object of ray.io/v1 on one screen.
package status

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
)

type options struct {
	output  *kube.Output
	watch   bool
	verbose bool
}

// New returns the command `status`.
func New(env *kube.Env) *cobra.Command {
	o := &options{}
	command := &cobra.Command{
		Use:   "status (NAME | TYPE/NAME)",
		Short: "Show a Ray cluster, job, service or cron job on one screen",
		Long: "Show a Ray cluster, job, service or cron job on one screen: how it is and since when, its head and worker groups, " +
			"what is wrong with it and what to do, and what was lost lately.\n\nIts parts are read one after the other, so they may be some " +
			"moments apart.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), env, args[0])
		},
	}
	o.output = kube.AddOutputFlag(command, kube.OutputJSON, kube.OutputYAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "Look again every two seconds, until interrupted.")
	command.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "Show conditions and events, too.")
	return command
}

func (o *options) run(ctx context.Context, env *kube.Env, name string) error {
	looker, err := look.Open(env)
	if err != nil {
		return err
	}
	if o.watch {
		return screen.Watch(ctx, env, func(ctx context.Context) (screen.Picture, error) { return o.draw(ctx, env, looker, name) })
	}
	picture, err := o.draw(ctx, env, looker, name)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(env.Out, picture.Screen); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

func (o *options) draw(ctx context.Context, env *kube.Env, looker *look.Looker, name string) (screen.Picture, error) {
	sight, err := looker.At(ctx, name)
	if err != nil {
		return screen.Picture{}, err
	}
	r := reportOf(sight)
	if o.verbose || o.output.Format != "" {
		r.addDetails(sight)
	}
	if o.output.Format != "" {
		text, err := kube.MarshalFacts(o.output.Format, r)
		return screen.Picture{Screen: text, Line: r.line()}, err
	}
	style := screen.Style{Colored: env.Colored(env.Out), Width: kube.Width(env.Out)}
	return screen.Picture{Screen: r.text(style, env.Now()), Line: r.line()}, nil
}
