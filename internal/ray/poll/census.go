package poll

import (
	"context"
	"fmt"

	"github.com/heliostat-io/heliostat/internal/ray/census"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// maxBrief is how many questions in a row may be for actors alone. So nodes and placement groups that change while no actor does
// are heard of with the third question.
const maxBrief = 2

// Want is what a target with AskCensus asks for besides actors.
type Want struct {
	// Jobs are asked for with every question.
	Jobs bool
	// All asks the next question for everything. It is forgotten with the answer.
	All bool
}

// Want says what to ask for on behalf of the owner besides actors. It does not hasten the next question. Of an unknown owner it
// does nothing.
func (p *Poller) Want(owner Key, want Want) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.targets[owner]; ok {
		t.want = Want{Jobs: want.Jobs, All: want.All || t.want.All}
	}
}

// comparable is what an answer about actors is compared with, or nil when everything is to be asked for.
func (t *target) comparable() *census.Ledger {
	all := t.want.All
	t.want.All = false
	if all || t.moving || t.brief >= maxBrief || t.seen.Err != nil {
		return nil
	}
	return t.seen.Ledger
}

// counted takes in what an answer was.
func (t *target) counted(before *census.Ledger, a answer) {
	switch {
	case t.Ask != AskCensus:
	case a.err != nil:
		t.want.All = true
	case a.census == nil:
		t.brief++
	default:
		t.brief, t.moving = 0, before == nil || !before.Same(a.census.Actors)
	}
}

// askCensus asks for all actors, and unless Ray says of them what it said before, for everything. Actors that one life of the head
// does not name are lost for the next one.
func askCensus(ctx context.Context, client *dashboard.Client, q question) reply {
	r, calm := askActors(ctx, client, q)
	if r.err == nil && !calm {
		r = inOneSession(ctx, client, q, func(r *reply) error {
			told, err := client.Census(ctx)
			if err != nil {
				return fmt.Errorf("asking for nodes and actors: %w", err)
			}
			r.census = told
			return nil
		})
	}
	if r.err == nil && q.jobs {
		if r.idle, r.err = client.Idle(ctx); r.err != nil {
			r.err = fmt.Errorf("asking for jobs: %w", r.err)
		}
	}
	return r
}

// askActors tells whether Ray says of the actors what it said before.
func askActors(ctx context.Context, client *dashboard.Client, q question) (r reply, calm bool) {
	r = reply{answer: answer{asked: q.asked}}
	if q.before == nil {
		return r, false
	}
	actors, err := client.Actors(ctx)
	if err != nil {
		r.err = fmt.Errorf("asking for actors: %w", err)
		return r, false
	}
	return r, q.before.Same(actors)
}
