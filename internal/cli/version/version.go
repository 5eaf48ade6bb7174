// Package version tells the versions of the plugin, of the operator and of the API that is served.
package version

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// New returns the command "version" (spec/ecosystem.md, section 2.9). What cannot be found out is a warning and no
// failure, because the plugin's own version is known in every case.
func New(env *kube.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Show the versions of the plugin, the operator and the API",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	output := kube.AddOutputFlag(cmd, kube.OutputJSON, kube.OutputYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found := look(cmd.Context(), env)
		if output.Format != "" {
			return kube.PrintFacts(env.Out, output.Format, found)
		}
		return found.print(env)
	}
	return cmd
}

// versions is what was found out.
type versions struct {
	Plugin    string     `json:"plugin"`
	Operators []operator `json:"operators"`
	// CRDs are the resources of ray.io that the API server serves.
	CRDs []crd `json:"crds"`
	// Warnings say what could not be found out, and why.
	Warnings []string `json:"warnings,omitempty"`
}

func (v versions) print(env *kube.Env) error {
	var out, warnings bytes.Buffer
	fmt.Fprintf(&out, "kubectl ray plugin version: %s\n", v.Plugin)
	for _, o := range v.Operators {
		fmt.Fprintf(&out, "Ray operator version: %s (Deployment %s/%s, image %s, %d of %d ready)\n",
			o.Version, o.Namespace, o.Deployment, o.Image, o.Ready, o.Replicas)
	}
	for _, c := range v.CRDs {
		fmt.Fprintf(&out, "%s: %s\n", c.Name, c.served())
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(&warnings, "Warning: %s\n", warning)
	}
	if _, err := env.Out.Write(out.Bytes()); err != nil {
		return err
	}
	_, err := env.ErrOut.Write(warnings.Bytes())
	return err
}
