package rayjob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

// Snapshot is all that one plan for a RayJob may know.
type Snapshot struct {
	// Job is nil when it is gone.
	Job *rayv1.RayJob
	// LastValid is the last spec of the job that was valid, nil when none is known.
	LastValid *rayv1.RayJobSpec
	// Cluster is the one that status.rayClusterName names, nil when there is none.
	Cluster *rayv1.RayCluster
	// ClusterService is the head Service of that cluster, nil when there is none yet.
	ClusterService *corev1.Service
	// Head is the head Pod of that cluster: the one that takes the job, if it is still there, else any. Nil if there is none.
	Head *corev1.Pod
	// Pods are all Pods of the job's own cluster, while it is taken down; otherwise it is empty.
	Pods []*corev1.Pod
	// HeadService is the job's own head Service, whoever owns it.
	HeadService *corev1.Service
	// Submitter is the Job of the RayJob's name, whoever owns it.
	Submitter *batchv1.Job
	// SubmitterPods are the Pods of submitters of a RayJob of this name.
	SubmitterPods []*corev1.Pod
	// Answer is what Ray last said about the submission, nil when it was not asked yet.
	Answer *poll.Observation
	// Sent is what became of the last submission over HTTP, nil when none has ended.
	Sent *action.Outcome
	// Stopped is what became of the last request to stop the Ray job, nil when none has ended.
	Stopped *action.Outcome
	// Sending tells whether a request to Ray for the job is under way.
	Sending bool
	// Holds are the writes that failed lately, by the role of the object.
	Holds map[string]action.Hold
	// FirstSeen is since when this process has seen a fact without a break.
	FirstSeen map[fact]time.Time
}

// firstSeen is since when this process has seen a fact; now, if it has not seen it before.
func (s Snapshot) firstSeen(f fact, now time.Time) time.Time {
	if since, ok := s.FirstSeen[f]; ok {
		return since
	}
	return now
}

// about returns an outcome if it is that of the attempt which a status describes, else nil.
func about(outcome *action.Outcome, st *rayv1.RayJobStatus) *action.Outcome {
	if outcome == nil || outcome.ID != st.JobId || outcome.BaseURL != addressOf(st) {
		return nil
	}
	return outcome
}

// addressOf is that of the dashboard of the attempt's cluster.
func addressOf(st *rayv1.RayJobStatus) string { return "http://" + st.DashboardURL }

// mode is the way in which the present attempt gets to Ray. Edits of the spec matter to the next one.
func (s Snapshot) mode() rayv1.JobSubmissionMode {
	if begun := s.Job.Status.SubmissionMode; begun != "" {
		return begun
	}
	return s.Job.Spec.SubmissionMode
}

// hasSubmitter tells whether there is a submitter Job of ours, whatever the mode is by now.
func (s Snapshot) hasSubmitter() bool {
	return s.Submitter != nil && metav1.IsControlledBy(s.Submitter, s.Job)
}

