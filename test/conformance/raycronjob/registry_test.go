package raycronjob

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/heliostat-io/heliostat/test/conformance/table"
	"github.com/heliostat-io/heliostat/test/harness"
)

func TestMain(m *testing.M) {
	// Cases mostly wait, so some more than there are processors may run at once. A flag on the command line wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}

// Case is one way in which a RayCronJob behaves; row 1 is RC-001. "Given" is a RayCronJob "nightly" of every five minutes,
// unless it says otherwise; times are those of a RayCronJob that was created at 00:00.
type Case = table.Case[*env]

const (
	same   = table.Same
	better = table.Better
)

const header = `# RayCronJob compared with KubeRay

Each line is a test on a real API server (` + "`go test ./test/conformance/raycronjob -run TestRC/RC-001`" + `). A line starts from a
RayCronJob with the schedule ` + "`*/5 * * * *`" + `, created at 00:00, unless it says otherwise; times are UTC.

**same** and **better** are as above; the RC-W numbers are those of the weak spots of KubeRay that we list for ourselves.
`

func section() table.Section[*env] {
	return table.Section[*env]{
		Name: "raycronjob", Header: header,
		Prefix: "RC", LastRow: 64, Cases: cases(),
		WeakPrefix: "RC-W", LastWeak: 18, WeakSpots: weakSpots(),
	}
}

func cases() []Case {
	all := slices.Concat(tickCases(), crashCases(), suspendCases(), scheduleCases(), refusalCases(), runCases(), missedCases(), policyCases(), reportCases())
	slices.SortFunc(all, func(a, b Case) int { return a.Row - b.Row })
	return all
}

func TestRC(t *testing.T) { section().RunCases(t, newEnv) }

func TestEveryCaseIsThereOnce(t *testing.T) { section().CheckCases(t) }

// TestWeakSpotsAreComplete: each of the 18 has a case or a test elsewhere, and no test is named that is not there.
func TestWeakSpotsAreComplete(t *testing.T) { section().CheckWeakSpots(t) }

// TestCompatibilityTable keeps the section of docs/compatibility.md with the list of cases up to date.
func TestCompatibilityTable(t *testing.T) { section().CheckPage(t) }
