package rayjob

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

// Case is one way in which a RayJob behaves; row 1 is RJ-001. "Given" is a RayJob "train" in K8sJobMode with a cluster of
// its own that has one worker, unless it says otherwise.
type Case = table.Case[*env]

const (
	same   = table.Same
	better = table.Better
)

const header = `# RayJob compared with KubeRay

Each line is a test on a real API server and with a scripted Ray dashboard
(` + "`go test ./test/conformance/rayjob -run TestRJ/RJ-001`" + `). A line starts from a RayJob in K8sJobMode with a cluster of its own,
unless it says otherwise.

**same** and **better** are as above; the RJ-W numbers are those of the weak spots of KubeRay that we list for ourselves.
`

func section() table.Section[*env] {
	return table.Section[*env]{
		Name: "rayjob", Header: header,
		Prefix: "RJ", LastRow: 102, Cases: cases(),
		Reported: "Reports of users of KubeRay, and what is right.", FirstReport: 31, LastReport: 48, Reports: reports(),
		WeakPrefix: "RJ-W", LastWeak: 24, WeakSpots: weakSpots(),
	}
}

func cases() []Case {
	all := slices.Concat(startCases(), submitterCases(), trackingCases(), trackingLimitCases(), modeCases(), selectorCases(), retryCases(),
		deadlineCases(), suspendCases(), cleanupCases(), deletionCases(), validationCases(), realRayCases(), betterCases())
	slices.SortFunc(all, func(a, b Case) int { return a.Row - b.Row })
	return all
}

func TestRJ(t *testing.T) { section().RunCases(t, newEnv) }

func TestL(t *testing.T) { section().RunReports(t, newEnv) }

func TestEveryCaseIsThereOnce(t *testing.T) { section().CheckCases(t) }

func TestEveryReportIsAnswered(t *testing.T) { section().CheckReports(t) }

// TestWeakSpotsAreComplete: each of the 24 has a case, a test elsewhere or an issue, and no test is named that is not there.
func TestWeakSpotsAreComplete(t *testing.T) { section().CheckWeakSpots(t) }

// TestCompatibilityTable keeps the section of docs/compatibility.md with the list of cases up to date.
func TestCompatibilityTable(t *testing.T) { section().CheckPage(t) }
