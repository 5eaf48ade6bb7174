package rayservice

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// Snapshot is all that one plan for a RayService may know.
type Snapshot struct {
	// Service is nil when it is gone.
	Service *rayv1.RayService
	// Clusters are the RayClusters that the RayService controls, the oldest first.
	Clusters []Cluster
	// Services are the Services of its namespace that it controls, or that stand under names which it wants.
	Services []*corev1.Service
	// Endpoints are those of each of these Services, by its name.
	Endpoints map[string][]Endpoint
	// Gateway and Route stand under the names that a step by step take-over wants, whoever owns them; nil if there is none.
	Gateway *gatewayv1.Gateway
	Route   *gatewayv1.HTTPRoute
	// GatewayAPI tells whether the Gateway API is installed.
	GatewayAPI bool
	// Holds are the writes that failed lately, by the kind and name of the object.
	Holds map[string]action.Hold
}

// Cluster is one of the RayClusters with what is known of it.
type Cluster struct {
	Object *rayv1.RayCluster
	// HeadService leads to its dashboard, nil when there is none yet.
	HeadService *corev1.Service
	// Pods are its head and workers, sorted by name.
	Pods []Pod
	// Report is what Serve last said, nil when it was not asked yet.
	Report *poll.Observation
	// Put is what became of the last config that was sent to it, nil when none has ended. Sending tells whether one is on
	// its way.
	Put     *action.Outcome
	Sending bool
}

// Pod is one node of a cluster, with what it was heard to say.
type Pod struct {
	*corev1.Pod
	// Health is the answer of its Serve proxy, nil when it was not asked yet.
	Health *poll.Observation
	// Traffic are the requests that it serves, nil when it was not asked yet.
	Traffic *poll.Observation
}

// Endpoint is a Pod behind a Service.
type Endpoint struct {
	Pod types.UID
	// Ready tells whether requests are sent to it.
	Ready bool
}

// name of the cluster.
func (c *Cluster) name() string { return c.Object.Name }

// head is the head Pod that is not on its way out, else any, nil if there is none.
func (c *Cluster) head() *Pod {
	var head *Pod
	for i := range c.Pods {
		pod := &c.Pods[i]
		if pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && (head == nil || pod.DeletionTimestamp == nil) {
			head = pod
		}
	}
	return head
}

// leaving tells whether the cluster is being deleted, or will be whatever happens.
func (c *Cluster) leaving() bool {
	return c.Object.DeletionTimestamp != nil || c.Object.Annotations[rayv1.AnnotationAbandoned] != ""
}

// cluster returns the RayCluster of a name, nil when the RayService controls none of that name.
func (s *Snapshot) cluster(name string) *Cluster {
	for i := range s.Clusters {
		if s.Clusters[i].name() == name && name != "" {
			return &s.Clusters[i]
		}
	}
	return nil
}

// service returns the Service of a name, nil when there is none.
func (s *Snapshot) service(name string) *corev1.Service {
	for _, service := range s.Services {
		if service.Name == name {
			return service
		}
	}
	return nil
}

// owns tells whether the RayService controls an object.
func (s *Snapshot) owns(object metav1.Object) bool {
	return metav1.IsControlledBy(object, s.Service)
}

// uids are the UIDs of all that the caches show of what the RayService owns.
func (s *Snapshot) uids() []types.UID {
	var uids []types.UID
	for _, cluster := range s.Clusters {
		uids = append(uids, cluster.Object.UID)
	}
	for _, service := range s.Services {
		uids = append(uids, service.UID)
	}
	if s.Gateway != nil {
		uids = append(uids, s.Gateway.UID)
	}
	if s.Route != nil {
		uids = append(uids, s.Route.UID)
	}
	return uids
}

// Observe reads what a plan for a RayService is made from, for somebody who looks once and is no operator: what Ray and the Pods
// have said, and what has become of requests to them, is not known. See Foresee. A RayService that is not there gives an empty
// Snapshot.
func Observe(ctx context.Context, reader client.Reader, name types.NamespacedName, settings Settings) (Snapshot, error) {
	return observe(ctx, reader, name, settings.GatewayAPI)
}

