// Package check is the command that tells whether the installation of the operator is usable.
package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

// New returns the command `check`. It exits with 0 when the installation is usable, 1 when it is not, 2 when it could not
// look.
func New(env *kube.Env) *cobra.Command {
	var output *kube.Output
	command := &cobra.Command{
		Use:   "check",
		Short: "Tell whether the operator is installed, running, leading, and allowed to do its work",
		Long: "Tell whether the operator is installed, running, leading, fenced and allowed to do its work, and what you yourself may do " +
			"in the namespace.\n\nExit codes: 0 usable, 1 not usable, 2 it was not possible to look.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), env, output)
		},
	}
	output = kube.AddOutputFlag(command, kube.OutputJSON, kube.OutputYAML)
	return command
}

// report is what the command says, in every format.
type report struct {
	Checks   []line    `json:"checks"`
	Findings []finding `json:"findings,omitempty"`
}

// line is the outcome of one check.
type line struct {
	Check string `json:"check"`
	// Result is ok, bad or unknown.
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

type finding struct {
	ID     string `json:"id"`
	Object string `json:"object"`
	Cause  string `json:"cause"`
	Next   string `json:"next"`
}

// Names of checks.
const (
	checkAPI            = "API"
	checkOperator       = "operator"
	checkLeader         = "leader"
	checkFence          = "fence"
	checkOperatorRights = "operator's rights"
	checkRights         = "your rights"
)

// Results of a check.
const (
	ok      = "ok"
	bad     = "bad"
	unknown = "unknown"
)

func run(ctx context.Context, env *kube.Env, output *kube.Output) error {
	source, err := look.Thorough(env)
	if err != nil {
		return kube.ExitError{Code: kube.ExitCannotLook, Err: err}
	}
	snapshot := source.OfOperator(ctx)
	r := report{Checks: checks(ctx, env, snapshot)}
	for _, f := range diagnose.Findings(snapshot) {
		if f.Severity == diagnose.Note {
			continue
		}
		entry := f.Explained()
		r.Findings = append(r.Findings, finding{f.ID, f.Object, entry.Cause, entry.Next})
	}
	text := r.text(screen.Style{Colored: env.Colored(env.Out), Width: kube.Width(env.Out)})
	if output.Format != "" {
		if text, err = kube.MarshalFacts(output.Format, r); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(env.Out, text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return r.exit()
}

// exit judges the whole. What is most important must be known for a good answer: the API and the operator.
func (r report) exit() error {
	code := 0
	for _, c := range r.Checks {
		switch {
		case c.Result == bad:
			return kube.ExitError{Code: kube.ExitFailed}
		case c.Result == unknown && (c.Check == checkAPI || c.Check == checkOperator):
			code = kube.ExitCannotLook
		}
	}
	switch {
	case len(r.Findings) > 0:
		return kube.ExitError{Code: kube.ExitFailed}
	case code != 0:
		return kube.ExitError{Code: code}
	default:
		return nil
	}
}

func (r report) text(style screen.Style) string {
	rows := [][]string{{"CHECK", "RESULT", "DETAIL"}}
	for _, c := range r.Checks {
		rows = append(rows, []string{c.Check, c.Result, c.Detail})
	}
	var text strings.Builder
	text.WriteString(screen.Table(rows))
	for _, f := range r.Findings {
		fmt.Fprintf(&text, "\n%s: %s\n", style.Bad(f.ID), f.Object)
		text.WriteString(style.Paragraph("  ", f.Cause))
		text.WriteString(style.Paragraph("  → ", f.Next))
	}
	return text.String()
}
