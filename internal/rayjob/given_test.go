package rayjob

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

var (
	now      = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	settings = Settings{ClusterDomain: "cluster.local", StatusCheckTimeout: 5 * time.Minute, TransitionGrace: 5 * time.Minute, DeletionPolicy: true}
)

// given returns a snapshot of a RayJob in the given state, with its finalizer, changed by edits. A running job was recorded,
// and Ray has not confirmed it yet.
func given(state rayv1.JobDeploymentStatus, edits ...func(*Snapshot)) Snapshot {
	job := &rayv1.RayJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "job-uid", Generation: 1,
			Finalizers: []string{rayv1.FinalizerRayJob}},
		Spec: rayv1.RayJobSpec{
			Entrypoint: "python main.py", SubmissionMode: rayv1.K8sJobMode,
			RayClusterSpec: &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-head", Image: "img:1"}}}}}},
		},
	}
	if state != rayv1.JobDeploymentStatusNew {
		job.Status = rayv1.RayJobStatus{JobDeploymentStatus: state, JobId: "train-x7k2m", RayClusterName: "train-bcd4f", Attempt: 1,
			StartTime: ptr.To(metav1.NewTime(now.Add(-time.Minute))), Failed: ptr.To[int32](0), Succeeded: ptr.To[int32](0),
			ObservedGeneration: 1}
	}
	switch state {
	case rayv1.JobDeploymentStatusRunning, rayv1.JobDeploymentStatusComplete, rayv1.JobDeploymentStatusFailed:
		job.Status.Submission = &rayv1.RayJobSubmission{HeadPod: "head", HeadPodUID: "head-uid", SessionName: "session_1"}
	}
	s := Snapshot{Job: job, FirstSeen: map[fact]time.Time{}}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

func mode(m rayv1.JobSubmissionMode) func(*Snapshot) {
	return func(s *Snapshot) { s.Job.Spec.SubmissionMode = m }
}

// cluster adds the job's cluster and its head Service.
func cluster(state rayv1.ClusterState) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Cluster = &rayv1.RayCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train-bcd4f", UID: "cluster-uid", OwnerReferences: []metav1.OwnerReference{ownerReference(s.Job)}},
			Spec:       *s.Job.Spec.RayClusterSpec,
			Status:     rayv1.RayClusterStatus{State: state, Head: rayv1.HeadInfo{ServiceName: "train-bcd4f-head-svc"}},
		}
		s.ClusterService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train-bcd4f-head-svc"},
			Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "dashboard", Port: 8265}}}}
		s.Head = headPod("head-uid")
		if s.Job.Status.Submission != nil {
			s.Job.Status.DashboardURL = "train-bcd4f-head-svc.ml.svc.cluster.local:8265"
			s.HeadService = action.Stamp(jobHeadService(s.Job, s.ClusterService)).(*corev1.Service)
		}
	}
}

// dashboardAt is the dashboard of the job's cluster.
const dashboardAt = "http://train-bcd4f-head-svc.ml.svc.cluster.local:8265"

func headPod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "head", UID: uid},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-head"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "ray-head",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
}

// head changes the head Pod.
func head(edit func(*corev1.Pod)) func(*Snapshot) {
	return func(s *Snapshot) { edit(s.Head) }
}

// confirmed means that Ray has said that it has the job.
func confirmed(s *Snapshot) {
	s.Job.Status.Submission.ConfirmedTime = ptr.To(metav1.NewTime(now.Add(-30 * time.Second)))
	s.Job.Status.JobStatus = rayv1.JobStatusRunning
}

// seen means that this process has seen a fact for so long.
func seen(f fact, ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) { s.FirstSeen[f] = now.Add(-ago) }
}

// onSharedCluster puts the job on a cluster of somebody else's.
func onSharedCluster(s *Snapshot) {
	s.Job.Spec.ClusterSelector = map[string]string{rayv1.LabelCluster: "train-bcd4f"}
	if s.Cluster != nil {
		s.Cluster.OwnerReferences = nil
	}
}

func stoppingFor(reason string) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Job.Status.Stopping = &rayv1.RayJobStopping{Reason: reason, Since: metav1.NewTime(now.Add(-time.Second)), Message: "too late"}
	}
}

func answer(edit func(*poll.Observation)) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Answer = &poll.Observation{Target: poll.Target{OwnerUID: s.Job.UID, SubmissionID: s.Job.Status.JobId, BaseURL: dashboardAt}, Asked: now, Answered: now, SessionName: "session_1"}
		edit(s.Answer)
	}
}

func rayDoesNotKnow(o *poll.Observation) { o.JobFound = poll.Missing }

func raySays(status dashboard.JobStatus) func(*poll.Observation) {
	return func(o *poll.Observation) {
		o.JobFound = poll.Found
		o.Job = &dashboard.JobDetails{Status: status, Message: "said Ray", StartTime: now.Add(-30 * time.Second)}
		if status.Terminal() {
			o.Job.EndTime = now.Add(-time.Second)
		}
	}
}

func submitter(condition batchv1.JobConditionType) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Submitter = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "submitter-uid",
			OwnerReferences: []metav1.OwnerReference{ownerReference(s.Job)}}}
		if condition != "" {
			s.Submitter.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue}}
		}
	}
}

func deletedAt(at time.Time) func(*Snapshot) {
	return func(s *Snapshot) { s.Job.DeletionTimestamp = ptr.To(metav1.NewTime(at)) }
}

func stopped(err error) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Stopped = &action.Outcome{BaseURL: dashboardAt, ID: "train-x7k2m", At: now, Err: err}
	}
}

func knownAs(status rayv1.JobStatus) func(*Snapshot) {
	return func(s *Snapshot) { s.Job.Status.JobStatus = status }
}

// verbs names the actions of a plan in the form "create RayCluster".
func verbs(actions []action.Action) []string {
	var names []string
	for _, a := range actions {
		switch a := a.(type) {
		case action.Create:
			names = append(names, "create "+a.Object.GetName())
		case action.Apply:
			names = append(names, "apply "+a.Object.GetName())
		case action.Delete:
			names = append(names, "delete "+a.Object.GetName())
		case action.Update:
			names = append(names, "update "+a.Object.GetName())
		case action.Finalizers:
			names = append(names, "finalizers "+strings.Join(a.Want, ","))
		case action.Submit:
			names = append(names, "submit "+a.Request.SubmissionID)
		case action.Stop:
			names = append(names, "stop "+a.SubmissionID)
		}
	}
	return names
}

func TestPlanIsSilentWhenNothingChanges(t *testing.T) {
	s := given(rayv1.JobDeploymentStatusRunning, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(raySays(dashboard.JobRunning)))
	first := Plan(s, settings, now)
	s.Job = first.Status.Object.(*rayv1.RayJob)
	second := Plan(s, settings, now.Add(time.Second))
	if second.Status != nil || len(second.Actions) > 0 || len(second.Events) > 0 {
		t.Errorf("a second pass over the same facts wants writes: %+v", second.Plan)
	}
	if second.Ask == nil {
		t.Error("a running job must go on being asked for")
	}
}
