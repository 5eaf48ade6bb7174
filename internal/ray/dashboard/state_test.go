package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// stateAPI answers with these nodes and actors, and with what more has for other paths.
func stateAPI(t *testing.T, nodes, actors string, more map[string]string) *dashboard.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := more[r.URL.Path]
		switch {
		case r.URL.Path == "/api/v0/nodes":
			body = nodes
		case r.URL.Path == "/api/v0/actors":
			body = actors
		case body == "" && r.URL.Path == "/api/v0/placement_groups":
			body = list("0", "[]")
		case body == "":
			body = "[]"
		}
		if _, err := w.Write([]byte(body)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return dashboard.New(server.URL)
}

func list(total, result string) string {
	return `{"result": true, "msg": "", "data": {"result": {"total": ` + total + `, "num_after_truncation": 1, "result": ` + result + `}}}`
}

const oneNode = `[{"node_id": "n1", "node_ip": "10.0.0.1", "state": "ALIVE", "is_head_node": true, "resources_total": {}}]`

func TestCensus(t *testing.T) {
	// As Ray 2.60 writes it: protocol buffers as JSON, with int64 as text, IDs in hex, and null for what is not there.
	actors := `[{"actor_id": "a1", "class_name": "C", "name": "c", "state": "ALIVE", "node_id": "n1", "num_restarts": "2", "death_cause": null},
		{"actor_id": "a2", "class_name": "C", "name": "", "state": "DEAD", "node_id": "n1", "num_restarts": 1,
		 "death_cause": {"actor_died_error_context": {"reason": "NODE_DIED", "error_message": "the node died", "owner_ip_address": "10.0.0.1", "pid": 7,
		 "never_started": false, "node_death_info": {"reason": "UNEXPECTED_TERMINATION", "reason_message": "health check failed"}}}},
		{"actor_id": "a3", "class_name": "C", "state": "DEAD", "node_id": null, "num_restarts": null, "death_cause": {"actor_died_error_context": {"reason": "RAY_KILL"}}},
		{"actor_id": "a4", "class_name": "C", "state": "DEAD", "death_cause": {"creation_task_failure_context": {}}},
		{"actor_id": "a5", "class_name": "C", "state": "DEAD", "death_cause": {"actor_died_error_context": {"reason": "OWNER_DIED", "owner_ip_address": "10.0.0.2"}}}]`
	got, err := stateAPI(t, list("1", oneNode), list("10", actors), nil).Census(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &dashboard.Census{Nodes: []dashboard.Node{{ID: "n1", IP: "10.0.0.1", State: "ALIVE", Head: true}}, More: 5, Actors: []dashboard.Actor{
		{ID: "a1", Class: "C", Name: "c", State: "ALIVE", Node: "n1", Restarts: 2}, {ID: "a2", Class: "C", State: "DEAD", Node: "n1", Restarts: 1},
		{ID: "a3", Class: "C", State: "DEAD"}, {ID: "a4", Class: "C", State: "DEAD"}, {ID: "a5", Class: "C", State: "DEAD"}}}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(dashboard.Actor{}, "DeathCause")); d != "" {
		t.Errorf("census (-want +got):\n%s", d)
	}
	for i, want := range []string{"", "", "", "", "10.0.0.2"} {
		if owner, orphan := got.Actors[i].Orphaned(); owner != want || orphan != (want != "") {
			t.Errorf("actor %s is orphaned: %t, by the loss of %q", got.Actors[i].ID, orphan, owner)
		}
	}
	for i, want := range []bool{false, true, false, false, false} {
		if got.Actors[i].TakenAway() != want {
			t.Errorf("actor %s is taken away: %t", got.Actors[i].ID, !want)
		}
	}
}

func TestCensusOfPlacementGroups(t *testing.T) {
	// As Ray 2.60 writes it.
	groups := `[{"placement_group_id": "g1", "name": "g", "state": "CREATED", "creator_job_id": "01000000", "is_detached": false,
		"bundles": [{"bundle_id": {"placement_group_id": "g1", "bundle_index": 0}, "unit_resources": {"CPU": 1.0}, "node_id": "n1"},
		{"bundle_id": {"placement_group_id": "g1", "bundle_index": 1}, "unit_resources": {"CPU": 1.0}, "node_id": null}]}]`
	got, err := stateAPI(t, list("1", oneNode), list("0", "[]"), map[string]string{"/api/v0/placement_groups": list("3", groups)}).Census(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Groups) != 1 || got.More != 2 {
		t.Fatalf("Ray tells of one placement group and knows two more, and the census is %+v", got)
	}
	g := got.Groups[0]
	if g.ID != "g1" || g.Name != "g" || g.State != dashboard.GroupCreated || len(g.Bundles) != 2 || g.Bundles[0].Node != "n1" || g.Bundles[1].Node != "" {
		t.Errorf("the placement group is %+v", g)
	}
}

func TestCensusOfJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs string
		idle bool
	}{
		"none":                                 {`[]`, true},
		"all have ended":                       {`[{"status": "SUCCEEDED"}, {"status": "FAILED"}, {"status": "STOPPED"}]`, true},
		"one waits":                            {`[{"status": "SUCCEEDED"}, {"type": "SUBMISSION", "submission_id": "x", "status": "PENDING"}]`, false},
		"a program has connected by itself":    {`[{"type": "DRIVER", "job_id": "02000000", "submission_id": null, "status": "RUNNING"}]`, false},
		"one has a status that we do not know": {`[{"status": "PONDERING"}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stateAPI(t, list("1", oneNode), list("0", "[]"), map[string]string{"/api/jobs/": tc.jobs}).Idle(t.Context())
			if err != nil || got != tc.idle {
				t.Errorf("idle is %t (%v), want %t", got, err, tc.idle)
			}
		})
	}
	job := dashboard.Actor{Name: "_ray_internal_job_actor_train-x7k2m"}
	if id, is := job.Job(); !is || id != "train-x7k2m" {
		t.Errorf("%s runs job %q: %t", job.Name, id, is)
	}
	if _, is := (dashboard.Actor{Name: "counter"}).Job(); is {
		t.Error("an actor of the user is taken for one that runs a job")
	}
}

func TestACensusThatMakesNoSenseIsAnError(t *testing.T) {
	for name, answers := range map[string][2]string{
		"Ray says no":                 {`{"result": false, "msg": "too many requests"}`, list("0", "[]")},
		"the list is none":            {list("1", oneNode), list("1", `{}`)},
		"a number is none":            {list("1", oneNode), list("1", `[{"num_restarts": "x"}]`)},
		"it is no JSON":               {"<html>", list("0", "[]")},
		"not all nodes are among it":  {list("2", oneNode), list("0", "[]")},
		"there is nothing in it":      {`{}`, `{}`},
		"the actors cannot be had":    {list("1", oneNode), `{"result": false}`},
		"the answer is of other kind": {`[]`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			if census, err := stateAPI(t, answers[0], answers[1], nil).Census(t.Context()); err == nil {
				t.Errorf("it was taken for %+v", census)
			}
		})
	}
}
