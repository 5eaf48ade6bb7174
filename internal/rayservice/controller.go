// Package rayservice serves RayServices: it makes their clusters, gives Serve its config, moves the traffic to a changed
// cluster when that has proved that it can take it, and takes the old one down when its requests have ended.
package rayservice

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// Name is the controller's name in events, logs and metrics.
const Name = "rayservice-controller"

// Asker asks in the background; see internal/ray/poll.
type Asker interface {
	Track(poll.Target)
	Forget(poll.Key)
	Observation(poll.Key) (poll.Observation, bool)
}

// Reconciler plans RayServices while a term is valid.
type Reconciler struct {
	Reader   client.Reader
	Executor *action.Executor
	Gate     leadership.Gate
	Holds    *action.Holds
	// Dashboards asks the heads of clusters, Proxies asks their Pods.
	Dashboards, Proxies Asker
	Memory              *Memory
	Settings            Settings
	Clock               clock.PassiveClock
	// Bell wakes everything when a term begins, and single services when Ray has a new answer.
	Bell *wake.Bell
	// Concurrency is how many RayServices are planned at once.
	Concurrency int

	term leadership.Change
}

// SetupWithManager registers the watches. The controller runs on every replica; only a term lets it write.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	everywhere := false
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&rayv1.RayService{}).
		Owns(&rayv1.RayCluster{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(predicate.NewPredicateFuncs(hasServeLabel))).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(ofCluster), builder.WithPredicates(predicate.NewPredicateFuncs(hasServeLabel))).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofPod)).
		WatchesRawSource(r.Bell.Source()).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: max(r.Concurrency, 1)})
	if r.Settings.GatewayAPI {
		b = b.Owns(&gatewayv1.Gateway{}).Owns(&gatewayv1.HTTPRoute{})
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// Reconcile is observe → plan → apply.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, ok := leadership.Begin(ctx, r.Gate)
	if !ok {
		// A standby does nothing, and asks nothing; everything is queued again when its term begins.
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	changed, since := r.term.Seen(r.Gate, r.Clock.Now())
	if changed {
		r.Holds.ForgetAll()
		r.Executor.Made.ForgetAll()
	}
	snapshot, err := r.observe(ctx, request.NamespacedName, since)
	if err != nil {
		return reconcile.Result{}, err
	}
	if snapshot.Service == nil {
		r.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	seen, err := r.Executor.AllSeen(ctx, snapshot.Service, snapshot.uids())
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !seen:
		return reconcile.Result{RequeueAfter: action.StalePause}, nil
	}
	now := r.Clock.Now()
	decision := Plan(snapshot, r.Settings, now)
	r.ask(request.NamespacedName, decision.Questions)
	result, err := r.Executor.Run(ctx, snapshot.Service, decision.Plan)
	switch {
	case errors.Is(err, leadership.ErrNoTerm):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: action.ConflictPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	retry := r.Holds.Record(snapshot.Service.UID, decision.Plan, result, now)
	return reconcile.Result{RequeueAfter: action.Soonest(decision.LookAgain, retry)}, nil
}

// ask tells the pollers what the plan wants to know; answers come back through the Bell.
func (r *Reconciler) ask(name types.NamespacedName, questions Questions) {
	keys := pollKeys(questions.Reports, questions.Pods)
	for _, key := range r.Memory.ask(name, keys) {
		r.unask(key)
	}
	for _, target := range questions.Reports {
		r.Dashboards.Track(target)
	}
	for _, target := range questions.Pods {
		r.Proxies.Track(target)
	}
}

// forget drops all that is remembered and asked on behalf of a service.
func (r *Reconciler) forget(name types.NamespacedName) {
	for _, key := range r.Memory.ask(name, nil) {
		r.unask(key)
	}
}

func (r *Reconciler) unask(key poll.Key) {
	if key.Kind == reportKind {
		r.Dashboards.Forget(key)
		return
	}
	r.Proxies.Forget(key)
}

// ServiceOf names the RayService that a RayCluster was made for; it is false for other clusters.
func ServiceOf(cluster client.Object) (types.NamespacedName, bool) {
	labels := cluster.GetLabels()
	name := types.NamespacedName{Namespace: cluster.GetNamespace(), Name: labels[rayv1.LabelOriginatedFromName]}
	return name, labels[rayv1.LabelOriginatedFromKind] == rayv1.KindRayService && name.Name != ""
}

func hasServeLabel(object client.Object) bool { return object.GetLabels()[rayv1.LabelServe] != "" }

// ofCluster wakes the RayService that an object bears the origin of.
func ofCluster(_ context.Context, object client.Object) []reconcile.Request {
	if name, ok := ServiceOf(object); ok {
		return []reconcile.Request{{NamespacedName: name}}
	}
	return nil
}

// ofPod wakes the RayService of a Pod. Its RayCluster's name is that of the RayService and six more characters.
func ofPod(ctx context.Context, pod client.Object) []reconcile.Request {
	if _, serves := pod.GetLabels()[rayv1.LabelServe]; !serves {
		return nil
	}
	if requests := ofCluster(ctx, pod); requests != nil {
		return requests
	}
	cluster := pod.GetLabels()[rayv1.LabelCluster]
	if cut := strings.LastIndexByte(cluster, '-'); cut > 0 {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: cluster[:cut]}}}
	}
	return nil
}
