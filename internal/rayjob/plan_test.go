package rayjob

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

var (
	now      = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	settings = Settings{ClusterDomain: "cluster.local", StatusCheckTimeout: 5 * time.Minute}
)

// given returns a snapshot of a RayJob in the given state, with its finalizer, changed by edits.
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
		job.Status = rayv1.RayJobStatus{JobDeploymentStatus: state, JobId: "train-x7k2m", RayClusterName: "train-bcd4f",
			StartTime: ptr.To(metav1.NewTime(now.Add(-time.Minute))), Failed: ptr.To[int32](0), Succeeded: ptr.To[int32](0),
			ObservedGeneration: 1}
	}
	s := Snapshot{Job: job}
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
		if s.Job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusRunning {
			s.Job.Status.DashboardURL = "train-bcd4f-head-svc.ml.svc.cluster.local:8265"
			s.HeadService = jobHeadService(s.Job, s.ClusterService)
		}
	}
}

func answer(edit func(*poll.Observation)) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Answer = &poll.Observation{Target: poll.Target{OwnerUID: s.Job.UID, SubmissionID: s.Job.Status.JobId}, Answered: now}
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

func submitter(condition batchv1.JobConditionType, at time.Time) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Submitter = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "submitter-uid",
			OwnerReferences: []metav1.OwnerReference{ownerReference(s.Job)}}}
		if condition != "" {
			s.Submitter.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
		}
	}
}

func knownAs(status rayv1.JobStatus) func(*Snapshot) {
	return func(s *Snapshot) { s.Job.Status.JobStatus = status }
}