// observe reads the RayService and all that belongs to it from the caches, and the last answers of Ray from the pollers.
// What was asked before this term may be older than what another leader has done meanwhile, and is not looked at.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName, term time.Time) (Snapshot, error) {
	s, err := observe(ctx, r.Reader, name, r.Settings.GatewayAPI)
	if err != nil || s.Service == nil {
		return s, err
	}
	for i := range s.Clusters {
		r.hear(&s.Clusters[i], term)
	}
	s.Holds = r.Holds.Of(s.Service.UID)
	return s, nil
}

// hear adds what was said in this term.
func (r *Reconciler) hear(c *Cluster, term time.Time) {
	for i := range c.Pods {
		pod := &c.Pods[i]
		pod.Health = since(r.Proxies, healthKey(pod.Pod), pod.UID, term)
		pod.Traffic = since(r.Proxies, trafficKey(pod.Pod), pod.UID, term)
	}
	c.Report = since(r.Dashboards, reportKey(c.Object), c.Object.UID, term)
	c.Put, c.Sending = r.Executor.Ray.ServeOutcome(c.Object.UID)
}

// observe reads the RayService and all that belongs to it.
func observe(ctx context.Context, reader client.Reader, name types.NamespacedName, gateways bool) (Snapshot, error) {
	s := Snapshot{GatewayAPI: gateways, Endpoints: map[string][]Endpoint{}}
	var err error
	if s.Service, err = get(ctx, reader, name, &rayv1.RayService{}); err != nil || s.Service == nil {
		return Snapshot{}, err
	}
	if err := s.observeClusters(ctx, reader); err != nil {
		return Snapshot{}, err
	}
	if err := s.observeServices(ctx, reader); err != nil {
		return Snapshot{}, err
	}
	if s.GatewayAPI {
		if err := s.observeGateway(ctx, reader); err != nil {
			return Snapshot{}, err
		}
	}
	return s, nil
}

func (s *Snapshot) observeClusters(ctx context.Context, reader client.Reader) error {
	namespace := s.Service.Namespace
	list := &rayv1.RayClusterList{}
	// By name and not by kind of origin alone, so that no other RayService's clusters are looked at.
	origin := client.MatchingLabels{rayv1.LabelOriginatedFromName: s.Service.Name, rayv1.LabelOriginatedFromKind: rayv1.KindRayService}
	if err := reader.List(ctx, list, client.InNamespace(namespace), origin); err != nil {
		return fmt.Errorf("list the RayClusters of RayService %s/%s: %w", namespace, s.Service.Name, err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		if !s.owns(object) {
			continue
		}
		cluster := Cluster{Object: object}
		if err := cluster.observe(ctx, reader); err != nil {
			return err
		}
		s.Clusters = append(s.Clusters, cluster)
	}
	slices.SortFunc(s.Clusters, func(a, b Cluster) int {
		return cmp.Or(a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time), strings.Compare(a.name(), b.name()))
	})
	return nil
}

