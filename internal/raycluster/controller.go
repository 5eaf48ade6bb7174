// Package raycluster keeps RayClusters as wanted: observe reads what is, plan decides, action writes.
package raycluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// Name is the controller's name in events, logs and metrics.
const Name = "raycluster-controller"

// Reconciler plans RayClusters while a term is valid.
type Reconciler struct {
	Reader   client.Reader
	Executor *action.Executor
	Gate     leadership.Gate
	Holds    *action.Holds
	Settings Settings
	Clock    clock.PassiveClock
	// Bell wakes everything when a term begins.
	Bell *wake.Bell
	// Concurrency is how many RayClusters are planned at once.
	Concurrency int
}

// SetupWithManager registers the watches. The controller runs on every replica; only a term lets it write.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	for _, owned := range []client.Object{&corev1.Pod{}, &corev1.Service{}} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), owned, OwnerUIDIndex, IndexOwnerUID); err != nil {
			return fmt.Errorf("index %T by owner: %w", owned, err)
		}
	}
	everywhere := false
	wanted := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&rayv1.RayCluster{}, builder.WithPredicates(wanted)).
		Owns(&corev1.Pod{}).
		Owns(&corev1.Service{}).
		WatchesRawSource(r.Bell.Source()).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: max(r.Concurrency, 1)}).
		Complete(r)
}

// Reconcile is observe → plan → apply.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if _, ok := r.Gate.Current(); !ok {
		// A standby does nothing; everything is queued again when its term begins.
		return reconcile.Result{}, nil
	}
	snapshot, err := observe(ctx, r.Reader, request.NamespacedName)
	if err != nil || snapshot.Cluster == nil {
		return reconcile.Result{}, err
	}
	uid := snapshot.Cluster.UID
	if snapshot.Cluster.DeletionTimestamp != nil {
		r.Holds.Forget(uid)
	}
	if !r.Executor.Made.AllSeen(uid, snapshot.uids()) {
		return reconcile.Result{RequeueAfter: action.StalePause}, nil
	}
	snapshot.Holds = r.Holds.Of(uid)
	now := r.Clock.Now()
	plan := Plan(snapshot, r.Settings, now)
	result, err := r.Executor.Run(ctx, snapshot.Cluster, plan)
	switch {
	case errors.Is(err, leadership.ErrNoTerm):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: action.ConflictPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	retry := r.Holds.Record(uid, plan, result, now)
	return reconcile.Result{RequeueAfter: action.Soonest(plan.LookAgain, retry)}, nil
}
