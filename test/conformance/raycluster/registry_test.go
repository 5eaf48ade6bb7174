package raycluster

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/heliostat-io/heliostat/test/harness"
)

func TestMain(m *testing.M) {
	// Cases mostly wait, so some more than there are processors may run at once. A flag on the command line wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}

// kind says how a case compares with KubeRay.
type kind string

const (
	same   kind = "same"
	better kind = "better"
)

// Case is one way in which a RayCluster behaves. "Given" is a RayCluster "demo" with one group "a" of two workers, at
// least none and at most four, with no fault tolerance and no autoscaler, unless it says otherwise.
type Case struct {
	// Row is the number of the case: row 1 is CL-001.
	Row  int
	Kind kind
	// Weak are the weak spots of KubeRay on which the case improves.
	Weak              []string
	Given, When, Then string
	// Theirs says what KubeRay does where ours is better.
	Theirs string
	// How says how ours differs, or adds something to what is the same.
	How string
	Run func(*env)
}

func (c Case) name() string { return fmt.Sprintf("CL-%03d", c.Row) }

// excluded are the rows that belong to other parts of the project, with the reason.
func excluded() []struct {
	first, last int
	why         string
} {
	return []struct {
		first, last int
		why         string
	}{
		{71, 83, "fault tolerance of the GCS (Redis, embedded store): not served yet, has its own issue"},
		{115, 121, "batch schedulers: not served yet, have their own issue"},
		{122, 125, "network policies and mTLS: not served yet, have their own issue"},
	}
}

// lastRow is the number of the last case.
const lastRow = 128

func cases() []Case {
	all := slices.Concat(creationCases(), statusCases(), countCases(), deletionCases(), replacementCases(), refusalCases(),
		serviceCases(), multiHostCases(), multiHostTroubleCases(), suspendCases(), autoscalerCases(), recreateCases(), authCases(),
		ingressCases(), validationCases(), identityCases())
	slices.SortFunc(all, func(a, b Case) int { return a.Row - b.Row })
	return all
}

func TestCL(t *testing.T) {
	for _, c := range cases() {
		t.Run(c.name(), func(t *testing.T) {
			t.Parallel()
			c.Run(newEnv(t))
		})
	}
}

func TestEveryCaseIsThereOnce(t *testing.T) {
	var want, have []int
	for row := 1; row <= lastRow; row++ {
		if !slices.ContainsFunc(excluded(), func(e struct {
			first, last int
			why         string
		}) bool {
			return e.first <= row && row <= e.last
		}) {
			want = append(want, row)
		}
	}
	for _, c := range cases() {
		have = append(have, c.Row)
		if c.Run == nil || c.When == "" || c.Then == "" || c.Kind == better && (c.How == "" || c.Theirs == "" || len(c.Weak) == 0) {
			t.Errorf("%s is not complete", c.name())
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("have the rows %v, want %v", have, want)
	}
}
