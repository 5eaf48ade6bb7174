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
finding has an id, the object to look at, the evidence, the cause, and what to do. This page has all findings by id.

The operator goes by the same rules, as far as it can read what they need: it reads no nodes, logs, policies and Secrets of users. The worst
finding about a RayCluster, RayJob, RayService or RayCronJob stands in its condition ` + "`Troubled`" + `, which is there only while
something is wrong, and in one event when it is another one than before. A RayJob and a RayService have that of the RayCluster
that they wait for. The texts of ` + "`Troubled`, `Stalled`, `ReplicaFailure`, `PodsHealthy`" + ` (each line) and of events end in one form:

` + "```" + `
Pod demo-head-x7k2p: container ray-head: not found. The registry has no image "rayproject/ray:2.99". [finding image-not-found: Correct ...]
` + "```" + `

that is, in ` + "`[finding ID: what to do]`" + `:

` + "```bash" + `
kubectl get raycluster demo -o jsonpath='{.status.conditions[?(@.type=="Troubled")].message}' | sed -n 's/.*\[finding \([a-z0-9-]*\):.*/\1/p'
` + "```" + `

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
