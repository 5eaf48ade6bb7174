package census

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// answerAt is when an answer was given: they are ten seconds apart.
func answerAt(number int) time.Time {
	return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(time.Duration(number) * 10 * time.Second)
}

func answer(t testing.TB, nodes []dashboard.Node, actors ...dashboard.Actor) *dashboard.Census {
	t.Helper()
	return &dashboard.Census{Nodes: nodes, Actors: actors}
}

func alive(id, node string, restarts int) dashboard.Actor {
	return dashboard.Actor{ID: id, Class: "C", Name: id, State: dashboard.ActorAlive, Node: node, Restarts: dashboard.Number(restarts)}
}

func onItsWay(id string, restarts int) dashboard.Actor {
	return dashboard.Actor{ID: id, Class: "C", Name: id, State: "RESTARTING", Restarts: dashboard.Number(restarts)}
}

func dead(id, node, reason string) dashboard.Actor {
	return dashboard.Actor{ID: id, Class: "C", Name: id, State: dashboard.ActorDead, Node: node, DeathCause: dashboard.Died(reason)}
}

func orphan(id, node, owner string) dashboard.Actor {
	actor := dead(id, node, "OWNER_DIED")
	actor.DeathCause.Died.OwnerIP = owner
	return actor
}

func node(id, ip, state string) dashboard.Node { return dashboard.Node{ID: id, IP: ip, State: state} }

