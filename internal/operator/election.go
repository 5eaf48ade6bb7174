package operator

import (
	"context"
	"fmt"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// election returns the gate of all writes, which is the lease's term, or none if election is switched off; and what is
// to be called when the API server refuses a write because another replica leads.
func (w *wiring) election(
	ctx context.Context, registerer prometheus.Registerer, settings raycluster.Settings,
) (leadership.Gate, func(), error) {
	election := w.cfg.LeaderElection
	if !election.Enabled {
		return leadership.Alone{}, nil, nil
	}
	connection, err := leadership.Connect(w.options.REST, w.mgr.GetScheme())
	if err != nil {
		return nil, nil, err
	}
	namespace := election.Namespace
	if namespace == "" {
		namespace = w.options.Namespace
	}
	caches, err := w.caches(connection.Client, settings)
	if err != nil {
		return nil, nil, err
	}
	measured := leadership.NewMetrics()
	if err := measured.Register(registerer); err != nil {
		return nil, nil, err
	}
	keeper, err := leadership.New(leadership.Options{
		Leases: connection.Leases, Namespace: namespace, Name: config.LeaseName, Identity: w.options.Identity,
		LeaseDuration: election.LeaseDuration, RenewDeadline: election.RenewDeadline, RetryPeriod: election.RetryPeriod,
		Fence:   w.fence(connection, namespace),
		CatchUp: caches.CatchUp,
		OnTerm:  func(leadership.Term) { w.wakeAll(ctx) },
		Events:  w.mgr.GetEventRecorder("leadership"),
		Metrics: measured,
		Log:     w.options.Log.WithName("leadership"),
	})
	if err != nil {
		return nil, nil, err
	}
	if err := w.mgr.Add(keeper); err != nil {
		return nil, nil, fmt.Errorf("register the election: %w", err)
	}
	return keeper, keeper.Fenced, nil
}

func (w *wiring) fence(connection leadership.Connection, namespace string) *leadership.Fence {
	fencing := w.cfg.LeaderElection.Fencing
	if fencing == config.FencingOff {
		return nil
	}
	return &leadership.Fence{
		Client: connection.Client, Holder: namespace, Lease: types.NamespacedName{Namespace: namespace, Name: config.LeaseName},
		Identity: w.options.Identity, Required: fencing == config.FencingRequired,
	}
}

// caches are all that plans are made from. Events are left out: they explain, and decide nothing.
func (w *wiring) caches(live client.Reader, settings raycluster.Settings) (leadership.Caches, error) {
	limits, err := cacheOptions(w.cfg)
	if err != nil {
		return leadership.Caches{}, err
	}
	caches := leadership.Caches{Cache: w.mgr.GetCache(), Live: live, Namespaces: w.cfg.WatchNamespaces}
	objects := append(raycluster.OwnedObjects(settings), &rayv1.RayCluster{}, &rayv1.RayJob{}, &rayv1.RayService{},
		&corev1.Pod{}, &discoveryv1.EndpointSlice{})
	if w.gateways {
		objects = append(objects, &gatewayv1.Gateway{}, &gatewayv1.HTTPRoute{})
	}
	if w.cfg.FeatureGates.Enabled(config.RayCronJob) {
		objects = append(objects, &rayv1.RayCronJob{})
	}
	for _, object := range objects {
		kind, err := w.cachedKind(object, limits)
		if err != nil {
			return leadership.Caches{}, err
		}
		caches.Kinds = append(caches.Kinds, kind)
	}
	return caches, nil
}

func (w *wiring) cachedKind(object client.Object, limits cache.Options) (leadership.CachedKind, error) {
	gvk, err := apiutil.GVKForObject(object, w.mgr.GetScheme())
	if err != nil {
		return leadership.CachedKind{}, fmt.Errorf("find the kind of %T: %w", object, err)
	}
	kind := leadership.CachedKind{Kind: gvk}
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if _, ok := object.(*unstructured.Unstructured); ok {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(listKind)
		kind.List = list
	} else {
		list, err := w.mgr.GetScheme().New(listKind)
		if err != nil {
			return leadership.CachedKind{}, fmt.Errorf("find the type of kind %s: %w", listKind, err)
		}
		kind.List = list.(client.ObjectList)
	}
	for limited, limit := range limits.ByObject {
		if reflect.TypeOf(limited) == reflect.TypeOf(object) && limit.Label != nil {
			kind.Selector = client.MatchingLabelsSelector{Selector: limit.Label}
		}
	}
	return kind, nil
}
