package leadership

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store answers lists of Pods: each text is namespace/uid@version, and the version of the list comes first.
type store struct {
	client.Reader
	version string
	pods    []string
}

func (s store) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	list.SetResourceVersion(s.version)
	for _, text := range s.pods {
		namespace, rest, _ := strings.Cut(text, "/")
		uid, version, _ := strings.Cut(rest, "@")
		if wanted.Namespace != "" && wanted.Namespace != namespace {
			continue
		}
		object := metav1.ObjectMeta{Namespace: namespace, UID: types.UID(uid), ResourceVersion: version}
		switch list := list.(type) {
		case *metav1.PartialObjectMetadataList:
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: object})
		case *corev1.PodList:
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: object})
		default:
			return errors.New("a list of something else")
		}
	}
	return nil
}

// growing shows one more of its states at each look.
type growing struct {
	client.Reader
	states []store
	looks  *atomic.Int64
}

func (g growing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return g.states[min(int(g.looks.Add(1))-1, len(g.states)-1)].List(ctx, list, options...)
}

func caches(live client.Reader, cached client.Reader, namespaces ...string) Caches {
	return Caches{Cache: cached, Live: live, Namespaces: namespaces,
		Kinds: []CachedKind{{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), List: &corev1.PodList{}}}}
}

func TestCachesCatchUp(t *testing.T) {
	stored := store{version: "100", pods: []string{"n/a@90", "n/b@9"}}
	cases := map[string]struct {
		behind     store
		namespaces []string
	}{
		"given an object that is not shown yet":     {behind: store{pods: []string{"n/a@90"}}},
		"given a change that is not shown yet":      {behind: store{pods: []string{"n/a@89", "n/b@9"}}},
		"given an older version with more digits":   {behind: store{pods: []string{"n/a@90", "n/b@8"}}},
		"given an object that is gone, but shown":   {behind: store{pods: []string{"n/a@90", "n/b@9", "n/c@99"}}},
		"given another object of the same place":    {behind: store{pods: []string{"n/a2@80", "n/b@9"}}},
		"given single namespaces":                   {behind: store{pods: []string{"n/a@90"}}, namespaces: []string{"m", "n"}},
		"given an empty cache that was just opened": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			looks := &atomic.Int64{}
			// What is newer than the list does not matter.
			now := store{pods: []string{"n/a@120", "n/b@9", "n/d@110"}}
			cached := growing{states: []store{tc.behind, tc.behind, tc.behind, tc.behind, now}, looks: looks}
			if err := caches(stored, cached, tc.namespaces...).CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			if looks.Load() < 5 {
				t.Errorf("it was content after %d looks, while the cache was behind", looks.Load())
			}
		})
	}
}

func TestCachesListAgainWhenWhatWasListedIsGone(t *testing.T) {
	looks := &atomic.Int64{}
	live := growing{states: []store{{version: "100", pods: []string{"n/a@90"}}, {version: "130"}}, looks: looks}
	if err := caches(live, store{}).CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if looks.Load() != 2 {
		t.Errorf("listed %d times", looks.Load())
	}
}

func TestCachesGiveUpWithTheTerm(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := caches(store{version: "100", pods: []string{"n/a@90"}}, store{}).CatchUp(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "Pod") {
		t.Errorf("got %v", err)
	}
}

func TestCachesNeedVersionsThatCanBeCompared(t *testing.T) {
	for _, version := range []string{"", "x"} {
		err := caches(store{version: "100", pods: []string{"n/a@" + version}}, store{pods: []string{"n/a@5"}}).CatchUp(t.Context())
		if err == nil || !strings.Contains(err.Error(), strconv.Quote(version)) {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
