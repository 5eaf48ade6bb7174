package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
	"github.com/heliostat-io/heliostat/internal/cli/state"
)

// page writes a report for people. The first line says which object and whether its last change was seen, the second
// whether it is well.
type page struct {
	strings.Builder
	style screen.Style
	now   time.Time
}

func (r report) text(style screen.Style, now time.Time) string {
	p := &page{style: style, now: now}
	p.first(r)
	p.state("Status", "", r.State)
	p.job(r.Job)
	p.service(r.Service)
	p.schedule(r.Schedule)
	for _, c := range r.Clusters {
		p.cluster(c, len(r.Clusters) > 1 || r.Kind != string(kube.RayCluster))
	}
	p.problems(r.Problems)
	p.losses(r.Losses)
	p.conditions(r.Conditions)
	p.events(r.Events)
	return p.String()
}

// line is the report in one line without ages, for a log of changes.
func (r report) line() string {
	parts := []string{fmt.Sprintf("%s %s/%s is %s", r.Kind, r.Namespace, r.Name, r.Word)}
	if r.Message != "" {
		parts[0] += ": " + r.Message
	}
	for _, c := range r.Clusters {
		for _, g := range c.Groups {
			parts = append(parts, fmt.Sprintf("group %s has %d of %d ready", g.Name, g.Ready, g.Want))
		}
	}
	for _, f := range r.Problems {
		parts = append(parts, f.ID+" "+f.Object)
	}
	return strings.Join(parts, "; ")
}

// label is the width of the words in the left margin.
const label = "%-11s"

func (p *page) line(name, text string) {
	p.WriteString(p.style.Paragraph(fmt.Sprintf(label, name), text))
}

func (p *page) first(r report) {
	parts := []string{p.style.Bold(fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name))}
	if len(r.Clusters) == 1 && r.Clusters[0].RayVersion != "" {
		parts = append(parts, "Ray "+r.Clusters[0].RayVersion)
	}
	parts = append(parts, "age "+kube.Age(p.now, r.Created))
	seen := fmt.Sprintf("generation %d", r.Generation)
	switch {
	case r.ObservedGeneration == r.Generation:
		seen += " (seen)"
	case r.ObservedGeneration > 0:
		seen += p.style.Worrying(fmt.Sprintf(" (%d seen)", r.ObservedGeneration))
	}
	p.WriteString(strings.Join(append(parts, seen), "   ") + "\n")
}

func (p *page) state(name, who string, s state.State) {
	text := who + s.Word
	if !s.Since.IsZero() {
		text += " for " + kube.Age(p.now, s.Since)
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	if !s.Good() {
		// The colour must not be part of what is measured, so only the word has it.
		p.WriteString(strings.Replace(p.style.Paragraph(fmt.Sprintf(label, name), text), who+s.Word, who+p.style.Worrying(s.Word), 1))
		return
	}
	p.line(name, text)
}

func (p *page) job(j *job) {
	if j == nil {
		return
	}
	parts := []string{cmp.Or(j.ID, "no id yet"), cmp.Or(j.Status, "not known to Ray"), j.Mode}
	if j.Attempt > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", j.Attempt))
	}
	if j.Started != nil && j.Ended == nil {
		parts = append(parts, "started "+kube.Age(p.now, *j.Started)+" ago")
	}
	if j.Started != nil && j.Ended != nil {
		parts = append(parts, "took "+kube.Duration(j.Ended.Sub(j.Started.Time)))
	}
	p.line("Job", strings.Join(parts, "   "))
}

func (p *page) service(s *service) {
	if s == nil {
		return
	}
	p.line("Serving", fmt.Sprintf("%s   %d endpoints", cmp.Or(s.Active, "no cluster yet"), s.Endpoints))
	if s.Pending != "" {
		p.line("Preparing", s.Pending)
	}
	if s.Upgrade != "" {
		p.line("Upgrade", s.Upgrade)
	}
	if len(s.Applications) == 0 {
		return
	}
	rows := [][]string{{"APPLICATION", "CLUSTER", "STATUS"}}
	for _, a := range s.Applications {
		rows = append(rows, []string{a.Name, a.Cluster, a.Status})
	}
	p.WriteString("\n" + screen.Table(rows))
}

