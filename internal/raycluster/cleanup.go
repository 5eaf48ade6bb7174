package raycluster

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

const (
	// deletionTimeout is how long a deletion may take before the cluster goes without its keys having been removed.
	deletionTimeout = 5 * time.Minute
	// maxStorages bounds how many places in Redis are remembered; the oldest are forgotten.
	maxStorages = 5
)

// storages are the places in Redis in which heads of the cluster have kept, or are about to keep, their state. They are
// recorded before a head is made, because the spec may name another one, or none, when the cluster is deleted.
func storages(cluster *rayv1.RayCluster) []rayv1.RedisStorage {
	all := slices.Clone(cluster.Status.RedisStorages)
	now := redisStorage(cluster)
	if now == nil {
		return all
	}
	i := slices.IndexFunc(all, func(s rayv1.RedisStorage) bool { return samePlace(s, *now) })
	if i >= 0 {
		// The credentials may have changed.
		all[i] = *now
		return all
	}
	all = append(all, *now)
	return all[max(0, len(all)-maxStorages):]
}

func samePlace(a, b rayv1.RedisStorage) bool {
	for _, name := range []string{envStorageNamespace, envRedisAddress} {
		if !equality.Semantic.DeepEqual(envNamed(a.Env, name), envNamed(b.Env, name)) {
			return false
		}
	}
	return true
}

// toEmpty are the storages that are to be emptied when the cluster is deleted. One inside of the head's own Pod goes with it.
func toEmpty(cluster *rayv1.RayCluster, settings Settings) []rayv1.RedisStorage {
	if !settings.RedisCleanup || cluster.Annotations[rayv1.AnnotationRedisStorage] == rayv1.RedisStorageRetain {
		return nil
	}
	return slices.DeleteFunc(storages(cluster), func(s rayv1.RedisStorage) bool {
		address := envNamed(s.Env, envRedisAddress)
		return address == nil || address.ValueFrom == nil && (address.Value == "" || isLoopback(address.Value))
	})
}

func isLoopback(address string) bool {
	u := redisURL(address)
	return u != nil && slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, u.Hostname())
}

// redisURL is the first of the addresses, nil when it is none.
func redisURL(addresses string) *url.URL {
	address, _, _ := strings.Cut(addresses, ",")
	address = strings.TrimSpace(address)
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return u
}

// withoutPassword is an address as it may be shown.
func withoutPassword(address string) string {
	u := redisURL(address)
	if u == nil || u.User == nil {
		return address
	}
	return u.Redacted()
}

// finalizer keeps the cluster, once it is deleted, until its keys are gone from Redis.
func (p *planner) finalizer() {
	wanted := len(toEmpty(p.cluster, p.settings)) > 0
	has := guarded(p.snapshot.Cluster)
	if wanted == has {
		return
	}
	p.again(nextStep) // neither the status nor a finalizer wakes anybody
	switch {
	case p.plan.Status != nil: // which changes the object that the finalizers are decided on
	case wanted:
		p.do(action.Finalizers{Object: p.snapshot.Cluster, Want: append(slices.Clone(p.snapshot.Cluster.Finalizers), rayv1.FinalizerGCSFTRedisCleanup),
			Why: "its keys must be removed from Redis before it may go"})
	default:
		p.do(action.Finalizers{Object: p.snapshot.Cluster, Want: p.otherFinalizers(), Why: "nothing is to be removed from Redis"})
	}
}

// guarded tells whether a cluster, once it is deleted, stays until its keys are gone from Redis.
func guarded(cluster *rayv1.RayCluster) bool {
	return slices.Contains(cluster.Finalizers, rayv1.FinalizerGCSFTRedisCleanup)
}

func (p *planner) otherFinalizers() []string {
	return slices.DeleteFunc(slices.Clone(p.snapshot.Cluster.Finalizers), func(f string) bool { return f == rayv1.FinalizerGCSFTRedisCleanup })
}

// awaitsFinalizer tells whether no head can be made now, because what it leaves in Redis would outlive the cluster. Where its
// state goes is recorded first, too.
func (p *planner) awaitsFinalizer() bool {
	recorded := equality.Semantic.DeepEqual(storages(p.cluster), slices.Clone(p.snapshot.Cluster.Status.RedisStorages))
	return !recorded || len(toEmpty(p.cluster, p.settings)) > 0 && !guarded(p.snapshot.Cluster)
}

