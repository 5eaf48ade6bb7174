// Package census remembers what became of the actors, placement groups and jobs of a Ray cluster. Ray itself tells only where they are now: an actor that
// was started anew on another node does not say which one it has left, and a new head knows nothing of the actors of the one
// before. A Ledger compares one answer with the next.
package census

import (
	"cmp"
	"slices"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// memory is how long it is remembered that an actor has left a node.
const memory = 15 * time.Minute

// Ledger is what is known of a Ray cluster after an answer. It is never changed: After returns another one.
type Ledger struct {
	// Since is when the first answer was asked for: of what was lost before that nothing is known.
	Since time.Time
	// At is when the last answer was asked for, and Session the life of the head that gave it.
	At      time.Time
	Session string
	// Actors are those that live, and those that have lost their place or have died lately, by ID.
	Actors map[string]Actor
	// Groups are placement groups: those that have their room, and those that have lost it lately, by ID.
	Groups map[string]Group
	// Nodes are all that Ray knows, and those that it has forgotten lately, by ID.
	Nodes map[string]Node
	// More is how many actors and placement groups Ray did not tell of, because there are too many.
	More int
}

// Node is what is known of one node.
type Node struct {
	IP    string
	Alive bool
	// AliveAt is the last answer in which it was alive, zero if it never was.
	AliveAt time.Time
	// Former means that it belonged to an earlier life of the head, and the next one does not know it.
	Former bool
}

// Actor is what is known of one actor.
type Actor struct {
	// Label is its name, or its class where it has none; of one that runs a submitted job it is the submission id.
	Label string
	// Job means that it runs a submitted job, and is no actor of the user.
	Job   bool
	State dashboard.ActorState
	// Node is where it is, or was last.
	Node     string
	Restarts int
	// Losses are what it has lost lately, at most one by node.
	Losses []Loss
}

// Loss tells that an actor has lost its place, or its owner, which is the end of it.
type Loss struct {
	// Node is where the actor, or the owner, was.
	Node string
	// At is the first answer that told so.
	At time.Time
	// Owner means that the owner was lost. That this is a loss, and not the owner's own end, is known when the node is dead.
	Owner bool
}

// After returns what is known after one more answer of the given life of the head.
func (l *Ledger) After(answer *dashboard.Census, session string, at time.Time) *Ledger {
	if l == nil {
		l = &Ledger{Since: at, Session: session}
	}
	next := &Ledger{Since: l.Since, At: at, Session: session, More: answer.More, Groups: map[string]Group{}, Actors: make(map[string]Actor, len(answer.Actors)),
		Nodes: make(map[string]Node, len(answer.Nodes))}
	for i := range answer.Nodes {
		node := &answer.Nodes[i]
		known := Node{IP: node.IP, Alive: node.State == nodeAlive, AliveAt: l.Nodes[node.ID].AliveAt}
		if known.Alive {
			known.AliveAt = at
		}
		next.Nodes[node.ID] = known
	}
	for i := range answer.Actors {
		actor := &answer.Actors[i]
		if known, keep := l.follow(actor, at); keep {
			next.Actors[actor.ID] = known
		}
	}
	next.followGroups(answer.Groups, l)
	next.mourn(l)
	return next
}

const nodeAlive = "ALIVE"

// follow returns what is known of an actor that Ray tells of, and whether it is of interest.
func (l *Ledger) follow(told *dashboard.Actor, at time.Time) (Actor, bool) {
	now := Actor{Label: cmp.Or(told.Name, told.Class), State: told.State, Node: told.Node, Restarts: int(told.Restarts)}
	if id, is := told.Job(); is {
		now.Label, now.Job = id, true
	}
	was, known := l.Actors[told.ID]
	if known {
		now.Losses = was.recent(at)
	}
	owner, orphan := told.Orphaned()
	switch {
	case !known:
	case was.State != dashboard.ActorDead && orphan:
		for _, node := range l.NodesAt(owner) {
			now.lose(Loss{Node: node, At: at, Owner: true})
		}
	case was.lostPlace(now) && (now.State != dashboard.ActorDead || told.TakenAway()):
		now.lose(Loss{Node: was.Node, At: at})
	}
	return now, now.State != dashboard.ActorDead || len(now.Losses) > 0
}

// recent returns the losses that are not long ago.
func (a Actor) recent(at time.Time) []Loss { return recent(a.Losses, at) }

func recent(all []Loss, at time.Time) []Loss {
	var losses []Loss
	for _, loss := range all {
		if at.Sub(loss.At) < memory {
			losses = append(losses, loss)
		}
	}
	return losses
}

// lose adds a loss; of each node only the last one counts.
func (a *Actor) lose(loss Loss) { a.Losses = add(a.Losses, loss) }

func add(losses []Loss, loss Loss) []Loss {
	return append(slices.DeleteFunc(losses, func(before Loss) bool { return before.Node == loss.Node }), loss)
}

// lostPlace tells whether an actor is not any more where it lived.
func (a Actor) lostPlace(now Actor) bool {
	if a.State != dashboard.ActorAlive || a.Node == "" {
		return false
	}
	return now.State != dashboard.ActorAlive || now.Node != a.Node || now.Restarts > a.Restarts
}

// mourn adds what Ray does not tell of any more: nodes and actors of an earlier life of the head, and those whose death is not
// long ago.
func (l *Ledger) mourn(before *Ledger) {
	for id, was := range before.Nodes {
		if _, told := l.Nodes[id]; !told && l.At.Sub(was.AliveAt) < memory {
			was.Alive, was.Former = false, was.Former || l.Session != before.Session
			l.Nodes[id] = was
		}
	}
	l.mournGroups(before)
	for id, was := range before.Actors {
		_, told := l.Actors[id]
		was.Losses = was.recent(l.At)
		switch {
		case told:
			continue
		case was.State != dashboard.ActorDead && l.Session != before.Session:
			was.State = dashboard.ActorDead
			was.lose(Loss{Node: was.Node, At: l.At})
		}
		if was.State == dashboard.ActorDead && len(was.Losses) > 0 {
			l.Actors[id] = was
		}
	}
}

// Fate tells what became of those that a loss has hit.
type Fate struct {
	Actors, Groups, Jobs Tally
	// Settled means that Ray has noticed that the nodes are lost.
	Settled bool
}

// Tally counts things of one kind.
type Tally struct {
	// Lost are dead for good, Restarting are on their way, Restored are there anew, and Kept have not lost anything.
	Lost, Restarting, Restored, Kept int
	// Names are the labels of the lost ones, sorted.
	Names []string
}

// Restarting is how many are on their way.
func (f *Fate) Restarting() int { return f.Actors.Restarting + f.Groups.Restarting + f.Jobs.Restarting }

// of is the tally in which an actor counts.
func (f *Fate) of(a Actor) *Tally {
	if a.Job {
		return &f.Jobs
	}
	return &f.Actors
}

func (t *Tally) add(a Actor) {
	switch a.State {
	case dashboard.ActorDead:
		t.Lost++
		t.Names = append(t.Names, a.Label)
	case dashboard.ActorAlive:
		t.Restored++
	default:
		t.Restarting++
	}
}

func (f *Fate) sort() {
	for _, t := range []*Tally{&f.Actors, &f.Groups, &f.Jobs} {
		slices.Sort(t.Names)
	}
}

// Same tells whether Ray says of the actors what it said before.
func (l *Ledger) Same(actors []dashboard.Actor) bool {
	living := 0
	for i := range actors {
		told := &actors[i]
		known, is := l.Actors[told.ID]
		switch {
		case !is && told.State == dashboard.ActorDead:
			continue
		case !is, known.State != told.State, known.Node != told.Node, known.Restarts != int(told.Restarts):
			return false
		case told.State != dashboard.ActorDead:
			living++
		}
	}
	for _, known := range l.Actors {
		if known.State != dashboard.ActorDead {
			living--
		}
	}
	return living == 0
}

// Living is how many actors of users live, how many placement groups have their room, and how many submitted jobs a driver.
func (l *Ledger) Living() (actors, groups, jobs int) {
	for _, actor := range l.Actors {
		switch {
		case actor.State == dashboard.ActorDead:
		case actor.Job:
			jobs++
		default:
			actors++
		}
	}
	for _, group := range l.Groups {
		if group.State == dashboard.GroupCreated {
			groups++
		}
	}
	return actors, groups, jobs
}

// NodesAt returns the nodes that live at an address.
func (l *Ledger) NodesAt(ip string) []string {
	var ids []string
	for id, node := range l.Nodes {
		if node.IP == ip && node.Alive {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// NodesOf returns the nodes at an address that have been alive since a moment: those that are dead by now, or all if none is.
// It is asked when what ran there is lost, which Ray may have noticed before, and something new may run there already.
func (l *Ledger) NodesOf(ip string, since time.Time) []string {
	var alive, dead []string
	for id, node := range l.Nodes {
		switch {
		case node.IP != ip || node.AliveAt.IsZero() || node.AliveAt.Before(since):
		case node.Alive:
			alive = append(alive, id)
		default:
			dead = append(dead, id)
		}
	}
	if len(dead) > 0 {
		alive = dead
	}
	slices.Sort(alive)
	return alive
}

// Outlived tells whether all of the nodes went with an earlier life of the head; it is false of none.
func (l *Ledger) Outlived(ids []string) bool {
	return len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return !l.Nodes[id].Former })
}

// withNode tells whether a loss came with the end of its node. What an actor has lost while the node lived on, it has lost by
// itself. Nodes are asked for before actors, so the actors of one answer may know more than its nodes do.
func (l *Ledger) withNode(loss Loss) bool {
	node := l.Nodes[loss.Node]
	return !node.Alive && !loss.At.Before(node.AliveAt)
}

// OfNodes tells what became of the actors on nodes that were lost.
func (l *Ledger) OfNodes(ids []string) Fate {
	f := Fate{Settled: !slices.ContainsFunc(ids, func(id string) bool { return l.Nodes[id].Alive })}
	for _, actor := range l.Actors {
		if slices.ContainsFunc(actor.Losses, func(loss Loss) bool { return slices.Contains(ids, loss.Node) && l.withNode(loss) }) {
			f.of(actor).add(actor)
		}
	}
	for _, group := range l.Groups {
		if slices.ContainsFunc(group.Losses, func(loss Loss) bool { return slices.Contains(ids, loss.Node) && l.withNode(loss) }) {
			f.Groups.addGroup(group)
		}
	}
	f.sort()
	return f
}

// OfAll tells what became of all actors since the head was lost. Whoever asks must know that a head that came later has answered.
func (l *Ledger) OfAll(since time.Time) Fate {
	f := Fate{Settled: true}
	for _, actor := range l.Actors {
		hit := func(loss Loss) bool { return !loss.At.Before(since) && (!loss.Owner || l.withNode(loss)) }
		switch {
		case slices.ContainsFunc(actor.Losses, hit):
			f.of(actor).add(actor)
		case actor.State == dashboard.ActorAlive:
			f.of(actor).Kept++
		}
	}
	for _, group := range l.Groups {
		switch {
		case slices.ContainsFunc(group.Losses, func(loss Loss) bool { return !loss.At.Before(since) }):
			f.Groups.addGroup(group)
		case group.State == dashboard.GroupCreated:
			f.Groups.Kept++
		}
	}
	f.sort()
	return f
}
