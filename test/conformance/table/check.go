package table

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root leads from the folder of a kind's tests to the top of the repository.
var root = filepath.Join("..", "..", "..")

// CheckCases checks that each row has one complete case, or belongs to another part of the project.
func (s Section[E]) CheckCases(t *testing.T) {
	var want, have []int
	for row := 1; row <= s.LastRow; row++ {
		if !slices.ContainsFunc(s.Excluded, func(e Range) bool { return e.First <= row && row <= e.Last }) {
			want = append(want, row)
		}
	}
	for _, c := range s.Cases {
		have = append(have, c.Row)
		tested := c.Run != nil || c.Elsewhere != ""
		if !tested || c.When == "" || c.Then == "" || c.Kind == Better && (c.How == "" || c.Theirs == "" || len(c.Weak) == 0) {
			t.Errorf("%s is not complete", s.caseName(c.Row))
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("have the rows %v, want %v", have, want)
	}
}

// CheckReports checks that each report has one complete answer.
func (s Section[E]) CheckReports(t *testing.T) {
	var want, have []int
	for number := s.FirstReport; number <= s.LastReport; number++ {
		want = append(want, number)
	}
	for _, r := range s.Reports {
		have = append(have, r.Number)
		if r.What == "" || r.Right == "" || r.Run == nil && r.Elsewhere == "" {
			t.Errorf("%s is not complete", reportName(r.Number))
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("have the reports %v, want %v", have, want)
	}
}

// CheckWeakSpots checks that each weak spot has a case, a test elsewhere or an issue, and that no test is named which is
// not there.
func (s Section[E]) CheckWeakSpots(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range s.Cases {
		for _, weak := range c.Weak {
			covered[weak] = true
		}
	}
	for _, spot := range s.WeakSpots {
		covered[s.weakName(spot.Number)] = true
		if spot.Test != "" && !hasTest(t, spot.Folder, spot.Test) {
			t.Errorf("%s: there is no %s in %s", s.weakName(spot.Number), spot.Test, spot.Folder)
		}
	}
	for number := 1; number <= s.LastWeak; number++ {
		if !covered[s.weakName(number)] {
			t.Errorf("nothing speaks of %s", s.weakName(number))
		}
	}
}

func (s Section[E]) weakName(number int) string { return fmt.Sprint(s.WeakPrefix, number) }

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "func "+name+"(t *testing.T)")
	})
}
