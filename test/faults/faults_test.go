package faults_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/test/faults"
)

func TestJudge(t *testing.T) {
	early, wanted, true2, other := faults.Finding{ID: "early"}, faults.Finding{ID: "wanted", Evidence: "seen"}, faults.Finding{ID: "also"}, faults.Finding{ID: "other"}
	for name, c := range map[string]struct {
		want   string
		looks  [][]faults.Finding
		found  bool
		alarms []faults.Finding
	}{
		"nothing is found":                      {"wanted", [][]faults.Finding{{}}, false, nil},
		"what shows before the fault does":      {"wanted", [][]faults.Finding{{early}, {wanted}}, true, nil},
		"what is true as well":                  {"wanted", [][]faults.Finding{{wanted, true2}}, true, nil},
		"something else beside it, twice":       {"wanted", [][]faults.Finding{{other, wanted}, {wanted, other}}, true, []faults.Finding{other}},
		"it goes away":                          {"wanted", [][]faults.Finding{{wanted}, {}}, false, nil},
		"something else after it":               {"wanted", [][]faults.Finding{{wanted}, {wanted, other}}, true, []faults.Finding{other}},
		"a healthy object":                      {"", [][]faults.Finding{{}}, true, nil},
		"an alarm about a healthy object":       {"", [][]faults.Finding{{other}}, true, []faults.Finding{other}},
		"only something else than the expected": {"wanted", [][]faults.Finding{{other}}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := faults.Verdict{Want: c.want, Also: []string{"also"}}
			for _, look := range c.looks {
				v.Judge(look)
			}
			if v.Found != c.found {
				t.Errorf("found %t, want %t", v.Found, c.found)
			}
			if diff := cmp.Diff(c.alarms, v.Others); diff != "" {
				t.Errorf("false alarms (-want +got):\n%s", diff)
			}
		})
	}
}