func TestWhatBecomesOfActors(t *testing.T) {
	n1, n2, n1Dead, n3 := node("n1", "10.0.0.1", "ALIVE"), node("n2", "10.0.0.2", "ALIVE"), node("n1", "10.0.0.1", "DEAD"), node("n3", "10.0.0.1", "ALIVE")
	both, without, replaced := []dashboard.Node{n1, n2}, []dashboard.Node{n1Dead, n2}, []dashboard.Node{n1Dead, n2, n3}
	type step struct {
		session string
		answer  *dashboard.Census
	}
	for name, tc := range map[string]struct {
		steps  []step
		ofNode Fate // of node n1
		ofAll  Fate
	}{
		"nothing is lost": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0), alive("b", "n2", 0))}, {"s", answer(t, both, alive("a", "n1", 0), alive("b", "n2", 0))}},
			ofNode: Fate{}, ofAll: Fate{Actors: Tally{Kept: 2}, Settled: true}},
		"one that cannot be started anew is lost": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0), alive("b", "n2", 0))}, {"s", answer(t, without, dead("a", "n1", "NODE_DIED"), alive("b", "n2", 0))}},
			ofNode: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}, ofAll: Fate{Actors: Tally{Lost: 1, Kept: 1, Names: []string{"a"}}, Settled: true}},
		"one that can be is restarting, and then restored on another node": {
			steps: []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, without, onItsWay("a", 1))},
				{"s", answer(t, without, alive("a", "n2", 1))}},
			ofNode: Fate{Actors: Tally{Restored: 1}, Settled: true}, ofAll: Fate{Actors: Tally{Restored: 1}, Settled: true}},
		"one that is still restarting": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, without, onItsWay("a", 1))}},
			ofNode: Fate{Actors: Tally{Restarting: 1}, Settled: true}, ofAll: Fate{Actors: Tally{Restarting: 1}, Settled: true}},
		"one that comes back at the same address, between two answers": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, replaced, alive("a", "n3", 1))}},
			ofNode: Fate{Actors: Tally{Restored: 1}, Settled: true}, ofAll: Fate{Actors: Tally{Restored: 1}, Settled: true}},
		"one that comes back, and is lost in the end": {
			steps: []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, without, onItsWay("a", 1))},
				{"s", answer(t, without, dead("a", "n1", "NODE_DIED"))}},
			ofNode: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}, ofAll: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}},
		"one that somebody has ended is no loss": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, both, dead("a", "n1", "RAY_KILL"))}},
			ofNode: Fate{}, ofAll: Fate{Settled: true}},
		"one that was dead before": {
			steps:  []step{{"s", answer(t, both, dead("a", "n1", "NODE_DIED"))}, {"s", answer(t, without, dead("a", "n1", "NODE_DIED"))}},
			ofNode: Fate{Settled: true}, ofAll: Fate{Settled: true}},
		"Ray forgets a dead one": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, without, dead("a", "n1", "NODE_DIED"))}, {"s", answer(t, without)}},
			ofNode: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}, ofAll: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}},
		"one that ended on a node that lived on, and the node was lost later": {
			steps: []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, both, alive("a", "n2", 1))},
				{"s", answer(t, both, alive("a", "n2", 1))}, {"s", answer(t, without, alive("a", "n2", 1))}},
			ofNode: Fate{Settled: true}, ofAll: Fate{Actors: Tally{Restored: 1}, Settled: true}},
		"one that is gone before its node is told dead": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, both, onItsWay("a", 1))}, {"s", answer(t, without, alive("a", "n2", 1))}},
			ofNode: Fate{Actors: Tally{Restored: 1}, Settled: true}, ofAll: Fate{Actors: Tally{Restored: 1}, Settled: true}},
		"one that comes back, and loses its next node too": {
			steps: []step{{"s", answer(t, both, alive("a", "n1", 0))}, {"s", answer(t, without, alive("a", "n2", 1))},
				{"s", answer(t, []dashboard.Node{n1Dead, node("n2", "10.0.0.2", "DEAD")}, dead("a", "n2", "NODE_DIED"))}},
			ofNode: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}, ofAll: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}},
		"one elsewhere dies because its owner was lost": {
			steps:  []step{{"s", answer(t, both, alive("a", "n2", 0))}, {"s", answer(t, without, orphan("a", "n2", "10.0.0.1"))}},
			ofNode: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}, ofAll: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}},
		"the owner of one ends as it should": {
			steps: []step{{"s", answer(t, both, alive("a", "n2", 0))}, {"s", answer(t, both, orphan("a", "n2", "10.0.0.1"))},
				{"s", answer(t, both, orphan("a", "n2", "10.0.0.1"))}, {"s", answer(t, without, orphan("a", "n2", "10.0.0.1"))}},
			ofNode: Fate{Settled: true}, ofAll: Fate{Settled: true}},
		"a new head knows nobody": {
			steps:  []step{{"s", answer(t, both, alive("a", "n1", 0), alive("b", "n2", 0))}, {"s2", answer(t, []dashboard.Node{n3})}},
			ofNode: Fate{Actors: Tally{Lost: 1, Names: []string{"a"}}, Settled: true}, ofAll: Fate{Actors: Tally{Lost: 2, Names: []string{"a", "b"}}, Settled: true}},
		"a new head knows all, because its state was kept": {
			steps:  []step{{"s", answer(t, both, alive("a", "n2", 0))}, {"s", answer(t, without, alive("a", "n2", 0))}},
			ofNode: Fate{Settled: true}, ofAll: Fate{Actors: Tally{Kept: 1}, Settled: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var l *Ledger
			for i, s := range tc.steps {
				l = l.After(s.answer, s.session, answerAt(i))
			}
			if d := cmp.Diff(tc.ofNode, l.OfNodes([]string{"n1"}), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("of the node (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.ofAll, l.OfAll(answerAt(0)), cmpopts.EquateEmpty()); d != "" {
				t.Errorf("of all (-want +got):\n%s", d)
			}
		})
	}
}

func TestAnOldLossIsForgotten(t *testing.T) {
	both := []dashboard.Node{node("n1", "10.0.0.1", "ALIVE"), node("n2", "10.0.0.2", "ALIVE")}
	var l *Ledger
	l = l.After(answer(t, both, alive("a", "n1", 0)), "s", answerAt(0))
	l = l.After(answer(t, both, alive("a", "n2", 1)), "s", answerAt(1))
	l = l.After(answer(t, both, alive("a", "n2", 1)), "s", answerAt(1).Add(memory))
	if got := l.OfNodes([]string{"n1"}); got.Actors.Restored != 0 {
		t.Errorf("after %s %+v is told of the node", memory, got)
	}
	if got := l.OfAll(answerAt(0)); got.Actors.Kept != 1 {
		t.Errorf("and %+v of all", got)
	}
}

