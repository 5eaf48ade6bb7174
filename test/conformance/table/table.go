// Package table is what the conformance tests of all kinds have in common: cases with numbers, reports of users, weak
// spots of KubeRay, and the section of docs/compatibility.md that is made from their lists.
package table

import (
	"fmt"
	"testing"
)

// Kind says how a case compares with KubeRay.
type Kind string

// The kinds of cases.
const (
	// Same means that clients see what they see with KubeRay.
	Same Kind = "same"
	// Better means that ours differs on purpose.
	Better Kind = "better"
)

// Case is one way in which an object behaves. E is what a test works with.
type Case[E any] struct {
	// Row is the number of the case.
	Row  int
	Kind Kind
	// Weak are the weak spots of KubeRay on which the case improves.
	Weak              []string
	Given, When, Then string
	// Theirs says what KubeRay does where ours is better.
	Theirs string
	// How says how ours differs, or adds something to what is the same.
	How string
	// Run is the test, if it is here.
	Run func(E)
	// Elsewhere says where the case is tested otherwise.
	Elsewhere string
}

// Range are rows that belong to other parts of the project, with the reason.
type Range struct {
	First, Last int
	Why         string
}

// Report is something that users of KubeRay reported; the numbers are those of our own list.
type Report[E any] struct {
	Number int
	// What happens, and what is right then.
	What, Right string
	// Run is the test, if it is here.
	Run func(E)
	// Elsewhere says where the report is tested, or why it is not yet.
	Elsewhere string
}

// WeakSpot is a weak spot of KubeRay that no case speaks of.
type WeakSpot struct {
	Number int
	// What says what is weak, Ours what is done about it.
	What, Ours string
	// Folder and Test name the test that shows it; both are empty for what has an issue of its own.
	Folder, Test string
}

// Section is all that docs/compatibility.md says about one kind.
type Section[E any] struct {
	// Name is that of the folder of the tests, and marks the section on the page.
	Name string
	// Header is the text above the cases.
	Header string
	// Prefix is that of the case numbers, such as "CL".
	Prefix string
	// LastRow is the number of the last case; the first one is 1.
	LastRow  int
	Cases    []Case[E]
	Excluded []Range
	// Reported is the text above the reports.
	Reported                string
	FirstReport, LastReport int
	Reports                 []Report[E]
	// WeakPrefix is that of the weak spots, such as "W".
	WeakPrefix string
	// LastWeak is the number of the last weak spot; the first one is 1.
	LastWeak  int
	WeakSpots []WeakSpot
}

func (s Section[E]) caseName(row int) string { return fmt.Sprintf("%s-%03d", s.Prefix, row) }

func reportName(number int) string { return fmt.Sprintf("L%02d", number) }

// RunCases runs each case as a test of its number, in parallel.
func (s Section[E]) RunCases(t *testing.T, newEnv func(*testing.T) E) {
	for _, c := range s.Cases {
		if c.Run == nil {
			continue
		}
		t.Run(s.caseName(c.Row), func(t *testing.T) {
			t.Parallel()
			c.Run(newEnv(t))
		})
	}
}

// RunReports runs each report that is tested here as a test of its number, in parallel.
func (s Section[E]) RunReports(t *testing.T, newEnv func(*testing.T) E) {
	for _, r := range s.Reports {
		if r.Run == nil {
			continue
		}
		t.Run(reportName(r.Number), func(t *testing.T) {
			t.Parallel()
			r.Run(newEnv(t))
		})
	}
}
