// Package cli is the kubectl plugin: one folder for each command.
package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-io/heliostat/internal/cli/check"
	"github.com/heliostat-io/heliostat/internal/cli/create"
	"github.com/heliostat-io/heliostat/internal/cli/delete"
	"github.com/heliostat-io/heliostat/internal/cli/diagnose"
	"github.com/heliostat-io/heliostat/internal/cli/get"
	"github.com/heliostat-io/heliostat/internal/cli/job"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/log"
	"github.com/heliostat-io/heliostat/internal/cli/logs"
	"github.com/heliostat-io/heliostat/internal/cli/plan"
	"github.com/heliostat-io/heliostat/internal/cli/report"
	"github.com/heliostat-io/heliostat/internal/cli/scale"
	"github.com/heliostat-io/heliostat/internal/cli/session"
	"github.com/heliostat-io/heliostat/internal/cli/status"
	"github.com/heliostat-io/heliostat/internal/cli/suspend"
	"github.com/heliostat-io/heliostat/internal/cli/tree"
	"github.com/heliostat-io/heliostat/internal/cli/version"
	"github.com/heliostat-io/heliostat/internal/cli/wait"
)

// New returns the root command. program is what the user types to run it.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	return NewIn(kube.NewEnv(streams, program, version))
}

// NewIn returns the root command in a given environment.
func NewIn(env *kube.Env) *cobra.Command {
	root := &cobra.Command{
		// cobra takes the first word for the name of the program's file, which the script of "completion" is for. With that
		// being kubectl, the script would take the place of kubectl's own.
		Use:           strings.ReplaceAll(env.Program, " ", "-"),
		Short:         "See, explain and change Ray clusters, jobs and services on Kubernetes",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: env.Program},
		// What cobra does with unknown commands where these are missing cannot be told from other errors.
		Args:              mustBeKnown,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	env.Flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&env.Color, "color", env.Color, "When to colour the output: auto, always or never.")
	for _, group := range []*cobra.Group{{ID: groupSee, Title: "See and explain:"}, {ID: groupChange, Title: "Change:"}, {ID: groupUse, Title: "Use:"}} {
		root.AddGroup(group)
	}
	for id, commands := range commands(env) {
		for _, command := range commands {
			command.GroupID = id
			root.AddCommand(command)
		}
	}
	// cobra makes these when the program runs, which is too late for what comes next.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	kube.MarkUsageErrors(root)
	return root
}

// suggestionDistance is how many letters of a command may be wrong for it to be suggested, cobra's own default.
const suggestionDistance = 2

// mustBeKnown says that a command is unknown, and which one may be meant.
func mustBeKnown(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	root.SuggestionsMinimumDistance = suggestionDistance
	message := fmt.Sprintf("unknown command %q for %q", args[0], root.CommandPath())
	if alike := root.SuggestionsFor(args[0]); len(alike) > 0 {
		message += ": did you mean " + strings.Join(alike, " or ") + "?"
	}
	return errors.New(message)
}

// The groups of commands in the help.
const (
	groupSee    = "see"
	groupChange = "change"
	groupUse    = "use"
)

// commands are all commands by the group that they are shown in.
func commands(env *kube.Env) map[string][]*cobra.Command {
	return map[string][]*cobra.Command{
		groupSee: {
			check.New(env), diagnose.New(env), get.New(env), plan.New(env), report.New(env), status.New(env), tree.New(env),
			version.New(env), wait.New(env),
		},
		groupChange: {
			create.New(env), delete.New(env), scale.New(env), suspend.NewSuspend(env), suspend.NewResume(env),
		},
		groupUse: {job.New(env), log.New(env), logs.New(env), session.New(env)},
	}
}
