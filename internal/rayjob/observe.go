package rayjob

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// Snapshot is all that one plan for a RayJob may know.
type Snapshot struct {
	// Job is nil when it is gone.
	Job *rayv1.RayJob
	// Cluster is the one that status.rayClusterName names, nil when there is none.
	Cluster *rayv1.RayCluster
	// ClusterService is the head Service of that cluster, nil when there is none yet.
	ClusterService *corev1.Service
	// HeadService is the job's own head Service, whoever owns it.
	HeadService *corev1.Service
	// Submitter is the Job of the RayJob's name, whoever owns it.
	Submitter *batchv1.Job
	// Answer is what Ray last said about the submission, nil when it was not asked yet.
	Answer *poll.Observation
	// Sent is what became of the last submission over HTTP, nil when none has ended.
	Sent *action.Outcome
	// Stopped is what became of the last request to stop the Ray job, nil when none has ended.
	Stopped *action.Outcome
	// Holds are the writes that failed lately, by the role of the object.
	Holds map[string]action.Hold
}

// observe reads the job and all that belongs to it from the caches, and the last answers of Ray from the poller. What Ray
// was asked before this term may be older than what another leader has recorded meanwhile, and is not looked at.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName, term time.Time) (Snapshot, error) {
	job := &rayv1.RayJob{}
	found, err := get(ctx, r.Reader, name, job)
	if err != nil || !found {
		return Snapshot{}, err
	}
	s := Snapshot{Job: job}
	in := func(object string) types.NamespacedName {
		return types.NamespacedName{Namespace: name.Namespace, Name: object}
	}

	if job.Status.RayClusterName != "" {
		cluster, service := &rayv1.RayCluster{}, &corev1.Service{}
		if found, err = get(ctx, r.Reader, in(job.Status.RayClusterName), cluster); err != nil {
			return Snapshot{}, err
		}
		if found {
			s.Cluster = cluster
		}
		if found && cluster.Status.Head.ServiceName != "" {
			if found, err = get(ctx, r.Reader, in(cluster.Status.Head.ServiceName), service); err != nil {
				return Snapshot{}, err
			}
			if found {
				s.ClusterService = service
			}
		}
	}
	head, submitter := &corev1.Service{}, &batchv1.Job{}
	if found, err = get(ctx, r.Reader, in(headServiceName(job)), head); err != nil {
		return Snapshot{}, err
	}
	if found {
		s.HeadService = head
	}
	if found, err = get(ctx, r.Reader, in(job.Name), submitter); err != nil {
		return Snapshot{}, err
	}
	if found {
		s.Submitter = submitter
	}
	if answer, ok := r.Poller.Observation(pollKey(name)); ok && !answer.Asked.Before(term) {
		s.Answer = &answer
	}
	s.Sent, s.Stopped = r.Executor.Ray.Outcomes(job.UID)
	s.Holds = r.Holds.Of(job.UID)
	return s, nil
}

// uids are the UIDs of all that the caches show of what the job owns.
func (s Snapshot) uids() []types.UID {
	var uids []types.UID
	if s.Cluster != nil {
		uids = append(uids, s.Cluster.UID)
	}
	if s.HeadService != nil {
		uids = append(uids, s.HeadService.UID)
	}
	if s.Submitter != nil {
		uids = append(uids, s.Submitter.UID)
	}
	return uids
}

func get(ctx context.Context, reader client.Reader, name types.NamespacedName, into client.Object) (bool, error) {
	err := reader.Get(ctx, name, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return true, nil
}

// PollKind is the kind under which RayJobs are known to the poller.
const PollKind = "RayJob"

// pollKey names the job to the poller.
func pollKey(name types.NamespacedName) poll.Key {
	return poll.Key{Kind: PollKind, NamespacedName: name}
}
