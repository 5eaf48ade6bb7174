package diagnose

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/troubleshooting.md anew")

// guidePage is the page that is made from the catalogue.
const guidePage = "../../docs/troubleshooting.md"

const guideHead = `# Why is it not working

<!-- Generated from internal/diagnose by "go test ./internal/diagnose -run TestGuide -update". Do not edit. -->

` + "`kubectl ray diagnose NAME`" + ` looks at a Ray cluster, job, service or cron job and at all that it needs, and says what is wrong: each
finding has an id, the object to look at, the evidence, the cause, and what to do. This page has all findings by id. The operator
puts the worst trouble of a cluster's Pods into the conditions ` + "`PodsHealthy` and `Stalled`" + ` by the same rules.

- **blocking** trouble stays until somebody changes something, **passing** trouble may end by itself, a **note** is no trouble.
- ` + "`kubectl ray diagnose`" + ` exits with 0 when it found nothing, with 1 when it found something, and with 2 when it could not look.
  What it may not read it names at the end; rules that need it are silent then.
- Start with ` + "`kubectl ray check`" + ` when nothing happens at all: it looks at the operator itself.

If you have no finding yet, look for what you see:

`

// TestGuide keeps the page the same as the rules.
func TestGuide(t *testing.T) {
	want := guideHead + symptoms() + explanations()
	if *update {
		if err := os.WriteFile(guidePage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(guidePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not as the rules are; run this test with -update (-want +got):\n%s", guidePage, diff)
	}
}

func families() []Family {
	var all []Family
	for _, entry := range Catalogue() {
		if !slices.Contains(all, entry.Family) {
			all = append(all, entry.Family)
		}
	}
	return all
}

func symptoms() string {
	var text strings.Builder
	text.WriteString("| you see | finding |\n|---|---|\n")
	for _, entry := range Catalogue() {
		fmt.Fprintf(&text, "| %s | [%s](#%s) |\n", strings.ReplaceAll(entry.Symptom, "|", `\|`), entry.ID, entry.ID)
	}
	return text.String()
}

func explanations() string {
	var text strings.Builder
	for _, family := range families() {
		fmt.Fprintf(&text, "\n## %s\n", family)
		for _, entry := range Catalogue() {
			if entry.Family == family {
				fmt.Fprintf(&text, "\n### %s\n\n%s.\n\n*Cause:* %s\n\n*What to do:* %s\n", entry.ID, strings.TrimSuffix(entry.Symptom, "."), entry.Cause, entry.Next)
			}
		}
	}
	return text.String()
}
