package rayservice

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

var shop = types.NamespacedName{Namespace: "ml", Name: "shop"}

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
	noMore := memory.ask(shop, nil)
	if len(noMore) != 2 || len(memory.asked) != 0 {
		t.Errorf("%v is to be forgotten in the end, want b and c; %d services are remembered", noMore, len(memory.asked))
	}
}
