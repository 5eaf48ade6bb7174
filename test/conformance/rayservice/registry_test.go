package rayservice

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/heliostat-io/heliostat/test/conformance/table"
	"github.com/heliostat-io/heliostat/test/harness"
)

func TestMain(m *testing.M) {
	// Cases mostly wait for the next time that Ray is asked, so many may run at once. A flag on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}

// Case is one way in which a RayService behaves; row 1 is RS-001. "Given" is a RayService "llm" of one application, on a
// cluster of a head and one worker, unless it says otherwise.
type Case = table.Case[*env]

const (
	same   = table.Same
	better = table.Better
)

const header = `# RayService compared with KubeRay

Each line is a test on a real API server, with scripted Ray dashboards and Serve proxies
(` + "`go test ./test/conformance/rayservice -run TestRS/RS-001`" + `). A line starts from a RayService of one application, on a cluster
of a head and one worker, unless it says otherwise.

**same** and **better** are as above; the RS-W numbers are those of the weak spots of KubeRay that we list for ourselves.
`

func section() table.Section[*env] {
	return table.Section[*env]{
		Name: "rayservice", Header: header,
		Prefix: "RS", LastRow: 100, Cases: cases(),
		Reported: "Reports of users of KubeRay, and what is right.", FirstReport: 49, LastReport: 63, Reports: reports(),
		WeakPrefix: "RS-W", LastWeak: 29, WeakSpots: weakSpots(),
	}
}

func cases() []Case {
	all := slices.Concat(startCases(), configCases(), upgradeCases(), podCases(), serviceCases(), timeoutCases(),
		validationCases(), suspendCases(), incrementalCases(), betterCases())
	slices.SortFunc(all, func(a, b Case) int { return a.Row - b.Row })
	return all
}

func TestRS(t *testing.T) { section().RunCases(t, newEnv) }

func TestL(t *testing.T) { section().RunReports(t, newEnv) }

func TestEveryCaseIsThereOnce(t *testing.T) { section().CheckCases(t) }

func TestEveryReportIsAnswered(t *testing.T) { section().CheckReports(t) }

// TestWeakSpotsAreComplete: each of the 29 has a case, a test elsewhere or an issue, and no test is named that is not there.
func TestWeakSpotsAreComplete(t *testing.T) { section().CheckWeakSpots(t) }

// TestCompatibilityTable keeps the section of docs/compatibility.md with the list of cases up to date.
func TestCompatibilityTable(t *testing.T) { section().CheckPage(t) }
