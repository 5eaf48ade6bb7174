package clitest

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// Complete completes the last of the arguments of a command, the name of the command not included, as a shell would ask
// for it, and returns what cobra answers: one word a line, and a colon with the directive.
func (k *Kube) Complete(t testing.TB, command func(*kube.Env) *cobra.Command, args ...string) string {
	t.Helper()
	k.Out.Reset()
	k.ErrOut.Reset()
	root := &cobra.Command{Use: "ray"}
	root.SetOut(k.Out)
	root.SetErr(k.ErrOut)
	k.Env.Flags.AddFlags(root.PersistentFlags())
	sub := command(k.Env)
	root.AddCommand(sub)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd, sub.Name()}, args...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k.Out.String()
}
