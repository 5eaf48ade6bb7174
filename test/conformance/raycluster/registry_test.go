package raycluster

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

// Case is one way in which a RayCluster behaves; row 1 is CL-001. "Given" is a RayCluster "demo" with one group "a" of two
// workers, at least none and at most four, with no fault tolerance and no autoscaler, unless it says otherwise.
type Case = table.Case[*env]

const (
	same   = table.Same
	better = table.Better
)

const header = `# RayCluster compared with KubeRay

Each line is a test on a real API server (` + "`go test ./test/conformance/raycluster -run TestCL/CL-001`" + `), and this page is made from
the tests (` + "`-run TestCompatibilityTable -update`" + `). A line starts from a RayCluster with one group of two workers, without autoscaler
and fault tolerance, unless it says otherwise.

**same**: what clients see is the same as with KubeRay. **better**: it differs on purpose; the W numbers are those of the
weak spots of KubeRay that we list for ourselves.
`

func section() table.Section[*env] {
	return table.Section[*env]{
		Name: "raycluster", Header: header,
		Prefix: "CL", LastRow: 128, Cases: cases(),
		// Rows that belong to other parts of the project.
		Excluded: []table.Range{
			{First: 115, Last: 121, Why: "batch schedulers: not served yet, have their own issue"},
			{First: 122, Last: 125, Why: "network policies and mTLS: not served yet, have their own issue"},
		},
		Reported: "Reports of users of KubeRay, and what is right.", FirstReport: 1, LastReport: 30, Reports: reports(),
		WeakPrefix: "W", LastWeak: 64, WeakSpots: weakSpots(),
	}
}

func cases() []Case {
	all := slices.Concat(creationCases(), statusCases(), countCases(), deletionCases(), replacementCases(), refusalCases(),
		serviceCases(), multiHostCases(), multiHostTroubleCases(), suspendCases(), autoscalerCases(), recreateCases(), storageCases(), authCases(),
		ingressCases(), validationCases(), identityCases())
	slices.SortFunc(all, func(a, b Case) int { return a.Row - b.Row })
	return all
}

func TestCL(t *testing.T) { section().RunCases(t, newEnv) }

func TestL(t *testing.T) { section().RunReports(t, newEnv) }

func TestEveryCaseIsThereOnce(t *testing.T) { section().CheckCases(t) }

func TestEveryReportIsAnswered(t *testing.T) { section().CheckReports(t) }

// TestWeakSpotsAreComplete: each of the 64 has a case, a test elsewhere or an issue, and no test is named that is not there.
func TestWeakSpotsAreComplete(t *testing.T) { section().CheckWeakSpots(t) }

// TestCompatibilityTable keeps the section of docs/compatibility.md with the list of cases up to date.
func TestCompatibilityTable(t *testing.T) { section().CheckPage(t) }
