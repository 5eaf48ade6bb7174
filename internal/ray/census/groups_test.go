package census

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// placed is a placement group in a state, with room on nodes; an empty one stands for a bundle that waits.
func placed(id string, state dashboard.GroupState, nodes string) dashboard.PlacementGroup {
	g := dashboard.PlacementGroup{ID: id, Name: id, State: state}
	for _, node := range strings.Split(nodes, ",") {
		g.Bundles = append(g.Bundles, struct {
			Node string `json:"node_id"`
		}{node})
	}
	return g
}

func TestWhatBecomesOfPlacementGroups(t *testing.T) {
	n1, n2, n1Dead := node("n1", "10.0.0.1", "ALIVE"), node("n2", "10.0.0.2", "ALIVE"), node("n1", "10.0.0.1", "DEAD")
	both, without := []dashboard.Node{n1, n2}, []dashboard.Node{n1Dead, n2}
	type step struct {
		session string
		nodes   []dashboard.Node
		groups  []dashboard.PlacementGroup
	}
	first := step{"s", both, []dashboard.PlacementGroup{placed("g", "CREATED", "n1,n2,n1")}}
	for name, tc := range map[string]struct {
		steps         []step
		ofNode, ofAll Tally
	}{
		"nothing is lost": {[]step{first, first}, Tally{}, Tally{Kept: 1}},
		"one waits for room": {[]step{first, {"s", without, []dashboard.PlacementGroup{placed("g", "RESCHEDULING", ",n2,")}}},
			Tally{Restarting: 1}, Tally{Restarting: 1}},
		"one has room elsewhere": {[]step{first, {"s", without, []dashboard.PlacementGroup{placed("g", "RESCHEDULING", ",n2,")}},
			{"s", without, []dashboard.PlacementGroup{placed("g", "CREATED", "n2,n2,n2")}}}, Tally{Restored: 1}, Tally{Restored: 1}},
		"one has room elsewhere, between two answers": {[]step{first, {"s", without, []dashboard.PlacementGroup{placed("g", "CREATED", "n2,n2,n2")}}},
			Tally{Restored: 1}, Tally{Restored: 1}},
		"somebody has removed it": {[]step{first, {"s", without, []dashboard.PlacementGroup{placed("g", "REMOVED", "n1,n2,n1")}}}, Tally{}, Tally{}},
		"Ray tells of it no more": {[]step{first, {"s", without, nil}}, Tally{}, Tally{}},
		"a new head does not know it": {[]step{first, {"s2", without, nil}, {"s2", without, nil}},
			Tally{Lost: 1, Names: []string{"g"}}, Tally{Lost: 1, Names: []string{"g"}}},
		"a new head knows it, because its state was kept": {[]step{first, {"s", both, first.groups}}, Tally{}, Tally{Kept: 1}},
		"one that never had room is none that is lost":    {[]step{{"s", both, []dashboard.PlacementGroup{placed("g", "PENDING", "")}}, {"s", without, []dashboard.PlacementGroup{placed("g", "PENDING", "")}}}, Tally{}, Tally{}},
	} {
		t.Run(name, func(t *testing.T) {
			var l *Ledger
			for i, s := range tc.steps {
				l = l.After(&dashboard.Census{Nodes: s.nodes, Groups: s.groups}, s.session, answerAt(i))
			}
			if d := cmp.Diff(tc.ofNode, l.OfNodes([]string{"n1"}).Groups, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("of the node (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.ofAll, l.OfAll(answerAt(0)).Groups, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("of all (-want +got):\n%s", d)
			}
		})
	}
}

func TestJobsAreCountedForThemselves(t *testing.T) {
	job := alive("j", "n1", 0)
	job.Name = "_ray_internal_job_actor_train-x7k2m"
	var l *Ledger
	l = l.After(answer(t, []dashboard.Node{node("n1", "10.0.0.1", "ALIVE")}, job, alive("a", "n1", 0)), "s", answerAt(0))
	if got := l.OfAll(answerAt(0)); got.Jobs.Kept != 1 || got.Actors.Kept != 1 {
		t.Errorf("while all is well %+v", got)
	}
	l = l.After(answer(t, []dashboard.Node{node("n2", "10.0.0.2", "ALIVE")}), "s2", answerAt(1))
	got := l.OfAll(answerAt(0))
	if d := cmp.Diff(Tally{Lost: 1, Names: []string{"train-x7k2m"}}, got.Jobs); d != "" {
		t.Errorf("jobs (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Tally{Lost: 1, Names: []string{"a"}}, got.Actors); d != "" {
		t.Errorf("actors (-want +got):\n%s", d)
	}
}
