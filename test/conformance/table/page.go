package table

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/compatibility.md anew")

// CheckPage checks that the section on docs/compatibility.md says what the lists say, or with -update writes it.
func (s Section[E]) CheckPage(t *testing.T) {
	CheckPart(t, filepath.Join(root, "docs", "compatibility.md"), s.Name, s.text())
}

// CheckPart checks that a part of a page, which stands between two markers of its name, is as wanted, or with -update writes
// it.
func CheckPart(t *testing.T, path, name, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	before, rest, begun := strings.Cut(page, marker(name, "begin"))
	have, after, ended := strings.Cut(rest, marker(name, "end"))
	switch {
	case !begun || !ended:
		t.Fatalf("%s has no section %s: add the two lines\n%s%s", path, name, marker(name, "begin"), marker(name, "end"))
	case *update:
		page = before + marker(name, "begin") + want + marker(name, "end") + after
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	case have != want:
		t.Errorf("section %s of %s is stale: run this test with -update", name, path)
	}
}

func marker(section, what string) string { return fmt.Sprintf("<!-- %s: %s -->\n", section, what) }

// text is the section as it is to be.
func (s Section[E]) text() string {
	var page strings.Builder
	page.WriteString(s.Header)
	page.WriteString("\n| case | what | KubeRay | Heliostat |\n|---|---|---|---|\n")
	for _, c := range s.Cases {
		theirs, ours := compared(c)
		row(&page, s.caseName(c.Row), c.told(), theirs, ours)
	}
	if len(s.Excluded) > 0 {
		page.WriteString("\n## Not covered here\n\n| cases | why |\n|---|---|\n")
	}
	for _, e := range s.Excluded {
		row(&page, s.caseName(e.First)+" to "+s.caseName(e.Last), e.Why)
	}
	if len(s.Reports) > 0 {
		fmt.Fprintf(&page, "\n## What users reported\n\n%s\n\n| report | what | right | test |\n|---|---|---|---|\n", s.Reported)
	}
	for _, r := range s.Reports {
		where := r.Elsewhere
		if r.Run != nil {
			where = "TestL/" + reportName(r.Number)
		}
		row(&page, reportName(r.Number), r.What, r.Right, where)
	}
	if len(s.WeakSpots) > 0 {
		page.WriteString("\n## The other weak spots\n\n| weak spot of KubeRay | | Heliostat | test |\n|---|---|---|---|\n")
	}
	for _, spot := range s.WeakSpots {
		test := ""
		if spot.Test != "" {
			test = spot.Test + " in " + spot.Folder
		}
		row(&page, s.weakName(spot.Number), spot.What, spot.Ours, test)
	}
	return page.String()
}

// told is the case in one line.
func (c Case[E]) told() string {
	what := c.When + ": " + c.Then
	if c.Given != "" {
		what = c.Given + "; " + what
	}
	if c.Elsewhere != "" {
		what += " (" + c.Elsewhere + ")"
	}
	return what
}

// compared is what KubeRay does in the case, and what Heliostat does.
func compared[E any](c Case[E]) (theirs, ours string) {
	if c.Kind == Better {
		return c.Theirs, fmt.Sprintf("better: %s (%s)", c.How, strings.Join(c.Weak, ", "))
	}
	if c.How != "" {
		return "yes", "same: " + c.How
	}
	return "yes", "same"
}

func row(page *strings.Builder, cells ...string) {
	fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
}
