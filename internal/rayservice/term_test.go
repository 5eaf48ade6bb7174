package rayservice

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// heard is an Asker that was last asked at one moment, on behalf of one life of each owner.
type heard struct {
	at  time.Time
	uid types.UID
}

func (heard) Track(poll.Target) {}
func (heard) Forget(poll.Key)   {}

func (h heard) Observation(poll.Key) (poll.Observation, bool) {
	return poll.Observation{Target: poll.Target{OwnerUID: h.uid}, Asked: h.at, Answered: h.at, Serve: &dashboard.ServeDetails{}}, true
}

// reader holds objects and gives them out again.
func reader(t *testing.T, objects ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rayv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &Reconciler{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), Holds: action.NewHolds(), Memory: NewMemory(),
		Dashboards: heard{at: now}, Proxies: heard{at: now},
		Executor: &action.Executor{Ray: action.NewRay(action.RayOptions{Gate: leadership.Alone{}, Clock: clocktesting.NewFakePassiveClock(now)})}}
}

func observed(t *testing.T, r *Reconciler) Snapshot {
	t.Helper()
	s, err := r.observe(context.Background(), types.NamespacedName{Namespace: "ml", Name: "shop"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A report from before the term may say of a cluster that its applications run, while another leader has put another config
// there since.
func TestAnswersFromBeforeTheTermAreNotLookedAt(t *testing.T) {
	service := given().Service
	cluster := rayCluster(service, old, "", "")
	cluster.UID = "cluster-uid"
	pod := node(old, rayv1.NodeTypeHead, "10.0.0.1").Pod
	pod.UID, pod.ResourceVersion = "cluster-uid", ""
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, rayv1.GroupVersion.WithKind(rayv1.KindRayCluster))}
	for name, c := range map[string]struct {
		asker heard
		want  bool
	}{
		"before the term":                {heard{now.Add(-time.Second), "cluster-uid"}, false},
		"when it was begun":              {heard{now, "cluster-uid"}, true},
		"within the term":                {heard{now.Add(time.Second), "cluster-uid"}, true},
		"never":                          {heard{time.Time{}, "cluster-uid"}, false},
		"for an earlier one of the name": {heard{now, "another"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			service, cluster := service.DeepCopy(), cluster.DeepCopy()
			service.ResourceVersion = ""
			r := reader(t, service, cluster, pod.DeepCopy())
			r.Dashboards, r.Proxies = c.asker, c.asker
			snapshot := observed(t, r)
			found := snapshot.cluster(old)
			if got := found.Report != nil; got != c.want {
				t.Errorf("the report is looked at: %t, want %t", got, c.want)
			}
			if got := found.Pods[0].Health != nil && found.Pods[0].Traffic != nil; got != c.want {
				t.Errorf("what the Pod said is looked at: %t, want %t", got, c.want)
			}
		})
	}
}

// A cluster that bears the labels of a RayService and does not belong to it is none of its business (RS-081).
func TestOnlyOwnClustersAreSeen(t *testing.T) {
	service := given().Service
	service.ResourceVersion = ""
	mine, foreign, namesake := rayCluster(service, old, "", ""), rayCluster(service, fresh, "", ""), rayCluster(service, "shop-ccccc", "", "")
	foreign.OwnerReferences = nil
	namesake.OwnerReferences[0].UID = "an earlier RayService of the name"
	s := observed(t, reader(t, service, mine, foreign, namesake))
	if len(s.Clusters) != 1 || s.Clusters[0].name() != old {
		t.Errorf("%d clusters are seen, want only %s", len(s.Clusters), old)
	}
}

// Pods that an earlier cluster of the name has left prove nothing of the present one.
func TestOnlyPodsOfThisLifeOfAClusterAreSeen(t *testing.T) {
	service := given().Service
	service.ResourceVersion = ""
	cluster := rayCluster(service, old, "", "")
	cluster.UID = "cluster-uid"
	mine, before, other := node(old, rayv1.NodeTypeHead, "10.0.0.1").Pod, node(old, rayv1.NodeTypeHead, "10.0.0.2").Pod, node(old, rayv1.NodeTypeRedisCleanup, "10.0.0.3").Pod
	before.Name = "left-behind"
	for _, pod := range []*corev1.Pod{mine, before, other} {
		pod.ResourceVersion = ""
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, rayv1.GroupVersion.WithKind(rayv1.KindRayCluster))}
	}
	before.OwnerReferences[0].UID = "an earlier RayCluster of the name"
	s := observed(t, reader(t, service, cluster, mine, before, other))
	if pods := s.cluster(old).Pods; len(pods) != 1 || pods[0].Name != mine.Name {
		t.Errorf("%d Pods are seen, want only %s", len(pods), mine.Name)
	}
}

func TestEndpointsAreCountedByPod(t *testing.T) {
	service := given().Service
	service.ResourceVersion = ""
	lead := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: serveService, OwnerReferences: []metav1.OwnerReference{ownerReference(service)}}}
	slice := func(name, family string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: serveService}},
			AddressType: discoveryv1.AddressType(family), Endpoints: endpoints}
	}
	endpoint := func(kind string, uid types.UID, ready *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: kind, UID: uid}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	}
	s := observed(t, reader(t, service, lead,
		slice("a", "IPv4", endpoint("Pod", "1", ptr.To(true)), endpoint("Pod", "2", ptr.To(false)), endpoint("Pod", "3", nil), endpoint("Node", "4", ptr.To(true)), discoveryv1.Endpoint{}),
		slice("b", "IPv6", endpoint("Pod", "1", ptr.To(true)), endpoint("Pod", "2", ptr.To(true)))))
	want := []Endpoint{{Pod: "1", Ready: true}, {Pod: "2", Ready: true}, {Pod: "3", Ready: true}}
	if diff := cmp.Diff(want, s.Endpoints[serveService]); diff != "" {
		t.Errorf("endpoints (RS-008; -want +got):\n%s", diff)
	}
}
