// Package raycluster keeps RayClusters as wanted: observe reads what is, plan decides, action writes.
package raycluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// Name is the controller's name in events, logs and metrics.
const Name = "raycluster-controller"

// Asker asks Ray in the background; see internal/ray/poll.
type Asker interface {
	Track(poll.Target)
	Forget(poll.Key)
	Observation(poll.Key) (poll.Observation, bool)
	Want(poll.Key, poll.Want)
}

// Reconciler plans RayClusters while a term is valid.
type Reconciler struct {
	Reader   client.Reader
	Executor *action.Executor
	Gate     leadership.Gate
	Holds    *action.Holds
	Streaks  *Streaks
	Specs    *Specs
	Losses   *Losses
	// Census asks Ray about its actors.
	Census   Asker
	Settings Settings
	Clock    clock.PassiveClock
	// Bell wakes everything when a term begins.
	Bell *wake.Bell
	// Resync is how often a RayCluster is looked at without a reason. Zero means never.
	Resync time.Duration
	// Concurrency is how many RayClusters are planned at once.
	Concurrency int

	term leadership.Change
}

// SetupWithManager registers the watches. The controller runs on every replica; only a term lets it write.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	for _, owned := range append(OwnedObjects(r.Settings), &corev1.Pod{}) {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), owned, OwnerUIDIndex, IndexOwnerUID); err != nil {
			return fmt.Errorf("index %T by owner: %w", owned, err)
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Event{}, EventPodIndex, IndexEventPod); err != nil {
		return fmt.Errorf("index events by Pod: %w", err)
	}
	everywhere := false
	wanted := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	watches := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&rayv1.RayCluster{}, builder.WithPredicates(wanted)).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(clusterClaimedBy)).
		Watches(&batchv1.Job{}, handler.EnqueueRequestsFromMapFunc(clusterOfCleanup)).
		Watches(&corev1.Event{}, handler.EnqueueRequestsFromMapFunc(r.clusterOfEvent)).
		WatchesRawSource(r.Bell.Source()).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: max(r.Concurrency, 1)})
	for _, owned := range OwnedObjects(r.Settings) {
		watches = watches.Owns(owned)
	}
	return watches.Complete(r)
}

// clusterClaimedBy wakes the cluster that a Pod names by label without being controlled by a cluster of that name.
func clusterClaimedBy(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.GetLabels()[rayv1.LabelCluster]
	owner := metav1.GetControllerOf(pod)
	if name == "" || owner != nil && owner.Kind == rayv1.KindRayCluster && owner.Name == name {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}}}
}

// clusterOfCleanup wakes the cluster whose keys in Redis a Job removes: not each of them has an owner.
func clusterOfCleanup(_ context.Context, job client.Object) []reconcile.Request {
	name := job.GetLabels()[rayv1.LabelCluster]
	if name == "" || job.GetLabels()[rayv1.LabelNodeType] != rayv1.NodeTypeRedisCleanup || metav1.GetControllerOf(job) != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: job.GetNamespace(), Name: name}}}
}

// clusterOfEvent wakes the cluster whose Pod an event is about.
func (r *Reconciler) clusterOfEvent(ctx context.Context, object client.Object) []reconcile.Request {
	event, ok := object.(*corev1.Event)
	if !ok {
		return nil
	}
	about := event.InvolvedObject
	pod := &corev1.Pod{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: about.Namespace, Name: about.Name}, pod)
	owner := metav1.GetControllerOf(pod)
	// A Pod that the cache does not show yet wakes its cluster when it is shown.
	if err != nil || pod.UID != about.UID || owner == nil || owner.Kind != rayv1.KindRayCluster {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}}}
}

// forgetAll drops what was remembered of writes in an earlier term: meanwhile another leader has written. Specs are kept,
// because a standby goes on noting them.
func (r *Reconciler) forgetAll() {
	r.Holds.ForgetAll()
	r.Streaks.ForgetAll()
	r.Losses.ForgetAll()
	r.Executor.Made.ForgetAll()
}

// Reconcile is observe → plan → apply.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, ok := leadership.Begin(ctx, r.Gate)
	if !ok {
		return reconcile.Result{}, r.standBy(ctx, request.NamespacedName)
	}
	if changed, _ := r.term.Seen(r.Gate, r.Clock.Now()); changed {
		r.forgetAll()
	}
	snapshot, err := observe(ctx, r.Reader, request.NamespacedName, r.Settings)
	if err == nil && (snapshot.Cluster == nil || snapshot.Cluster.DeletionTimestamp != nil && !guarded(snapshot.Cluster)) {
		r.forget(request.NamespacedName, snapshot.Cluster)
	}
	if err != nil || snapshot.Cluster == nil {
		return reconcile.Result{}, err
	}
	uid := snapshot.Cluster.UID
	if seen, err := r.Executor.AllSeen(ctx, snapshot.Cluster, snapshot.uids()); err != nil || !seen {
		return requeue(action.StalePause, err)
	}
	now := r.Clock.Now()
	snapshot.Holds = r.Holds.Of(uid)
	snapshot.LastValid = cmp.Or(r.Specs.Note(snapshot.Cluster), snapshot.storedSpec())
	snapshot.Streaks = r.Streaks.Note(snapshot.Cluster, snapshot.Pods, now)
	r.losses(&snapshot, now)
	plan := Plan(snapshot, r.Settings, now)
	r.Losses.Leaving(snapshot.Cluster, plan.Actions, now)
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
	return reconcile.Result{RequeueAfter: action.Soonest(plan.LookAgain, retry, r.Resync)}, nil
}

// losses has Ray asked about its actors as long as it can be, and takes in what is known of losses.
func (r *Reconciler) losses(s *Snapshot, now time.Time) {
	key := pollKey(s.Cluster)
	target := s.question(r.Settings)
	switch {
	case target != nil:
		r.Census.Track(*target)
	case s.quiet():
		r.Census.Forget(key)
	}
	seen, _ := r.Census.Observation(key)
	s.Idle = seen.Err == nil && seen.Idle
	s.Recoveries = r.Losses.Note(s.Cluster, s.Pods, seen.Ledger, now)
	s.Census = r.Losses.Census(s.Cluster, seen.Ledger)
	r.Census.Want(key, poll.Want{
		Jobs: s.Cluster.Annotations[rayv1.AnnotationProtectHead] == rayv1.ProtectHeadWhileJobsRun,
		All:  r.Losses.Curious(s.Cluster, seen.Ledger),
	})
}

// requeue asks for another pass after a pause, or lets the error ask for one.
func requeue(pause time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pause}, nil
}

// standBy does nothing but remember: everything is queued again when a term begins.
func (r *Reconciler) standBy(ctx context.Context, name types.NamespacedName) error {
	cluster := &rayv1.RayCluster{}
	err := r.Reader.Get(ctx, name, cluster)
	switch {
	case apierrors.IsNotFound(err):
		r.forget(name, nil)
		return nil
	case err != nil:
		return fmt.Errorf("read RayCluster %s: %w", name, err)
	}
	r.Specs.Note(cluster)
	return nil
}

// forget drops what is remembered about a cluster that is gone, or going.
func (r *Reconciler) forget(name types.NamespacedName, cluster *rayv1.RayCluster) {
	r.Streaks.Forget(name)
	r.Specs.Forget(name)
	r.Losses.Forget(name)
	r.Census.Forget(poll.Key{Kind: rayv1.KindRayCluster, NamespacedName: name})
	if cluster != nil {
		r.Holds.Forget(cluster.UID)
	}
}
