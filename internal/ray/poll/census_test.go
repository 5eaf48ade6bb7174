package poll_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// withActors adds Ray's State API to what answers on the network: one node, and the actors by name and state.
type withActors struct {
	next   http.RoundTripper
	actors func() map[string]string
}

func (s withActors) RoundTrip(r *http.Request) (*http.Response, error) {
	var list []string
	switch r.URL.Path {
	case "/api/v0/nodes":
		list = append(list, `{"node_id": "n1", "node_ip": "10.0.0.1", "state": "ALIVE"}`)
	case "/api/v0/actors":
		for name, state := range s.actors() {
			list = append(list, fmt.Sprintf(`{"actor_id": %q, "name": %q, "state": %q, "node_id": "n1", "num_restarts": "0"}`, name, name, state))
		}
	case "/api/v0/placement_groups":
	default:
		return s.next.RoundTrip(r)
	}
	body := fmt.Sprintf(`{"result": true, "msg": "", "data": {"result": {"total": %d, "result": [%s]}}}`, len(list), strings.Join(list, ","))
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// TestActorsAreFollowedAndNobodyIsWoken: answers are compared with those before, also with those of an earlier head, and since
// nothing is to be done about them, nobody is told of their changes.
func TestActorsAreFollowedAndNobodyIsWoken(t *testing.T) {
	inWorld(t, poll.Options{Interval: 10 * time.Second}, func(t *testing.T, w *world) {
		d := w.dashboard("c")
		actors := map[string]string{"a": "ALIVE", "b": "ALIVE"}
		w.traffic.next = withActors{w.traffic.next, func() map[string]string { return actors }}
		began := time.Now()
		w.Track(poll.Target{Owner: cluster("c"), BaseURL: dashboard.URL("c", 8265), Ask: poll.AskCensus})
		pass(time.Second)
		first := w.see(t, cluster("c")).Ledger
		if first == nil || len(first.Actors) != 2 || !first.Since.Equal(began) || first.Session != d.Session() || !first.Nodes["n1"].Alive {
			t.Fatalf("after the first answer %+v is known", first)
		}
		w.notified()
		actors = map[string]string{"a": "ALIVE", "b": "RESTARTING"}
		pass(10 * time.Second)
		second := w.see(t, cluster("c")).Ledger
		if len(second.Actors["b"].Losses) != 1 || !second.Since.Equal(began) || !second.At.Equal(began.Add(10*time.Second)) || len(first.Actors["b"].Losses) != 0 {
			t.Errorf("after the second one %+v", second)
		}
		if got := w.notified(); got != 0 {
			t.Errorf("told %d times of an actor", got)
		}
		actors = nil
		d.Restart()
		pass(10 * time.Second)
		if third := w.see(t, cluster("c")).Ledger; third.Session != d.Session() || len(third.Actors) != 2 || third.Actors["a"].State != dashboard.ActorDead {
			t.Errorf("after the head was replaced %+v", third)
		}
		d.Down()
		pass(time.Minute)
		if seen := w.see(t, cluster("c")); seen.Err == nil || seen.Ledger == nil || !seen.Ledger.At.Equal(began.Add(20*time.Second)) {
			t.Errorf("without an answer %+v", seen)
		}
	})
}
