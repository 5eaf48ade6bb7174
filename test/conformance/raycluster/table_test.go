package raycluster

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/compatibility.md anew")

const tableHeader = `# RayCluster compared with KubeRay

Each line is a test on a real API server (` + "`go test ./test/conformance/raycluster -run TestCL/CL-001`" + `), and this page is made from
the tests (` + "`-run TestCompatibilityTable -update`" + `). A line starts from a RayCluster with one group of two workers, without autoscaler
and fault tolerance, unless it says otherwise.

**same**: what clients see is the same as with KubeRay. **better**: it differs on purpose; the W numbers are those of the
weak spots of KubeRay that we list for ourselves.

| case | what | KubeRay | Heliostat |
|---|---|---|---|
`

// TestCompatibilityTable keeps the page with the list of cases up to date.
func TestCompatibilityTable(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "compatibility.md")
	want := table()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is stale: run go test ./test/conformance/raycluster -run TestCompatibilityTable -update", path)
	}
}

func table() string {
	var page strings.Builder
	page.WriteString(tableHeader)
	for _, c := range cases() {
		what := c.When + ": " + c.Then
		if c.Given != "" {
			what = c.Given + "; " + what
		}
		theirs, ours := "yes", "same"
		if c.How != "" {
			ours += ": " + c.How
		}
		if c.Kind == better {
			theirs, ours = c.Theirs, fmt.Sprintf("better: %s (%s)", c.How, strings.Join(c.Weak, ", "))
		}
		row(&page, c.name(), what, theirs, ours)
	}
	page.WriteString("\n## Not covered here\n\n| cases | why |\n|---|---|\n")
	for _, e := range excluded() {
		row(&page, fmt.Sprintf("CL-%03d to CL-%03d", e.first, e.last), e.why)
	}
	page.WriteString("\n## What users reported\n\nReports of users of KubeRay, and what is right.\n\n| report | what | right | test |\n|---|---|---|---|\n")
	for _, r := range reports() {
		where := r.Elsewhere
		if r.Run != nil {
			where = "TestL/" + r.name()
		}
		row(&page, r.name(), r.What, r.Right, where)
	}
	page.WriteString(weakSpotsTable())
	return page.String()
}

func row(page *strings.Builder, cells ...string) {
	fmt.Fprintf(page, "| %s |\n", strings.Join(cells, " | "))
}