func spec(edit func(*rayv1.RayJobSpec)) func(*Snapshot) {
	return func(s *Snapshot) { edit(&s.Job.Spec) }
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

func TestPlanMovesTheJob(t *testing.T) {
	running := rayv1.JobDeploymentStatusRunning
	for name, tc := range map[string]struct {
		given      Snapshot
		wantState  rayv1.JobDeploymentStatus
		wantReason rayv1.JobFailedReason
		want       []string
	}{
		"the finalizer comes before anything else": {
			given:     given("", func(s *Snapshot) { s.Job.Finalizers = nil }),
			wantState: "", want: []string{"finalizers " + rayv1.FinalizerRayJob},
		},
		"names are recorded before anything is made under them": {
			given: given(""), wantState: rayv1.JobDeploymentStatusInitializing,
		},
		"a job without a cluster gets one": {
			given:     given(rayv1.JobDeploymentStatusInitializing),
			wantState: rayv1.JobDeploymentStatusInitializing, want: []string{"create train-bcd4f"},
		},
		"a cluster that is not ready is waited for": {
			given:     given(rayv1.JobDeploymentStatusInitializing, cluster(rayv1.ClusterStateNew)),
			wantState: rayv1.JobDeploymentStatusInitializing,
		},
		"a ready cluster lets the job run": {
			given: given(rayv1.JobDeploymentStatusInitializing, cluster(rayv1.ClusterStateReady)), wantState: running,
		},
		"a foreign cluster under our computed name is left alone": {
			given: given(rayv1.JobDeploymentStatusInitializing, cluster(rayv1.ClusterStateReady),
				func(s *Snapshot) { s.Cluster.OwnerReferences[0].UID = "another" }),
			wantState: rayv1.JobDeploymentStatusInitializing,
		},
		"the submitter is made while Ray has not answered yet": {
			given: given(running, cluster(rayv1.ClusterStateReady)), wantState: running, want: []string{"create train"},
		},
		"the submitter is not made again for a job that Ray knew": {
			given:     given(running, cluster(rayv1.ClusterStateReady), knownAs(rayv1.JobStatusRunning)),
			wantState: running,
		},
		"HTTPMode submits when Ray does not know the job": {
			given:     given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(rayDoesNotKnow)),
			wantState: running, want: []string{"submit train-x7k2m"},
		},
		"HTTPMode does not submit before Ray was asked": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady)), wantState: running,
		},
		"HTTPMode waits for a look after a submission that Ray took": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(rayDoesNotKnow),
				func(s *Snapshot) {
					s.Sent = &action.Outcome{SubmissionID: "train-x7k2m", At: now.Add(time.Millisecond)}
				}),
			wantState: running,
		},
		"HTTPMode fails with Ray's words when Ray refuses the job": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(rayDoesNotKnow),
				func(s *Snapshot) {
					s.Sent = &action.Outcome{SubmissionID: "train-x7k2m", At: now, Err: dashboard.ErrRefused}
				}),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.SubmissionFailed,
		},
		"HTTPMode tries again some seconds after an answer that settles nothing": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(rayDoesNotKnow), func(s *Snapshot) {
				s.Sent = &action.Outcome{SubmissionID: "train-x7k2m", At: now.Add(-resubmitAfter), Err: dashboard.ErrNoAgent}
			}),
			wantState: running, want: []string{"submit train-x7k2m"},
		},
		"a job that Ray took and lost is never run a second time in silence": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(rayDoesNotKnow),
				func(s *Snapshot) { s.Sent = &action.Outcome{SubmissionID: "train-x7k2m", At: now.Add(-time.Second)} }),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.AppFailed,
		},
		"a job that Ray knew before and does not know now is lost": {
			given:     given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), knownAs(rayv1.JobStatusRunning), answer(rayDoesNotKnow)),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.AppFailed,
		},
		"an answer about an earlier attempt counts for nothing": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(rayDoesNotKnow),
				func(s *Snapshot) { s.Answer.Target.SubmissionID = "older" }),
			wantState: running,
		},
		"a failed submitter is no verdict while Ray runs the job": {
			given:     given(running, cluster(rayv1.ClusterStateReady), submitter(batchv1.JobFailed, now), answer(raySays(dashboard.JobRunning))),
			wantState: running,
		},
		"a failed submitter ends the attempt when Ray does not know the job": {
			given:     given(running, cluster(rayv1.ClusterStateReady), submitter(batchv1.JobFailed, now), answer(rayDoesNotKnow)),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.SubmissionFailed,
		},
		"success waits for the submitter to print the rest of the log": {
			given:     given(running, cluster(rayv1.ClusterStateReady), submitter("", now), answer(raySays(dashboard.JobSucceeded))),
			wantState: running,
		},
		"success with an ended submitter completes": {
			given:     given(running, cluster(rayv1.ClusterStateReady), submitter(batchv1.JobComplete, now), answer(raySays(dashboard.JobSucceeded))),
			wantState: rayv1.JobDeploymentStatusComplete,
		},
		"a stopped job completes, as clients expect": {
			given:     given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(raySays(dashboard.JobStopped))),
			wantState: rayv1.JobDeploymentStatusComplete,
		},
		"a failed job fails": {
			given:     given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(raySays(dashboard.JobFailed))),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.AppFailed,
		},
		"a recorded success stands even if the cluster is gone": {
			given:     given(running, mode(rayv1.HTTPMode), knownAs(rayv1.JobStatusSucceeded)),
			wantState: rayv1.JobDeploymentStatusComplete,
		},
		"silence of Ray is borne for a while": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(func(o *poll.Observation) {
				o.Err, o.FailingSince = errors.New("refused"), now.Add(-time.Minute)
			})),
			wantState: running,
		},
		"silence of Ray for too long ends the attempt": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(func(o *poll.Observation) {
				o.Err, o.FailingSince = errors.New("refused"), now.Add(-6*time.Minute)
			})),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.JobStatusCheckTimeoutExceeded,
		},
		"a passed deadline stops the Ray job": {
			given:     given(running, cluster(rayv1.ClusterStateReady), spec(func(s *rayv1.RayJobSpec) { s.ActiveDeadlineSeconds = ptr.To[int32](30) })),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.DeadlineExceeded, want: []string{"stop train-x7k2m"},
		},
		"a failed attempt with a retry left is torn down": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(raySays(dashboard.JobFailed)),
				spec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](1) })),
			wantState: rayv1.JobDeploymentStatusRetrying, wantReason: rayv1.AppFailed,
		},
		"retrying deletes cluster and submitter first": {
			given:     given(rayv1.JobDeploymentStatusRetrying, cluster(rayv1.ClusterStateReady), submitter("", now)),
			wantState: rayv1.JobDeploymentStatusRetrying, want: []string{"delete train-bcd4f", "delete train"},
		},
		"retrying starts over when both are gone": {
			given: given(rayv1.JobDeploymentStatusRetrying), wantState: rayv1.JobDeploymentStatusNew,
		},
		"suspend gives the cluster up": {
			given:     given(running, cluster(rayv1.ClusterStateReady), spec(func(s *rayv1.RayJobSpec) { s.Suspend = true })),
			wantState: rayv1.JobDeploymentStatusSuspending, want: []string{"stop train-x7k2m"},
		},
		"a finished job keeps its cluster unless told otherwise": {
			given: given(rayv1.JobDeploymentStatusComplete, cluster(rayv1.ClusterStateReady)), wantState: rayv1.JobDeploymentStatusComplete,
		},
		"shutdownAfterJobFinishes deletes the cluster after the TTL": {
			given: given(rayv1.JobDeploymentStatusComplete, cluster(rayv1.ClusterStateReady), func(s *Snapshot) {
				s.Job.Spec.ShutdownAfterJobFinishes, s.Job.Spec.TTLSecondsAfterFinished = true, 10
				s.Job.Status.EndTime = ptr.To(metav1.NewTime(now.Add(-10 * time.Second)))
			}),
			wantState: rayv1.JobDeploymentStatusComplete, want: []string{"delete train-bcd4f"},
		},
		"a selected cluster is never deleted": {
			given: given(rayv1.JobDeploymentStatusComplete, cluster(rayv1.ClusterStateReady), func(s *Snapshot) {
				s.Job.Spec.ShutdownAfterJobFinishes = true
				s.Job.Spec.ClusterSelector = map[string]string{rayv1.LabelCluster: "train-bcd4f"}
				s.Job.Status.EndTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
			}),
			wantState: rayv1.JobDeploymentStatusComplete,
		},
		"deletion stops the Ray job and lets go": {
			given:     given(running, cluster(rayv1.ClusterStateReady), func(s *Snapshot) { s.Job.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }),
			wantState: running, want: []string{"stop train-x7k2m", "finalizers "},
		},
		"a spec that makes no sense is said and nothing is made": {
			given:     given("", spec(func(s *rayv1.RayJobSpec) { s.TTLSecondsAfterFinished = -1 })),
			wantState: rayv1.JobDeploymentStatusValidationFailed, wantReason: rayv1.ValidationFailed,
		},
		"an unknown submission mode is said": {
			given:     given("", mode("CarrierPigeon")),
			wantState: rayv1.JobDeploymentStatusValidationFailed, wantReason: rayv1.ValidationFailed,
		},
		"a corrected spec leaves ValidationFailed": {
			given: given(rayv1.JobDeploymentStatusValidationFailed), wantState: rayv1.JobDeploymentStatusInitializing,
		},
		"a job that is managed by another controller is left alone": {
			given: given("", spec(func(s *rayv1.RayJobSpec) { s.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })), wantState: "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			decision := Plan(tc.given, settings, now)
			got := tc.given.Job.Status
			if decision.Status != nil {
				got = decision.Status.Object.(*rayv1.RayJob).Status
			}
			if got.JobDeploymentStatus != tc.wantState || got.Reason != tc.wantReason {
				t.Errorf("state %q reason %q, want %q %q (message %q)", got.JobDeploymentStatus, got.Reason, tc.wantState, tc.wantReason, got.Message)
			}
			if diff := cmp.Diff(tc.want, verbs(decision.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
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

func TestSubmitScript(t *testing.T) {
	s := given(rayv1.JobDeploymentStatusRunning, cluster(rayv1.ClusterStateReady), spec(func(s *rayv1.RayJobSpec) {
		s.Metadata = map[string]string{"team": "a"}
		s.EntrypointNumCpus = 1
		s.RuntimeEnvYAML = "env_vars:\n  PRICE: \"$5\"\n"
	}))
	got, err := submitScript(s.Job)
	if err != nil {
		t.Fatal(err)
	}
	address := "http://train-bcd4f-head-svc.ml.svc.cluster.local:8265"
	for _, want := range []string{
		"if ! ray job status --address " + address + " train-x7k2m >/dev/null 2>&1 ; then",
		"ray job submit --address " + address + ` --no-wait --runtime-env-json "{\"env_vars\":{\"PRICE\":\"\$5\"}}" --metadata-json "{\"team\":\"a\"}"` +
			" --submission-id train-x7k2m --entrypoint-num-cpus 1.000000 -- python main.py ; fi ;",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the script lacks\n%s\nit is\n%s", want, got)
		}
	}
	if !strings.HasSuffix(got, "ray job logs --address "+address+" --follow train-x7k2m") {
		t.Errorf("the script must end by following the log: %s", got)
	}
}