func TestNodesAtAnAddress(t *testing.T) {
	var l *Ledger
	l = l.After(answer(t, []dashboard.Node{node("n1", "10.0.0.1", "DEAD"), node("n2", "10.0.0.1", "ALIVE"), node("n3", "10.0.0.2", "ALIVE")}), "s", answerAt(0))
	if d := cmp.Diff([]string{"n2"}, l.NodesAt("10.0.0.1")); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
}

func TestNodesOfAPod(t *testing.T) {
	n1, n1Dead, n2, old := node("n1", "10.0.0.1", "ALIVE"), node("n1", "10.0.0.1", "DEAD"), node("n2", "10.0.0.1", "ALIVE"), node("old", "10.0.0.1", "DEAD")
	var l *Ledger
	of := func(since int) []string { return l.NodesOf("10.0.0.1", answerAt(since)) }
	l = l.After(answer(t, []dashboard.Node{n1, old, node("n3", "10.0.0.2", "ALIVE")}), "s", answerAt(0))
	if d := cmp.Diff([]string{"n1"}, of(0)); d != "" {
		t.Errorf("while it lives (-want +got):\n%s", d)
	}
	if got := of(1); got != nil {
		t.Errorf("after that %v", got)
	}
	l = l.After(answer(t, []dashboard.Node{n1Dead, old, n2}), "s", answerAt(1))
	if d := cmp.Diff([]string{"n1"}, of(0)); d != "" {
		t.Errorf("when the next one is there (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"n2"}, of(1)); d != "" {
		t.Errorf("of the next one (-want +got):\n%s", d)
	}
}

func TestNodesOfAnEarlierHead(t *testing.T) {
	n1, n2 := node("n1", "10.0.0.1", "ALIVE"), node("n2", "10.0.0.2", "ALIVE")
	var l *Ledger
	l = l.After(answer(t, []dashboard.Node{n1}), "s", answerAt(0))
	if l.Outlived([]string{"n1"}) || l.Outlived(nil) {
		t.Error("a node is taken for one of an earlier head")
	}
	l = l.After(answer(t, []dashboard.Node{n2}), "s2", answerAt(1))
	l = l.After(answer(t, []dashboard.Node{n2}), "s2", answerAt(2))
	if !l.Outlived([]string{"n1"}) || l.Outlived([]string{"n1", "n2"}) || !l.Since.Equal(answerAt(0)) {
		t.Errorf("what is known is %+v", l)
	}
	l = l.After(answer(t, []dashboard.Node{n2}), "s2", answerAt(0).Add(memory))
	if len(l.Nodes) != 1 {
		t.Errorf("after %s it remembers %+v", memory, l.Nodes)
	}
}

// TestNobodyIsCountedTwiceOrForgotten plays random lives: an actor that lived on a lost node is counted exactly once, whatever
// Ray says of it afterwards, unless somebody has ended it.
func TestNobodyIsCountedTwiceOrForgotten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]{3}"), 0, 8, rapid.ID).Draw(r, "actors")
		var first []dashboard.Actor
		for _, id := range ids {
			first = append(first, alive(id, "n1", 0))
		}
		nodes := []dashboard.Node{node("n1", "10.0.0.1", "ALIVE"), node("n2", "10.0.0.2", "ALIVE")}
		gone := []dashboard.Node{node("n1", "10.0.0.1", "DEAD"), node("n2", "10.0.0.2", "ALIVE")}
		var l *Ledger
		l = l.After(answer(t, nodes, first...), "s", answerAt(0))
		for i := range rapid.IntRange(1, 4).Draw(r, "answers") {
			var next []dashboard.Actor
			for _, id := range ids {
				switch rapid.IntRange(0, 2).Draw(r, "fate of "+id) {
				case 0:
					next = append(next, dead(id, "n1", "NODE_DIED"))
				case 1:
					next = append(next, onItsWay(id, 1))
				default:
					next = append(next, alive(id, "n2", 1))
				}
			}
			l = l.After(answer(t, gone, next...), "s", answerAt(i+1))
		}
		f := l.OfNodes([]string{"n1"})
		if f.Actors.Lost+f.Actors.Restarting+f.Actors.Restored != len(ids) || len(f.Actors.Names) != f.Actors.Lost || !f.Settled {
			r.Errorf("of %d actors %+v is told", len(ids), f)
		}
	})
}