func (c *Cluster) observe(ctx context.Context, reader client.Reader) error {
	namespace := c.Object.Namespace
	var err error
	head := types.NamespacedName{Namespace: namespace, Name: raycluster.HeadServiceName(c.Object)}
	if c.HeadService, err = get(ctx, reader, head, &corev1.Service{}); err != nil {
		return err
	}
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{rayv1.LabelCluster: c.name()}); err != nil {
		return fmt.Errorf("list the Pods of RayCluster %s/%s: %w", namespace, c.name(), err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if node := pod.Labels[rayv1.LabelNodeType]; node != rayv1.NodeTypeHead && node != rayv1.NodeTypeWorker {
			continue
		}
		// Those that an earlier cluster of the name has left prove nothing of this one.
		if metav1.IsControlledBy(pod, c.Object) {
			c.Pods = append(c.Pods, Pod{Pod: pod})
		}
	}
	slices.SortFunc(c.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// since returns what was last heard if it was asked for the same life of the owner, since a time; nil else.
func since(asker Asker, key poll.Key, uid types.UID, term time.Time) *poll.Observation {
	heard, ok := asker.Observation(key)
	if !ok || heard.Target.OwnerUID != uid || heard.Asked.Before(term) || heard.Asked.IsZero() {
		return nil
	}
	return &heard
}

// observeServices reads the Services that the RayService controls or wants, and those of its clusters, with their endpoints.
func (s *Snapshot) observeServices(ctx context.Context, reader client.Reader) error {
	list := &corev1.ServiceList{}
	origin := client.MatchingLabels{rayv1.LabelOriginatedFromName: s.Service.Name, rayv1.LabelOriginatedFromKind: rayv1.KindRayService}
	if err := reader.List(ctx, list, client.InNamespace(s.Service.Namespace), origin); err != nil {
		return fmt.Errorf("list the Services of RayService %s/%s: %w", s.Service.Namespace, s.Service.Name, err)
	}
	found := map[string]*corev1.Service{}
	for i := range list.Items {
		if s.owns(&list.Items[i]) {
			found[list.Items[i].Name] = &list.Items[i]
		}
	}
	wanted := []string{headServiceName(s.Service), serveServiceName(s.Service)}
	for _, cluster := range s.Clusters {
		wanted = append(wanted, raycluster.ServeServiceName(cluster.name()))
	}
	for _, name := range wanted {
		service, err := get(ctx, reader, types.NamespacedName{Namespace: s.Service.Namespace, Name: name}, &corev1.Service{})
		if err != nil {
			return err
		}
		if service != nil {
			found[name] = service
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		s.Services = append(s.Services, found[name])
		endpoints, err := endpointsOf(ctx, reader, found[name])
		if err != nil {
			return err
		}
		s.Endpoints[name] = endpoints
	}
	return nil
}

// endpointsOf are the distinct Pods behind a Service; one that has an address of each family counts once.
func endpointsOf(ctx context.Context, reader client.Reader, service *corev1.Service) ([]Endpoint, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := reader.List(ctx, list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
	if err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	ready := map[types.UID]bool{}
	for i := range list.Items {
		for _, endpoint := range list.Items[i].Endpoints {
			if endpoint.TargetRef == nil || endpoint.TargetRef.Kind != "Pod" {
				continue
			}
			// No answer counts as ready, by the rule of EndpointConditions.
			is := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			ready[endpoint.TargetRef.UID] = ready[endpoint.TargetRef.UID] || is
		}
	}
	found := make([]Endpoint, 0, len(ready))
	for uid, is := range ready {
		found = append(found, Endpoint{Pod: uid, Ready: is})
	}
	slices.SortFunc(found, func(a, b Endpoint) int { return strings.Compare(string(a.Pod), string(b.Pod)) })
	return found, nil
}

func (s *Snapshot) observeGateway(ctx context.Context, reader client.Reader) error {
	in := func(object string) types.NamespacedName {
		return types.NamespacedName{Namespace: s.Service.Namespace, Name: object}
	}
	var err error
	if s.Gateway, err = get(ctx, reader, in(gatewayName(s.Service)), &gatewayv1.Gateway{}); err != nil {
		return err
	}
	s.Route, err = get(ctx, reader, in(routeName(s.Service)), &gatewayv1.HTTPRoute{})
	return err
}

// get reads one object, and returns nil when there is none.
func get[T client.Object](ctx context.Context, reader client.Reader, name types.NamespacedName, into T) (T, error) {
	var none T
	err := reader.Get(ctx, name, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return into, nil
}

// The kinds under which the pollers know what belongs to a RayService.
const (
	reportKind  = rayv1.KindRayCluster
	healthKind  = "Pod"
	trafficKind = "PodTraffic"
)

func reportKey(cluster *rayv1.RayCluster) poll.Key {
	return poll.Key{Kind: reportKind, NamespacedName: client.ObjectKeyFromObject(cluster)}
}

func healthKey(pod *corev1.Pod) poll.Key {
	return poll.Key{Kind: healthKind, NamespacedName: client.ObjectKeyFromObject(pod)}
}

func trafficKey(pod *corev1.Pod) poll.Key {
	return poll.Key{Kind: trafficKind, NamespacedName: client.ObjectKeyFromObject(pod)}
}

// hasAddress tells whether a Pod can be asked: one without an address would be asked at that of the operator.
func hasAddress(pod *corev1.Pod) bool { return net.ParseIP(pod.Status.PodIP) != nil }
