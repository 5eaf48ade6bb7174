package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heliostat-io/heliostat/internal/cli/look"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
	rules "github.com/heliostat-io/heliostat/internal/diagnose"
)

// report is what the command says, in every format.
type report struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Findings  []finding `json:"findings"`
	Gaps      []gap     `json:"gaps,omitempty"`
}

type finding struct {
	ID       string   `json:"id"`
	Severity string   `json:"severity"`
	Object   string   `json:"object"`
	Others   []string `json:"others,omitempty"`
	Evidence string   `json:"evidence"`
	Cause    string   `json:"cause"`
	Next     string   `json:"next"`
	Link     string   `json:"link"`
}

type gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

func reportOf(sight *look.Sight) report {
	r := report{Kind: string(sight.Target.Kind), Namespace: sight.Target.Namespace, Name: sight.Target.Name, Findings: []finding{}}
	for _, f := range rules.Fold(sight.Findings) {
		entry := f.Explained()
		r.Findings = append(r.Findings, finding{
			ID: f.ID, Severity: f.Severity.String(), Object: f.Object, Others: f.Others, Evidence: f.Message,
			Cause: entry.Cause, Next: entry.Next, Link: entry.Link(),
		})
	}
	for _, g := range sight.Snapshot.Gaps {
		r.Gaps = append(r.Gaps, gap(g))
	}
	return r
}

// found tells whether anything needs an eye. Notes do not.
func (r report) found() bool {
	for _, f := range r.Findings {
		if f.Severity != rules.Note.String() {
			return true
		}
	}
	return false
}

// blind tells whether so much could not be read that finding nothing means nothing.
func (r report) blind() bool {
	return slices.ContainsFunc(r.Gaps, func(g gap) bool { return slices.Contains([]string{"Pods", "RayClusters", "Events"}, g.What) })
}

func (r report) text(style screen.Style) string {
	var text strings.Builder
	who := fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
	text.WriteString(style.Bold(who) + ": " + r.count() + "\n")
	for i, f := range r.Findings {
		text.WriteString("\n" + f.text(style, i+1))
	}
	if len(r.Gaps) > 0 {
		text.WriteString("\nNot everything could be read, so something may be missing here:\n")
	}
	for _, g := range r.Gaps {
		text.WriteString(style.Paragraph("  - "+g.What+": ", g.Why))
	}
	return text.String()
}

// line is the whole in one line, for a log of changes.
func (r report) line() string {
	parts := []string{fmt.Sprintf("%s %s/%s: %s", r.Kind, r.Namespace, r.Name, r.count())}
	for _, f := range r.Findings {
		parts = append(parts, f.ID+" "+f.Object)
	}
	return strings.Join(parts, "; ")
}

func (r report) count() string {
	switch n := len(r.Findings); n {
	case 0:
		return "nothing found"
	case 1:
		return "1 finding"
	default:
		return fmt.Sprintf("%d findings", n)
	}
}

func (f finding) text(style screen.Style, number int) string {
	severity := style.Worrying(f.Severity)
	if f.Severity == rules.Blocking.String() {
		severity = style.Bad(f.Severity)
	}
	head := fmt.Sprintf("%d. %s (%s)", number, style.Bold(f.ID), severity)
	object := f.Object
	switch len(f.Others) {
	case 0:
	case 1:
		object += " and " + f.Others[0]
	default:
		object += fmt.Sprintf(" and %d more", len(f.Others))
	}
	var text strings.Builder
	text.WriteString(head + "\n")
	for _, part := range []struct{ label, text string }{
		{"Object", object}, {"Evidence", f.Evidence}, {"Cause", f.Cause}, {"Next", f.Next}, {"More", f.Link},
	} {
		if part.text != "" {
			text.WriteString(style.Paragraph(fmt.Sprintf("   %-10s", part.label), part.text))
		}
	}
	return text.String()
}
