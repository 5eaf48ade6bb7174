// Package tree is the command that shows which objects an object of ray.io/v1 consists of.
package tree

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
)

// New returns the command `tree`.
func New(env *kube.Env) *cobra.Command {
	var output *kube.Output
	var all bool
	command := &cobra.Command{
		Use:   "tree (NAME | TYPE/NAME)",
		Short: "Show the objects that a Ray cluster, job, service or cron job consists of",
		Long: "Show the objects that a Ray cluster, job, service or cron job consists of, each below the one that controls it. Pods of one " +
			"group that are in the same state are one line.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames(kube.Kinds()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			sight, err := look.At(cmd.Context(), env, args[0])
			if err != nil {
				return err
			}
			root := treeOf(sight)
			if !all && output.Format == "" {
				root.fold()
			}
			text := draw(root, screen.Style{Colored: env.Colored(env.Out)})
			if output.Format != "" {
				if text, err = kube.MarshalFacts(output.Format, root); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprint(env.Out, text); err != nil {
				return fmt.Errorf("write the tree: %w", err)
			}
			return nil
		},
	}
	output = kube.AddOutputFlag(command, kube.OutputJSON, kube.OutputYAML)
	command.Flags().BoolVar(&all, "all", false, "Show each Pod on a line of its own.")
	return command
}

// line is one line of the picture before the states are put in a column.
type line struct {
	text string
	node *node
}

func draw(root *node, style screen.Style) string {
	lines := append([]line{{root.title(), root}}, branches(root, "")...)
	width := 0
	for _, l := range lines {
		width = max(width, utf8.RuneCountInString(l.text))
	}
	var text strings.Builder
	for _, l := range lines {
		state := l.node.State
		if l.node.Bad {
			state = style.Bad(state)
		}
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(l.text)+2)
		text.WriteString(strings.TrimRight(l.text+pad+state, " ") + "\n")
	}
	return text.String()
}

func branches(n *node, indent string) []line {
	var lines []line
	for i, child := range n.Children {
		branch, further := "├─ ", "│  "
		if i == len(n.Children)-1 {
			branch, further = "└─ ", "   "
		}
		lines = append(lines, line{indent + branch + child.title(), child})
		lines = append(lines, branches(child, indent+further)...)
	}
	return lines
}
