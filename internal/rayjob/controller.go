// Package rayjob runs RayJobs: it makes their clusters, has the job submitted once, and follows it to its end by
// what Ray says about it.
package rayjob

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
	"github.com/heliostat-io/heliostat/internal/wake"
)

// Name is the controller's name in events, logs and metrics.
const Name = "rayjob-controller"

// Asker asks Ray in the background; see internal/ray/poll.
type Asker interface {
	Track(poll.Target)
	Forget(poll.Key)
	Observation(poll.Key) (poll.Observation, bool)
}

// Reconciler plans RayJobs while a term is valid.
type Reconciler struct {
	Reader   client.Reader
	Executor *action.Executor
	Gate     leadership.Gate
	Holds    *action.Holds
	Poller   Asker
	Memory   *Memory
	Settings Settings
	Clock    clock.PassiveClock
	// Bell wakes everything when a term begins, and single jobs when Ray has a new answer.
	Bell *wake.Bell
	// Concurrency is how many RayJobs are planned at once.
	Concurrency int

	term leadership.Change
}

// SetupWithManager registers the watches. The controller runs on every replica; only a term lets it write.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &rayv1.RayJob{}, clusterIndex, indexCluster); err != nil {
		return fmt.Errorf("index RayJobs by their cluster: %w", err)
	}
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&rayv1.RayJob{}).
		Watches(&rayv1.RayCluster{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfCluster)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.jobsOfPod), builder.WithPredicates(podTells())).
		Owns(&batchv1.Job{}).
		Owns(&corev1.Service{}).
		WatchesRawSource(r.Bell.Source()).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere, MaxConcurrentReconciles: max(r.Concurrency, 1)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up %s: %w", Name, err)
	}
	return nil
}

// Reconcile is observe → plan → apply.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, ok := leadership.Begin(ctx, r.Gate)
	if !ok {
		// A standby does nothing, and asks Ray nothing; everything is queued again when its term begins.
		r.Poller.Forget(pollKey(request.NamespacedName))
		return reconcile.Result{}, r.standBy(ctx, request.NamespacedName)
	}
	changed, since := r.term.Seen(r.Gate, r.Clock.Now())
	if changed {
		r.Holds.ForgetAll()
		r.Executor.Made.ForgetAll()
		r.Memory.forgetTimes()
	}
	snapshot, err := r.observe(ctx, request.NamespacedName, since)
	if err != nil {
		return reconcile.Result{}, err
	}
	if snapshot.Job == nil {
		r.Poller.Forget(pollKey(request.NamespacedName))
		r.Memory.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	seen, err := r.Executor.AllSeen(ctx, snapshot.Job, snapshot.uids())
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case !seen:
		return reconcile.Result{RequeueAfter: action.StalePause}, nil
	}
	now := r.Clock.Now()
	snapshot.LastValid = r.Memory.lastValid(snapshot.Job, r.Settings)
	snapshot.FirstSeen = r.Memory.note(snapshot, now)
	decision := Plan(snapshot, r.Settings, now)
	r.ask(request.NamespacedName, snapshot.Job.UID, decision.Ask)
	result, err := r.Executor.Run(ctx, snapshot.Job, decision.Plan)
	switch {
	case errors.Is(err, leadership.ErrNoTerm):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: action.ConflictPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if snapshot.Job.DeletionTimestamp != nil && decision.LookAgain == 0 {
		// The finalizer was asked to go; nothing is remembered of a job that is about to vanish.
		r.Holds.Forget(snapshot.Job.UID)
		r.Executor.Ray.Forget(snapshot.Job.UID)
		return reconcile.Result{}, result.Err()
	}
	retry := r.Holds.Record(snapshot.Job.UID, decision.Plan, result, now)
	return reconcile.Result{RequeueAfter: action.Soonest(decision.LookAgain, retry)}, nil
}

// standBy does nothing but remember: everything is queued again when a term begins.
func (r *Reconciler) standBy(ctx context.Context, name types.NamespacedName) error {
	job, err := get(ctx, r.Reader, name, &rayv1.RayJob{})
	switch {
	case err != nil:
		return err
	case job == nil:
		r.Memory.forget(name)
	default:
		r.Memory.lastValid(job, r.Settings)
	}
	return nil
}

// ask tells the poller what the plan wants to know; the answer comes back through the Bell.
func (r *Reconciler) ask(name types.NamespacedName, uid types.UID, question *Question) {
	if question == nil {
		r.Poller.Forget(pollKey(name))
		return
	}
	r.Poller.Track(poll.Target{Owner: pollKey(name), OwnerUID: uid, BaseURL: question.BaseURL,
		SubmissionID: question.SubmissionID, Secret: question.Secret})
}

// clusterIndex is the cache index of RayJobs by the cluster that they use, whether it is theirs or a selected one.
const clusterIndex = "heliostat.io/ray-cluster"

func indexCluster(object client.Object) []string {
	job, ok := object.(*rayv1.RayJob)
	if !ok || job.Status.RayClusterName == "" {
		return nil
	}
	return []string{job.Status.RayClusterName}
}

// jobsOfCluster wakes the jobs that use a cluster.
func (r *Reconciler) jobsOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.jobsOn(ctx, cluster.GetNamespace(), cluster.GetName())
}

// jobsOfPod wakes the jobs that use the cluster of a head Pod, or the one whose submitter a Pod is of.
func (r *Reconciler) jobsOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	if pod.GetLabels()[rayv1.LabelNodeType] == rayv1.NodeTypeSubmitter {
		name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[rayv1.LabelOriginatedFromName]}
		return []reconcile.Request{{NamespacedName: name}}
	}
	return r.jobsOn(ctx, pod.GetNamespace(), pod.GetLabels()[rayv1.LabelCluster])
}

func (r *Reconciler) jobsOn(ctx context.Context, namespace, cluster string) []reconcile.Request {
	jobs := &rayv1.RayJobList{}
	if err := r.Reader.List(ctx, jobs, client.InNamespace(namespace), client.MatchingFields{clusterIndex: cluster}); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the RayJobs of a cluster", "cluster", cluster)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(jobs.Items))
	for i := range jobs.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])})
	}
	return requests
}

// podTells lets through what a job may want to know of a Pod: that a head or a submitter comes, goes, or changes its
// state. Of workers only the end counts, for jobs whose cluster is being taken down.
func podTells() predicate.Predicate {
	matters := func(pod client.Object) bool {
		node := pod.GetLabels()[rayv1.LabelNodeType]
		return node == rayv1.NodeTypeHead || node == rayv1.NodeTypeSubmitter
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return matters(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return matters(e.ObjectNew) && changed(e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// changed tells whether a Pod has another phase, or one of its containers another life or readiness.
func changed(before, after client.Object) bool {
	old, wasPod := before.(*corev1.Pod)
	pod, isPod := after.(*corev1.Pod)
	if !wasPod || !isPod || old.Status.Phase != pod.Status.Phase || len(old.Status.ContainerStatuses) != len(pod.Status.ContainerStatuses) ||
		len(old.Status.Conditions) != len(pod.Status.Conditions) {
		return true
	}
	for i, s := range pod.Status.ContainerStatuses {
		was := old.Status.ContainerStatuses[i]
		if was.RestartCount != s.RestartCount || was.Ready != s.Ready || reasonOf(was) != reasonOf(s) || (was.State.Terminated == nil) != (s.State.Terminated == nil) {
			return true
		}
	}
	return false
}

// reasonOf is why a container waits, or empty.
func reasonOf(s corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	return s.State.Waiting.Reason
}
