package census

import (
	"cmp"
	"slices"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// Group is what is known of one placement group.
type Group struct {
	// Label is its name, or its ID where it has none.
	Label string
	State dashboard.GroupState
	// Nodes are those on which room is reserved for it, each once.
	Nodes []string
	// Losses are the nodes that it has lost lately.
	Losses []Loss
}

// followGroups takes in the placement groups that Ray tells of. One that somebody has removed is of no interest any more.
func (l *Ledger) followGroups(told []dashboard.PlacementGroup, before *Ledger) {
	for i := range told {
		group := &told[i]
		now := Group{Label: cmp.Or(group.Name, group.ID), State: group.State}
		for _, bundle := range group.Bundles {
			if bundle.Node != "" && !slices.Contains(now.Nodes, bundle.Node) {
				now.Nodes = append(now.Nodes, bundle.Node)
			}
		}
		was := before.Groups[group.ID]
		now.Losses = recent(was.Losses, l.At)
		if was.State == dashboard.GroupCreated {
			now.lose(was.Nodes, l.At)
		}
		if group.State != dashboard.GroupRemoved {
			l.Groups[group.ID] = now
		}
	}
}

// lose notes the nodes on which there is no room for the group any more.
func (g *Group) lose(before []string, at time.Time) {
	for _, node := range before {
		if !slices.Contains(g.Nodes, node) {
			g.Losses = add(g.Losses, Loss{Node: node, At: at})
		}
	}
}

// mournGroups adds the placement groups of an earlier life of the head that the next one does not know.
func (l *Ledger) mournGroups(before *Ledger) {
	for id, was := range before.Groups {
		if _, told := l.Groups[id]; told {
			continue
		}
		was.Losses = recent(was.Losses, l.At)
		if was.State != dashboard.GroupRemoved && l.Session != before.Session {
			for _, node := range was.Nodes {
				was.Losses = add(was.Losses, Loss{Node: node, At: l.At})
			}
			was.State = dashboard.GroupRemoved
		}
		if was.State == dashboard.GroupRemoved && len(was.Losses) > 0 {
			l.Groups[id] = was
		}
	}
}

func (t *Tally) addGroup(g Group) {
	switch g.State {
	case dashboard.GroupRemoved:
		t.Lost++
		t.Names = append(t.Names, g.Label)
	case dashboard.GroupCreated:
		t.Restored++
	default:
		t.Restarting++
	}
}
