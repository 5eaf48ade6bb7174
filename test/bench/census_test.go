package bench

import (
	"context"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// censusEndpoints are those that the operator asks about what lives in a RayCluster.
func censusEndpoints() []fakedashboard.Endpoint {
	return []fakedashboard.Endpoint{fakedashboard.EndpointVersion, fakedashboard.EndpointNodes, fakedashboard.EndpointActors,
		fakedashboard.EndpointGroups, fakedashboard.EndpointList}
}

// TestBudgetOfACensus given a ready RayCluster, when five minutes pass, then exactly the listed requests are sent to its dashboard.
func TestBudgetOfACensus(t *testing.T) {
	type asked = map[fakedashboard.Endpoint]int
	for name, tc := range map[string]struct {
		want poll.Want
		// again says that everything is wanted with each question, as while a loss is open.
		again bool
		// news lets an actor be started anew every ten seconds.
		news  bool
		costs asked
	}{
		"in which nothing happens":             {costs: asked{"version": 10, "nodes": 10, "actors": 30, "placement_groups": 10}},
		"whose head is protected by its jobs":  {want: poll.Want{Jobs: true}, costs: asked{"version": 10, "nodes": 10, "actors": 30, "placement_groups": 10, "list": 30}},
		"that has lost something":              {want: poll.Want{All: true}, again: true, costs: asked{"version": 30, "nodes": 30, "actors": 30, "placement_groups": 30}},
		"in which something happens all along": {news: true, costs: asked{"version": 30, "nodes": 30, "actors": 30, "placement_groups": 30}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, ray := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
				network.Add("c:8265", ray)
				actor := fakedashboard.Actor{ID: "a", State: "ALIVE", Node: "n", Restarts: "0"}
				ray.SetNodes(fakedashboard.Node{ID: "n", IP: "10.0.0.1", State: "ALIVE"})
				ray.SetActors(actor)
				poller := poll.New(poll.Options{Interval: 10 * time.Second, HTTPClient: &http.Client{Transport: network}})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- poller.Start(ctx) }()
				owner := poll.Key{Kind: "RayCluster", NamespacedName: types.NamespacedName{Name: "c"}}
				poller.Track(poll.Target{Owner: owner, BaseURL: "http://c:8265", Ask: poll.AskCensus})
				until := func(d time.Duration) {
					<-time.After(d)
					synctest.Wait()
				}
				until(35 * time.Second) // the first questions are for everything
				poller.Want(owner, tc.want)
				before := asked{}
				for _, endpoint := range censusEndpoints() {
					before[endpoint] = ray.Requests(endpoint)
				}
				for i := range 30 {
					if tc.news {
						actor.State = []string{"RESTARTING", "ALIVE"}[i%2]
						ray.SetActors(actor)
					}
					if tc.again {
						poller.Want(owner, tc.want)
					}
					until(10 * time.Second)
				}
				sent := asked{}
				for _, endpoint := range censusEndpoints() {
					sent[endpoint] = ray.Requests(endpoint) - before[endpoint]
				}
				maps.DeleteFunc(sent, func(_ fakedashboard.Endpoint, times int) bool { return times == 0 })
				if d := cmp.Diff(tc.costs, sent); d != "" {
					t.Errorf("requests in 30 polls (-want +got):\n%s", d)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
