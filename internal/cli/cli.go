// Package cli is the kubectl plugin: one folder for each command.
package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/heliostat-io/heliostat/internal/cli/job"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/log"
	"github.com/heliostat-io/heliostat/internal/cli/logs"
	"github.com/heliostat-io/heliostat/internal/cli/session"
)

// New returns the root command. program is what the user types to run it.
func New(streams genericiooptions.IOStreams, program, version string) *cobra.Command {
	return newRoot(kube.NewEnv(streams, program, version))
}

func newRoot(env *kube.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           env.Program,
		Short:         "See, explain and change Ray clusters, jobs and services on Kubernetes",
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: env.Program},
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
	return root
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
		groupSee:    {},
		groupChange: {},
		groupUse:    {job.New(env), session.New(env), logs.New(env), log.New(env)},
	}
}