// sidecar is the state of the container of the head Pod that submits in SidecarMode, nil when there is none.
func (s Snapshot) sidecar() *corev1.ContainerStatus {
	if s.Head == nil || s.mode() != rayv1.SidecarMode {
		return nil
	}
	for i, status := range s.Head.Status.ContainerStatuses {
		if status.Name == ray.SubmitterContainer {
			return &s.Head.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Observe reads what a plan for a RayJob is made from, for somebody who looks once and is no operator: what Ray has said, what
// has become of requests to it, and since when an operator has seen what is there, is not known. See Foresee. A job that is not
// there gives an empty Snapshot.
func Observe(ctx context.Context, reader client.Reader, name types.NamespacedName, settings Settings, now time.Time) (Snapshot, error) {
	s, err := observe(ctx, reader, name)
	if err != nil || s.Job == nil {
		return s, err
	}
	memory := NewMemory()
	s.LastValid = memory.lastValid(s.Job, settings)
	s.FirstSeen = memory.note(s, now)
	return s, nil
}

// observe reads the job and all that belongs to it from the caches, and the last answers of Ray from the poller. What Ray
// was asked before this term may be older than what another leader has recorded meanwhile, and is not looked at.
func (r *Reconciler) observe(ctx context.Context, name types.NamespacedName, term time.Time) (Snapshot, error) {
	s, err := observe(ctx, r.Reader, name)
	if err != nil || s.Job == nil {
		return s, err
	}
	if answer, ok := r.Poller.Observation(pollKey(name)); ok && !answer.Asked.Before(term) {
		s.Answer = &answer
	}
	s.Sent, s.Stopped, s.Sending = r.Executor.Ray.Outcomes(s.Job.UID)
	s.Holds = r.Holds.Of(s.Job.UID)
	return s, nil
}

// observe reads the job and all that belongs to it.
func observe(ctx context.Context, reader client.Reader, name types.NamespacedName) (Snapshot, error) {
	s := Snapshot{}
	var err error
	if s.Job, err = get(ctx, reader, name, &rayv1.RayJob{}); err != nil || s.Job == nil {
		return Snapshot{}, err
	}
	in := func(object string) types.NamespacedName {
		return types.NamespacedName{Namespace: name.Namespace, Name: object}
	}
	if err := s.observeCluster(ctx, reader); err != nil {
		return Snapshot{}, err
	}
	if s.HeadService, err = get(ctx, reader, in(headServiceName(s.Job)), &corev1.Service{}); err != nil {
		return Snapshot{}, err
	}
	if s.Submitter, err = get(ctx, reader, in(s.Job.Name), &batchv1.Job{}); err != nil {
		return Snapshot{}, err
	}
	submitters := client.MatchingLabels{rayv1.LabelNodeType: rayv1.NodeTypeSubmitter, rayv1.LabelOriginatedFromName: s.Job.Name}
	if s.SubmitterPods, err = pods(ctx, reader, name.Namespace, submitters); err != nil {
		return Snapshot{}, err
	}
	return s, nil
}

// observeCluster reads the cluster that the status names, with what of it matters to the job.
func (s *Snapshot) observeCluster(ctx context.Context, reader client.Reader) error {
	name := s.Job.Status.RayClusterName
	if name == "" {
		return nil
	}
	namespace := s.Job.Namespace
	var err error
	if s.Cluster, err = get(ctx, reader, types.NamespacedName{Namespace: namespace, Name: name}, &rayv1.RayCluster{}); err != nil {
		return err
	}
	if s.Cluster != nil && s.Cluster.Status.Head.ServiceName != "" {
		service := types.NamespacedName{Namespace: namespace, Name: s.Cluster.Status.Head.ServiceName}
		if s.ClusterService, err = get(ctx, reader, service, &corev1.Service{}); err != nil {
			return err
		}
	}
	heads, err := pods(ctx, reader, namespace, client.MatchingLabels{rayv1.LabelCluster: name, rayv1.LabelNodeType: rayv1.NodeTypeHead})
	if err != nil {
		return err
	}
	s.Head = headOf(heads, s.Job.Status.Submission)
	state := s.Job.Status.JobDeploymentStatus
	takenDown := state == rayv1.JobDeploymentStatusSuspending || state == rayv1.JobDeploymentStatusRetrying
	if !takenDown || !madeFor(s.Job, s.Cluster) {
		return nil
	}
	s.Pods, err = pods(ctx, reader, namespace, client.MatchingLabels{rayv1.LabelCluster: name})
	return err
}

// madeFor tells whether the cluster that a job's status names was made for it. Of one that is gone only the name tells.
func madeFor(job *rayv1.RayJob, cluster *rayv1.RayCluster) bool {
	if cluster != nil {
		return metav1.IsControlledBy(cluster, job)
	}
	name := job.Status.RayClusterName
	return name != job.Spec.ClusterSelector[rayv1.LabelCluster] && strings.HasPrefix(name, job.Name+"-")
}

// headOf picks the head Pod that takes the job, if it is known and there, else one that is not on its way out.
func headOf(heads []*corev1.Pod, submission *rayv1.RayJobSubmission) *corev1.Pod {
	var head *corev1.Pod
	for _, pod := range heads {
		if submission != nil && pod.UID == submission.HeadPodUID {
			return pod
		}
		if head == nil || pod.DeletionTimestamp == nil {
			head = pod
		}
	}
	return head
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

func pods(ctx context.Context, reader client.Reader, namespace string, labels client.MatchingLabels) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, fmt.Errorf("list Pods of namespace %s with labels %v: %w", namespace, labels, err)
	}
	found := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	// The caches give them in any order.
	slices.SortFunc(found, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// PollKind is the kind under which RayJobs are known to the poller.
const PollKind = "RayJob"

// pollKey names the job to the poller.
func pollKey(name types.NamespacedName) poll.Key {
	return poll.Key{Kind: PollKind, NamespacedName: name}
}
