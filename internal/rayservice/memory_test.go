package rayservice

import (
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

var shop = types.NamespacedName{Namespace: "ml", Name: "shop"}

// A Pod is quiet since the first of an unbroken row of answers that tell of no request.
func TestAPodIsQuietSinceItsLastRequest(t *testing.T) {
	at := func(second int) time.Time { return now.Add(time.Duration(second) * time.Second) }
	heard := func(second int, ongoing, requests float64) *poll.Observation {
		return &poll.Observation{Answered: at(second), Traffic: &dashboard.ServeTraffic{Ongoing: ongoing, Requests: requests, Reported: true}}
	}
	failed := &poll.Observation{Answered: at(0), Err: errors.New("refused"), Traffic: &dashboard.ServeTraffic{Reported: true}}
	for name, c := range map[string]struct {
		answers []*poll.Observation
		want    time.Time
	}{
		"it was never asked":                {[]*poll.Observation{nil}, time.Time{}},
		"it answers requests":               {[]*poll.Observation{heard(1, 2, 5)}, time.Time{}},
		"it answers none":                   {[]*poll.Observation{heard(1, 0, 5), heard(2, 0, 5), heard(3, 0, 5)}, at(1)},
		"it answered one between two looks": {[]*poll.Observation{heard(1, 0, 5), heard(2, 0, 6), heard(3, 0, 6)}, at(2)},
		"it began with one in between":      {[]*poll.Observation{heard(1, 0, 5), heard(2, 1, 5), heard(3, 0, 5)}, at(3)},
		"it does not tell":                  {[]*poll.Observation{heard(1, 0, 5), failed}, time.Time{}},
		"its counter began anew":            {[]*poll.Observation{heard(1, 0, 5), heard(2, 0, 0)}, at(2)},
	} {
		t.Run(name, func(t *testing.T) {
			memory, s := NewMemory(), serving()
			for _, answer := range c.answers {
				s.Clusters[0].Pods[0].Traffic, s.Clusters[0].Pods[0].QuietSince = answer, time.Time{}
				memory.note(shop, &s)
			}
			if got := s.Clusters[0].Pods[0].QuietSince; !got.Equal(c.want) {
				t.Errorf("quiet since %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatIsAskedNoMoreIsForgotten(t *testing.T) {
	key := func(name string) poll.Key {
		return poll.Key{Kind: healthKind, NamespacedName: types.NamespacedName{Namespace: "ml", Name: name}}
	}
	memory := NewMemory()
	if noMore := memory.ask(shop, map[poll.Key]bool{key("a"): true, key("b"): true}); len(noMore) > 0 {
		t.Errorf("at first nothing is to be forgotten, but %v", noMore)
	}
	if noMore := memory.ask(shop, map[poll.Key]bool{key("b"): true, key("c"): true}); !slices.Equal(noMore, []poll.Key{key("a")}) {
		t.Errorf("%v is to be forgotten, want a", noMore)
	}
	noMore := memory.forget(shop)
	if len(noMore) != 2 || len(memory.byName) != 0 {
		t.Errorf("%v is to be forgotten in the end, want b and c; %d services are remembered", noMore, len(memory.byName))
	}
}