// deleted takes a cluster down that has been deleted: its Pods, then its keys in Redis. The presence of the finalizer alone
// decides, and one deadline covers all of it. Everything else that belongs to the cluster goes by itself afterwards.
func (p *planner) deleted() {
	if !guarded(p.snapshot.Cluster) {
		return
	}
	left := p.cluster.DeletionTimestamp.Add(deletionLimit(p.cluster)).Sub(p.now)
	job, stranger := p.cleanupJob()
	switch storages := toEmpty(p.cluster, p.settings); {
	case len(storages) == 0:
		p.release("nothing is to be removed from Redis", nil)
	case jobHas(job, batchv1.JobComplete):
		p.release("its keys have been removed from Redis", nil)
	case jobHas(job, batchv1.JobFailed), jobHas(job, batchv1.JobFailureTarget):
		p.giveUp("RedisCleanupFailed", "the Job that empties Redis has failed", storages)
	case p.snapshot.Holds[objectKey(kindJob, cleanupJobName(p.cluster))].NamespaceEnds:
		p.giveUp("RedisCleanupFailed", "the namespace is being deleted, so nothing can be started in it any more", storages)
	case left <= 0:
		p.giveUp("ForceDeletedStuckCluster", fmt.Sprintf("the deletion took longer than %s: %s", deletionLimit(p.cluster), p.stuckOn(job, stranger)), storages)
	default:
		p.again(left)
		p.removePods()
		if job == nil && !stranger && !p.hasHead() {
			p.startCleanup(storages)
		}
	}
}

// deletionLimit is the time from the deletion to the end of the waiting, in whole seconds.
func deletionLimit(cluster *rayv1.RayCluster) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(cluster.Annotations[rayv1.AnnotationGCSFTDeletionTimeout]))
	if err != nil || seconds <= 0 || seconds > maxDeletionSeconds {
		return deletionTimeout
	}
	return time.Duration(seconds) * time.Second
}

// maxDeletionSeconds is a day.
const maxDeletionSeconds = 24 * 60 * 60

// cleanupJob is the Job that empties Redis, nil when there is none. stranger tells that something else has its name.
func (p *planner) cleanupJob() (job *batchv1.Job, stranger bool) {
	job, _ = p.snapshot.standing(kindJob, cleanupJobName(p.cluster)).(*batchv1.Job)
	if job == nil {
		return nil, p.snapshot.Holds[objectKey(kindJob, cleanupJobName(p.cluster))].Collision
	}
	ours := metav1.IsControlledBy(job, p.cluster) ||
		metav1.GetControllerOf(job) == nil && job.Labels[rayv1.LabelCluster] == p.cluster.Name && !job.CreationTimestamp.Before(p.cluster.DeletionTimestamp)
	if !ours {
		return nil, true
	}
	return job, false
}

func jobHas(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return job != nil && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func (p *planner) hasHead() bool {
	return slices.ContainsFunc(p.snapshot.Pods, func(pod *corev1.Pod) bool { return groupOf(pod) == rayv1.HeadGroupName })
}

// removePods deletes what runs: a head that lives writes to Redis.
func (p *planner) removePods() {
	for _, pod := range p.snapshot.Pods {
		if pod.DeletionTimestamp == nil {
			p.do(action.Delete{
				Object: pod, Why: "the cluster was deleted",
				Done:   action.Normal("DeletedPod", "Delete", "deleted Pods, because the cluster was deleted"),
				Failed: action.Warning("FailedToDeletePodCollection", "Delete", "cannot delete a Pod of the deleted cluster"),
			})
		}
	}
}

func (p *planner) startCleanup(storages []rayv1.RedisStorage) {
	account := p.cluster.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName
	job := cleanupJob(p.cluster, p.settings, storages, account != "" && p.snapshot.standing(kindServiceAccount, account) != nil)
	create := action.Create{
		Object: job, Identity: []string{rayv1.LabelCluster, rayv1.LabelNodeType}, Group: objectKey(kindJob, job.Name),
		Why:    "the head is gone, and its keys in Redis are to go",
		Done:   action.Normal("CreatedRedisCleanupJob", "Create", "created the Job that empties Redis"),
		Failed: action.Warning("FailedToCreateRedisCleanupJob", "Create", "cannot make the Job that empties Redis"),
	}
	if p.held(create.Key()) {
		p.again(p.snapshot.Holds[create.Key()].Until.Sub(p.now))
		return
	}
	p.do(create)
}

// stuckOn says what the deletion was waiting for.
func (p *planner) stuckOn(job *batchv1.Job, stranger bool) string {
	hold, refused := p.snapshot.Holds[objectKey(kindJob, cleanupJobName(p.cluster))]
	switch {
	case p.hasHead():
		return "the head Pod is still there"
	case stranger:
		return "Job " + cleanupJobName(p.cluster) + " belongs to someone else"
	case refused:
		return "the Job that empties Redis cannot be made: " + hold.Message
	case job != nil:
		return "Job " + job.Name + " has not ended"
	default:
		return "the Job that empties Redis was never started"
	}
}

func (p *planner) giveUp(reason, why string, storages []rayv1.RedisStorage) {
	names := make([]string, len(storages))
	for i := range storages {
		names[i] = describeStorage(storages[i])
	}
	note := why + "; what may remain: " + strings.Join(names, ", ")
	p.release(note, action.Warning(reason, "Cleanup", note))
}

func (p *planner) release(why string, event *action.Event) {
	p.do(action.Finalizers{Object: p.snapshot.Cluster, Want: p.otherFinalizers(), Why: why})
	if event != nil {
		p.plan.Events = append(p.plan.Events, *event)
	}
}
