package operator

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/operator/settings"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// labelled is a cache that has objects of these names with these labels.
type labelled struct {
	client.Reader
	clusters, pods map[string]map[string]string
}

func (l labelled) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	known := l.pods
	if _, isCluster := object.(*rayv1.RayCluster); isCluster {
		known = l.clusters
	}
	found, ok := known[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	object.SetNamespace(key.Namespace)
	object.SetLabels(found)
	return nil
}

// bell returns one with the queue that it fills.
func bell(t *testing.T) (*wake.Bell, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	b := wake.New()
	if err := b.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return b, queue
}

// names empties a queue.
func names(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) []string {
	var all []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		all = append(all, request.String())
		queue.Done(request)
	}
	return all
}

// Given an answer of Ray, the RayJob or RayService is planned for which it was asked, and nothing else.
func TestAnswersWakeTheirOwners(t *testing.T) {
	origin := func(kind string) map[string]string {
		return map[string]string{rayv1.LabelOriginatedFromName: "chat", rayv1.LabelOriginatedFromKind: kind}
	}
	pod := func(cluster string) map[string]string { return map[string]string{rayv1.LabelCluster: cluster} }
	reader := labelled{
		clusters: map[string]map[string]string{"chat-a": origin(rayv1.KindRayService), "train-b": origin(rayv1.KindRayJob), "plain": nil},
		pods:     map[string]map[string]string{"chat-a-head": pod("chat-a"), "plain-head": pod("plain"), "lost": pod("gone")},
	}
	tests := map[string]struct {
		kind, name     string
		jobs, services []string
	}{
		"a job":                              {kind: rayv1.KindRayJob, name: "train", jobs: []string{"ml/train"}},
		"the report of Serve":                {kind: rayv1.KindRayCluster, name: "chat-a", services: []string{"ml/chat"}},
		"the health of a proxy":              {kind: "Pod", name: "chat-a-head", services: []string{"ml/chat"}},
		"the traffic of a Pod":               {kind: "PodTraffic", name: "chat-a-head", services: []string{"ml/chat"}},
		"a cluster of a RayJob":              {kind: rayv1.KindRayCluster, name: "train-b"},
		"a cluster of nobody":                {kind: rayv1.KindRayCluster, name: "plain"},
		"a cluster that is gone":             {kind: rayv1.KindRayCluster, name: "gone"},
		"a Pod of a cluster of nobody":       {kind: "Pod", name: "plain-head"},
		"a Pod of a cluster that is gone":    {kind: "Pod", name: "lost"},
		"a Pod that is gone from the caches": {kind: "Pod", name: "gone"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			jobs, ofJobs := bell(t)
			services, ofServices := bell(t)
			owners{reader: reader, jobs: jobs, services: services}.wake(t.Context(),
				poll.Key{Kind: test.kind, NamespacedName: types.NamespacedName{Namespace: "ml", Name: test.name}})
			if diff := cmp.Diff(test.jobs, names(ofJobs)); diff != "" {
				t.Errorf("RayJobs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.services, names(ofServices)); diff != "" {
				t.Errorf("RayServices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGatewaysAreUsedOnlyWhereTheyAreServed(t *testing.T) {
	tests := map[string]struct {
		kinds map[string]string
		gate  bool
		want  bool
	}{
		"given the Gateway API, they are":             {kinds: map[string]string{"Gateway": "v1", "HTTPRoute": "v1"}, gate: true, want: true},
		"given no such API, they are not":             {gate: true},
		"given one of the kinds only, they are not":   {kinds: map[string]string{"Gateway": "v1"}, gate: true},
		"given an old version of it, they are not":    {kinds: map[string]string{"Gateway": "v1", "HTTPRoute": "v1beta1"}, gate: true},
		"given the feature gate is off, they are not": {kinds: map[string]string{"Gateway": "v1", "HTTPRoute": "v1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mapper := meta.NewDefaultRESTMapper(nil)
			for kind, version := range test.kinds {
				mapper.Add(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: version, Kind: kind}, meta.RESTScopeNamespace)
			}
			cfg := config.Config{}
			cfg.FeatureGates = config.MakeFeatureGates(map[config.Gate]bool{config.RayServiceIncrementalUpgrade: test.gate})
			if got, err := settings.GatewayAPI(cfg, mapper); err != nil || got != test.want {
				t.Errorf("they are used: %v (%v), want %v", got, err, test.want)
			}
		})
	}
}
