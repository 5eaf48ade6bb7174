package raycronjob

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// Snapshot is all that one plan for a RayCronJob may know.
type Snapshot struct {
	// Cron is nil when it is gone.
	Cron *rayv1.RayCronJob
	// Runs are the RayJobs that it controls, from the oldest tick to the newest.
	Runs []*rayv1.RayJob
	// Orphans are RayJobs of a RayCronJob of this name that is gone; they wait for their tick to be recorded.
	Orphans []*rayv1.RayJob
	// Holds are the writes that failed lately.
	Holds map[string]action.Hold
}

// Observe reads what a plan for a RayCronJob is made from, for somebody who looks once and is no operator: writes that were
// refused lately are not known. See Foresee. Without the RayCronJob and RayJobs of it the Snapshot is empty.
func Observe(ctx context.Context, reader client.Reader, name types.NamespacedName) (Snapshot, error) {
	return observe(ctx, reader, name)
}

// observe reads the RayCronJob and its RayJobs from the caches.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName) (Snapshot, error) {
	s, err := observe(ctx, r.Reader, name)
	if s.Cron != nil {
		s.Holds = r.Holds.Of(s.Cron.UID)
	}
	return s, err
}

// observe reads the RayCronJob and its RayJobs.
func observe(ctx context.Context, reader client.Reader, name types.NamespacedName) (Snapshot, error) {
	var s Snapshot
	cron := &rayv1.RayCronJob{}
	switch err := reader.Get(ctx, name, cron); {
	case err == nil:
		s.Cron = cron
	case !apierrors.IsNotFound(err):
		return Snapshot{}, fmt.Errorf("read RayCronJob %s: %w", name, err)
	}
	jobs := &rayv1.RayJobList{}
	// Most of the namespace may be others' RayJobs, so only ours are copied.
	if err := reader.List(ctx, jobs, client.InNamespace(name.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return Snapshot{}, fmt.Errorf("list the RayJobs of namespace %s: %w", name.Namespace, err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		owner := ownerOf(job)
		switch {
		case owner == nil || owner.Name != name.Name:
		case s.Cron != nil && owner.UID == s.Cron.UID:
			s.Runs = append(s.Runs, job.DeepCopy())
		case slices.Contains(job.Finalizers, rayv1.FinalizerRayCronJobTick):
			s.Orphans = append(s.Orphans, job.DeepCopy())
		}
	}
	slices.SortFunc(s.Runs, byTick)
	return s, nil
}

// ownerOf is the RayCronJob that controls a RayJob, or nil.
func ownerOf(job *rayv1.RayJob) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != rayv1.KindRayCronJob {
		return nil
	}
	return owner
}

// uids are the UIDs of all that the caches show of what the RayCronJob owns.
func (s Snapshot) uids() []types.UID {
	var uids []types.UID
	for _, run := range s.Runs {
		uids = append(uids, run.UID)
	}
	return uids
}
