// Package raycronjob creates a RayJob at each tick of a schedule, once, and never more than one for ticks that were
// missed.
package raycronjob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// Name is the controller's name in events, logs and metrics.
const Name = "raycronjob-controller"

// Reconciler plans RayCronJobs while a term is valid.
type Reconciler struct {
	Reader   client.Reader
	Executor *action.Executor
	Gate     leadership.Gate
	Holds    *action.Holds
	// Jobs are the settings that a job template is judged by.
	Jobs  rayjob.Settings
	Clock clock.PassiveClock
	// Bell wakes everything when a term begins.
	Bell *wake.Bell
	// Concurrency is how many RayCronJobs are planned at once.
	Concurrency int

	term leadership.Change
}

// SetupWithManager registers the watches. The controller runs on every replica; only a term lets it write.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&rayv1.RayCronJob{}).
		Owns(&rayv1.RayJob{}).
		WatchesRawSource(r.Bell.Source()).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: max(r.Concurrency, 1)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// WakeAll has everything planned once: the RayCronJobs, and those that are gone and whose RayJobs still wait for them.
func (r *Reconciler) WakeAll(ctx context.Context) error {
	jobs := &rayv1.RayJobList{}
	if err := r.Reader.List(ctx, jobs, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list all RayJobs to find what waits for a RayCronJob: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if owner := ownerOf(job); owner != nil && slices.Contains(job.Finalizers, rayv1.FinalizerRayCronJobTick) {
			r.Bell.Ring(types.NamespacedName{Namespace: job.Namespace, Name: owner.Name})
		}
	}
	return r.Bell.RingAll(ctx, r.Reader, &rayv1.RayCronJobList{})
}

// Reconcile is observe → plan → apply.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, ok := leadership.Begin(ctx, r.Gate)
	if !ok {
		// A standby does nothing; everything is queued again when its term begins.
		return reconcile.Result{}, nil
	}
	if changed, _ := r.term.Seen(r.Gate, r.Clock.Now()); changed {
		r.Holds.ForgetAll()
		r.Executor.Made.ForgetAll()
	}
	snapshot, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	owner := snapshot.owner()
	if owner == nil {
		return reconcile.Result{}, nil
	}
	seen, err := r.Executor.AllSeen(ctx, owner, snapshot.uids())
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !seen:
		return reconcile.Result{RequeueAfter: action.StalePause}, nil
	}
	now := r.Clock.Now()
	plan := Plan(snapshot, r.Jobs, now)
	result, err := r.Executor.Run(ctx, owner, plan)
	switch {
	case errors.Is(err, leadership.ErrNoTerm):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: action.ConflictPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if snapshot.Cron == nil || snapshot.Cron.DeletionTimestamp != nil {
		r.Holds.Forget(owner.GetUID())
		return reconcile.Result{}, result.Err()
	}
	retry := r.Holds.Record(owner.GetUID(), plan, result, now)
	return reconcile.Result{RequeueAfter: action.Soonest(plan.LookAgain, retry)}, nil
}

// owner is the object that the plan speaks of, or nil when there is nothing to plan.
func (s Snapshot) owner() client.Object {
	switch {
	case s.Cron != nil:
		return s.Cron
	case len(s.Orphans) > 0:
		return s.Orphans[0]
	}
	return nil
}
