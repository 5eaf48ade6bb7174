package kube

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// completionTime bounds how long a shell waits for names.
const completionTime = "3s"

// CompleteNames completes the names of objects of the given kinds. With several kinds, those after the first are written
// TYPE/NAME.
func (e *Env) CompleteNames(kinds ...Kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		*e.Flags.Timeout = completionTime
		c, err := e.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		namespace, err := e.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for i, kind := range kinds {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(rayv1.GroupVersion.WithKind(string(kind) + "List"))
			if err := c.List(cmd.Context(), list, client.InNamespace(namespace)); err != nil {
				continue
			}
			for _, item := range list.Items {
				name := item.Name
				if i > 0 {
					name = strings.ToLower(string(kind)) + "/" + name
				}
				if !slices.Contains(args, name) {
					names = append(names, name)
				}
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
