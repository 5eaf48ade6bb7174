package fakedashboard

import (
	"net/http"
	"slices"
)

// Node is a node as Ray's State API tells of it.
type Node struct {
	ID string `json:"node_id"`
	IP string `json:"node_ip"`
	// State is ALIVE or DEAD.
	State string `json:"state"`
}

// Actor is an actor as Ray's State API tells of it.
type Actor struct {
	ID    string `json:"actor_id"`
	Class string `json:"class_name"`
	Name  string `json:"name"`
	// State is ALIVE, DEAD, or one of those between.
	State string `json:"state"`
	Node  string `json:"node_id"`
	// Restarts is a number in text, as Ray writes it.
	Restarts string `json:"num_restarts"`
}

// SetNodes sets which nodes the State API tells of; none by default.
func (d *Dashboard) SetNodes(nodes ...Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nodes = slices.Clone(nodes)
}

// SetActors sets which actors the State API tells of; none by default, and after Restart.
func (d *Dashboard) SetActors(actors ...Actor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.actors = slices.Clone(actors)
}

// listState answers a list of the State API. There are no placement groups.
func (d *Dashboard) listState(w http.ResponseWriter, endpoint Endpoint) {
	result := []any{}
	switch endpoint {
	case EndpointNodes:
		for _, node := range d.nodes {
			result = append(result, node)
		}
	case EndpointActors:
		for _, actor := range d.actors {
			result = append(result, actor)
		}
	}
	list := map[string]any{"total": len(result), "num_after_truncation": len(result), "num_filtered": len(result), "result": result}
	sendJSON(w, map[string]any{"result": true, "msg": "", "data": map[string]any{"result": list, "partial_failure_warning": nil}})
}
