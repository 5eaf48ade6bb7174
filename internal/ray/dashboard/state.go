package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// ActorState is a state of an actor in Ray's own words.
type ActorState string

// The states that matter here (Ray's documentation, "State API"). In any other one an actor is on its way to ALIVE.
const (
	ActorAlive ActorState = "ALIVE"
	// ActorDead means that the actor will not come back.
	ActorDead ActorState = "DEAD"
)

// Actor is what Ray says about one actor.
type Actor struct {
	ID    string     `json:"actor_id"`
	Class string     `json:"class_name"`
	Name  string     `json:"name"`
	State ActorState `json:"state"`
	// Node is the ID of the node that it is on, or was on last; empty before it was placed.
	Node string `json:"node_id"`
	// Restarts counts how often it was started anew.
	Restarts Number `json:"num_restarts"`
	// DeathCause says why it is dead.
	DeathCause *DeathCause `json:"death_cause"`
}

// Number is a whole number that Ray writes as a number or, as JSON of protocol buffers has it, as text.
type Number int

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Number) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if text == "null" || text == "" {
		*n = 0
		return nil
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("a whole number: %w", err)
	}
	*n = Number(value)
	return nil
}

// DeathCause says why an actor is dead.
type DeathCause struct {
	Died *DeathReason `json:"actor_died_error_context"`
}

// DeathReason is Ray's own word for it, such as NODE_DIED.
type DeathReason struct {
	Reason string `json:"reason"`
	// OwnerIP is where the owner was, if it died because that did.
	OwnerIP string `json:"owner_ip_address"`
}

// Died returns the cause with that reason.
func Died(reason string) *DeathCause { return &DeathCause{Died: &DeathReason{Reason: reason}} }

// TakenAway tells whether a dead actor died because its node or its process did, and not by its own end or somebody's wish.
func (a Actor) TakenAway() bool {
	return a.DeathCause != nil && a.DeathCause.Died != nil &&
		(a.DeathCause.Died.Reason == "NODE_DIED" || a.DeathCause.Died.Reason == "WORKER_DIED")
}

// Orphaned tells whether an actor is dead because its owner is, and where that was. An owner may have come to its end as it should.
func (a Actor) Orphaned() (ownerIP string, orphaned bool) {
	if a.DeathCause == nil || a.DeathCause.Died == nil || a.DeathCause.Died.Reason != "OWNER_DIED" {
		return "", false
	}
	return a.DeathCause.Died.OwnerIP, true
}

// Node is what Ray says about one node.
type Node struct {
	ID    string `json:"node_id"`
	IP    string `json:"node_ip"`
	State string `json:"state"`
	Head  bool   `json:"is_head_node"`
}

// GroupState is a state of a placement group in Ray's own words.
type GroupState string

// The states that matter here. In any other one a placement group waits for room.
const (
	GroupCreated GroupState = "CREATED"
	// GroupRemoved means that somebody has ended it, or the program that made it has ended.
	GroupRemoved GroupState = "REMOVED"
)

// PlacementGroup is what Ray says about one placement group.
type PlacementGroup struct {
	ID      string     `json:"placement_group_id"`
	Name    string     `json:"name"`
	State   GroupState `json:"state"`
	Bundles []struct {
		// Node is the ID of the node on which room is reserved, empty while there is none.
		Node string `json:"node_id"`
	} `json:"bundles"`
}

// Census is who lives in a Ray cluster.
type Census struct {
	Actors []Actor
	Groups []PlacementGroup
	Nodes  []Node
	// More is how many actors and placement groups Ray knows beside these.
	More int
}

// jobActor is the beginning of the name of the actor that runs a submitted job, which its submission id follows (Ray's dashboard,
// JOB_ACTOR_NAME_TEMPLATE).
const jobActor = "_ray_internal_job_actor_"

// Job returns the submission id of the job that an actor runs, and false if it is an actor of the user.
func (a Actor) Job() (submissionID string, is bool) { return strings.CutPrefix(a.Name, jobActor) }

const (
	// maxActors is how many actors are asked for.
	maxActors = 5000
	// maxCensus is how much of an answer is read, in bytes.
	maxCensus = 32 << 20
)

// Census asks for all nodes, actors and placement groups, dead ones included as long as Ray remembers them.
func (c *Client) Census(ctx context.Context) (*Census, error) {
	census := &Census{}
	nodes, err := c.list(ctx, "nodes", &census.Nodes)
	if err != nil {
		return nil, err
	}
	if nodes > len(census.Nodes) {
		return nil, fmt.Errorf("%w: of %d nodes it names %d", ErrUnexpectedAnswer, nodes, len(census.Nodes))
	}
	actors, err := c.list(ctx, "actors", &census.Actors)
	if err != nil {
		return nil, err
	}
	groups, err := c.list(ctx, "placement_groups", &census.Groups)
	if err != nil {
		return nil, err
	}
	census.More = max(0, actors-len(census.Actors)) + max(0, groups-len(census.Groups))
	return census, nil
}

// Actors asks for all actors, as Census does.
func (c *Client) Actors(ctx context.Context) ([]Actor, error) {
	var actors []Actor
	_, err := c.list(ctx, "actors", &actors)
	return actors, err
}

// Idle tells whether all jobs have ended: those that were submitted, and the programs that have connected by themselves.
func (c *Client) Idle(ctx context.Context) (bool, error) {
	ask := call{method: http.MethodGet, path: jobsPath, timeout: c.readTimeout, limit: maxCensus}
	body, err := c.do(ctx, ask)
	if err != nil {
		return false, err
	}
	var jobs []struct {
		Status JobStatus `json:"status"`
	}
	if err := decode(ask, body, &jobs); err != nil {
		return false, err
	}
	for _, job := range jobs {
		if !job.Status.Terminal() {
			return false, nil
		}
	}
	return true, nil
}

// list asks the State API for all objects of a kind, and returns how many there are.
func (c *Client) list(ctx context.Context, kind string, into any) (int, error) {
	ask := call{method: http.MethodGet, path: fmt.Sprintf("/api/v0/%s?detail=true&limit=%d", kind, maxActors), timeout: c.readTimeout, limit: maxCensus}
	body, err := c.do(ctx, ask)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Result bool   `json:"result"`
		Msg    string `json:"msg"`
		Data   struct {
			Result struct {
				Total  int             `json:"total"`
				Result json.RawMessage `json:"result"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := decode(ask, body, &answer); err != nil {
		return 0, err
	}
	if !answer.Result {
		return 0, fmt.Errorf("%s: %w: %s", ask, ErrUnexpectedAnswer, shorten(answer.Msg))
	}
	if err := decode(ask, answer.Data.Result.Result, into); err != nil {
		return 0, err
	}
	return answer.Data.Result.Total, nil
}