func (p *page) schedule(s *schedule) {
	if s == nil {
		return
	}
	text := s.Cron
	if s.TimeZone != "" {
		text += "   " + s.TimeZone
	}
	if s.Last != nil {
		text += "   last " + kube.Age(p.now, *s.Last) + " ago"
	}
	if s.Next != nil {
		text += "   next in " + kube.Duration(s.Next.Sub(p.now))
	}
	p.line("Schedule", text)
	if len(s.Jobs) == 0 {
		return
	}
	rows := [][]string{{"RAYJOB", "STATUS", "AGE"}}
	for _, j := range s.Jobs {
		rows = append(rows, []string{j.Name, j.Word, kube.Age(p.now, j.Created)})
	}
	p.WriteString("\n" + screen.Table(rows))
}

func (p *page) cluster(c cluster, named bool) {
	if named {
		p.WriteString("\n")
		p.state("Cluster", c.Name+"   ", c.State)
	}
	p.head(c.Head)
	if len(c.Groups) == 0 {
		return
	}
	rows := [][]string{{"GROUP", "WANT", "READY", "PENDING", "FAILING", "MIN", "MAX"}}
	for _, g := range c.Groups {
		most := "-"
		if g.Max != nil {
			most = number(*g.Max)
		}
		name := g.Name
		if g.Suspended {
			name += " (suspended)"
		}
		rows = append(rows, []string{name, number(g.Want), number(g.Ready), number(g.Pending), number(g.Failing), number(g.Min), most})
	}
	p.WriteString(screen.Table(rows))
	if c.WrittenBy != "" {
		p.line("", fmt.Sprintf("last written by %s, %s ago", c.WrittenBy, kube.Age(p.now, c.WrittenAt)))
	}
}

func number(n int32) string { return strconv.Itoa(int(n)) }

func (p *page) head(h *head) {
	if h == nil {
		p.line("Head", "none")
		return
	}
	parts := []string{h.Pod, h.Phase}
	if h.Phase == "Running" && !h.Ready {
		parts[1] += ", not ready"
	}
	if h.Node != "" {
		parts = append(parts, "node "+h.Node)
	}
	parts = append(parts, fmt.Sprintf("restarts %d", h.Restarts))
	if h.Dashboard != "" {
		parts = append(parts, "dashboard "+h.Dashboard)
	}
	p.line("Head", strings.Join(parts, "   "))
}

func (p *page) problems(problems []problem) {
	if len(problems) == 0 {
		return
	}
	p.WriteString("\nProblems\n")
	for i, f := range problems {
		object := f.Object
		if f.More > 0 {
			object += fmt.Sprintf(" and %d more", f.More)
		}
		fmt.Fprintf(p, "  %d. %s: %s\n", i+1, p.style.Bad(f.ID), object)
		p.WriteString(p.style.Paragraph("     ", f.Cause))
		p.WriteString(p.style.Paragraph("     → ", f.Next))
	}
}

func (p *page) losses(losses []loss) {
	rows := [][]string{{"LOST", "CAUSE", "AGO", "ACTORS LOST", "RESTORED", "JOBS LOST", "STATE"}}
	for _, l := range losses {
		if p.now.Sub(l.Time.Time) > newestAge {
			continue
		}
		lost, restored, jobs := "-", "-", "-"
		if l.Actors != nil {
			lost, restored = number(l.Actors.Lost), number(l.Actors.Restored)
		}
		if l.Jobs != nil {
			jobs = number(l.Jobs.Lost)
		}
		rows = append(rows, []string{string(l.Part) + " " + l.Pod, l.Cause, kube.Age(p.now, l.Time), lost, restored, jobs, string(l.State)})
	}
	if len(rows) > 1 {
		p.WriteString("\n" + screen.Table(rows))
	}
}

func (p *page) conditions(conditions []condition) {
	if len(conditions) == 0 {
		return
	}
	rows := [][]string{{"CONDITION", "STATUS", "SINCE", "REASON"}}
	for _, c := range conditions {
		rows = append(rows, []string{c.Type, c.Status, kube.Age(p.now, c.Since), c.Reason})
	}
	p.WriteString("\n" + screen.Table(rows))
}

func sortEvents(events []event) {
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
}

func (p *page) events(events []event) {
	if len(events) == 0 {
		return
	}
	rows := [][]string{{"AGO", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	for _, e := range events[max(0, len(events)-maxEvents):] {
		message := strings.Join(strings.Fields(e.Message), " ")
		rows = append(rows, []string{kube.Age(p.now, e.Time), e.Type, e.Reason, e.Object, message})
	}
	p.WriteString("\n" + screen.Table(rows))
}
