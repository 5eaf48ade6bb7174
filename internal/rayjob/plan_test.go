package rayjob

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

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
		"deletion stops the Ray job first": {
			given:     given(running, cluster(rayv1.ClusterStateReady), deletedAt(now)),
			wantState: running, want: []string{"stop train-x7k2m"},
		},
		"deletion lets go when Ray has confirmed the stop": {
			given:     given(running, cluster(rayv1.ClusterStateReady), deletedAt(now), stopped(nil)),
			wantState: running, want: []string{"finalizers "},
		},
		"deletion asks again when the stop did not reach Ray": {
			given:     given(running, cluster(rayv1.ClusterStateReady), deletedAt(now), stopped(errors.New("refused"))),
			wantState: running, want: []string{"stop train-x7k2m"},
		},
		"deletion does not wait for Ray for ever": {
			given:     given(running, cluster(rayv1.ClusterStateReady), deletedAt(now.Add(-time.Minute))),
			wantState: running, want: []string{"finalizers "},
		},
		"deletion lets go at once when nothing can run": {
			given:     given(rayv1.JobDeploymentStatusInitializing, deletedAt(now)),
			wantState: rayv1.JobDeploymentStatusInitializing, want: []string{"finalizers "},
		},
		"a refused cluster is held back": {
			given: given(rayv1.JobDeploymentStatusInitializing, func(s *Snapshot) {
				s.Holds = map[string]action.Hold{roleCluster: {Message: "exceeded quota", Until: now.Add(time.Minute)}}
			}),
			wantState: rayv1.JobDeploymentStatusInitializing,
		},
		"a foreign Job under the submitter's name ends the attempt": {
			given: given(running, cluster(rayv1.ClusterStateReady), func(s *Snapshot) {
				s.Holds = map[string]action.Hold{roleSubmitter: {Collision: true, Until: now.Add(time.Minute)}}
			}),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.SubmissionFailed,
		},
		"a spec that was edited into nonsense before the cluster was made is said": {
			given: given(rayv1.JobDeploymentStatusInitializing, spec(func(s *rayv1.RayJobSpec) {
				s.RayClusterSpec, s.ClusterSelector = nil, map[string]string{"foo": "bar"}
			})),
			wantState: rayv1.JobDeploymentStatusValidationFailed, wantReason: rayv1.ValidationFailed,
		},
		"a predecessor's record of silence is no verdict by itself": {
			given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), answer(func(o *poll.Observation) {
				o.Err, o.FailingSince = errors.New("refused"), now.Add(-time.Second)
			}), func(s *Snapshot) {
				s.Job.Status.JobStatusCheckFailureStartTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
			}),
			wantState: running,
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
