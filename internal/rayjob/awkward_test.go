package rayjob

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// next is the status after one pass.
func next(s Snapshot) rayv1.RayJobStatus {
	decision := Plan(s, settings, now)
	if decision.Status == nil {
		return s.Job.Status
	}
	return decision.Status.Object.(*rayv1.RayJob).Status
}

func begunIn(m rayv1.JobSubmissionMode) func(*Snapshot) {
	return func(s *Snapshot) { s.Job.Status.SubmissionMode = m }
}

func submitterPod(s *Snapshot) {
	s.SubmitterPods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "train-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}}
}

func noHead(s *Snapshot) { s.Head = nil }

func TestPlanBearsWhatHappensInBetween(t *testing.T) {
	failed, complete, suspending := rayv1.JobDeploymentStatusFailed, rayv1.JobDeploymentStatusComplete, rayv1.JobDeploymentStatusSuspending
	succeeded := answer(raySays(dashboard.JobSucceeded))
	late := []func(*Snapshot){ready, deadline(30), stoppingFor(string(rayv1.DeadlineExceeded)), seen(seenStopping, 10*time.Second)}
	stopping := func(edits ...func(*Snapshot)) Snapshot {
		return given(running, append(slices.Clone(late), edits...)...)
	}
	runSteps(t, map[string]step{
		"a chosen id that an earlier attempt has sent to another head is sent to this one": {
			given:     given(running, overHTTP, ready, answer(rayDoesNotKnow), sent(nil, time.Minute), func(s *Snapshot) { s.Sent.BaseURL = "http://earlier" }),
			wantState: running, want: []string{"submit train-x7k2m"}},
		"a success that was heard stands although the head is gone": {
			given: given(running, overHTTP, ready, confirmed, succeeded, noHead), wantState: complete},
		"and although Ray does not answer any more": {
			given: given(running, overHTTP, ready, confirmed, succeeded, func(s *Snapshot) { s.Answer.Err = errors.New("refused") }), wantState: complete},
		"but not if a later head says it": {
			given: given(running, overHTTP, ready, confirmed, succeeded, func(s *Snapshot) { s.Answer.SessionName = "session_2" }), wantState: failed, wantReason: rayv1.JobLost},
		"no such job, asked while something could still submit, says nothing": {
			given: stopping(answer(rayDoesNotKnow), func(s *Snapshot) { s.FirstSeen[seenQuiet] = now }), wantState: running},
		"a job that was submitted late is stopped while its submitter still dies": {
			given: stopping(answer(raySays(dashboard.JobRunning)), submitterPod), wantState: running, want: []string{"stop train-x7k2m"}},
		"a sidecar's head that is gone before the workers came ends the attempt": {
			given: given(rayv1.JobDeploymentStatusInitializing, cluster(rayv1.ClusterStateNew), mode(rayv1.SidecarMode), func(s *Snapshot) {
				s.Job.Status.Submission = &rayv1.RayJobSubmission{HeadPod: "head", HeadPodUID: "head-uid"}
			}, noHead), wantState: failed, wantReason: rayv1.JobLost},
		"an edited mode matters to the next attempt only": {
			given: given(running, begunIn(rayv1.K8sJobMode), overHTTP, ready, answer(rayDoesNotKnow)), wantState: running, want: []string{"create train"}},
		"Ray's word about a job whose cluster goes with a suspension says nothing": {
			given: given(suspending, ready, suspended, stoppingFor(reasonSuspended), answer(raySays(dashboard.JobFailed))), wantState: suspending, want: []string{"delete train-bcd4f"}},
		"one question without an answer is no silence": {
			given: given(running, overHTTP, ready, confirmed, answer(silent(time.Hour)), func(s *Snapshot) { s.Answer.Failures = 1 }), wantState: running},
		"a spec that became invalid between two attempts does not end the job": {
			given: given("", func(s *Snapshot) {
				s.LastValid, s.Job.Status.Attempt = s.Job.Spec.DeepCopy(), 1
				s.Job.Spec.TTLSecondsAfterFinished = -1
			}), wantState: rayv1.JobDeploymentStatusInitializing},
	})
}

// A record of the head that was made from a cache which lagged behind must not make a job lost, and a submission that was
// under way when the head was replaced must not run with nobody to look after it.
func TestPlanWaitsForTheNextWordOfRay(t *testing.T) {
	failed := rayv1.JobDeploymentStatusFailed
	runs := answer(raySays(dashboard.JobRunning))
	restarted := head(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 })
	another := head(func(p *corev1.Pod) { p.UID = "another" })
	session2 := func(s *Snapshot) { s.Answer.SessionName = "session_2" }
	runSteps(t, map[string]step{
		"a head that is not the recorded one, while the recorded session answers":      {given: given(running, ready, confirmed, runs, another), wantState: running},
		"a head that was restarted since, while the recorded session answers":          {given: given(running, ready, confirmed, runs, restarted), wantState: running},
		"no head, while the recorded session answered last":                            {given: given(running, ready, confirmed, runs, noHead), wantState: running},
		"no head, and no answer any more":                                              {given: given(running, ready, confirmed, answer(silent(time.Second)), noHead), wantState: failed, wantReason: rayv1.JobLost},
		"another session, with a submission under way":                                 {given: given(running, overHTTP, ready, answer(rayDoesNotKnow), session2, func(s *Snapshot) { s.Sending = true }), wantState: running},
		"another session, and a submission that was taken since it was asked":          {given: given(running, overHTTP, ready, answer(rayDoesNotKnow), session2, sent(nil, -time.Second)), wantState: running},
		"another session, and none knows of the submission":                            {given: given(running, overHTTP, ready, answer(rayDoesNotKnow), session2, sent(nil, time.Second)), wantState: failed, wantReason: rayv1.JobLost},
		"another session, and one that stays silent after it took the submission":      {given: given(running, overHTTP, ready, answer(silent(time.Minute)), session2, sent(nil, -time.Second)), wantState: failed, wantReason: rayv1.JobLost},
		"another session that has a job of ours which was not confirmed before":        {given: given(running, overHTTP, ready, runs, session2), wantState: running},
		"another session that has a job of ours which was confirmed in an earlier one": {given: given(running, overHTTP, ready, confirmed, runs, session2), wantState: failed, wantReason: rayv1.JobLost},
		"a stop that could not be sent before its limit was over is sent": {
			given:     given(running, ready, confirmed, deadline(30), stoppingFor(string(rayv1.DeadlineExceeded)), runs, seen(seenStopping, time.Hour)),
			wantState: running, want: []string{"stop train-x7k2m"}},
		"and is given up when that was in vain": {
			given:     given(running, ready, confirmed, deadline(30), stoppingFor(string(rayv1.DeadlineExceeded)), runs, seen(seenStopping, time.Hour), stopped(nil)),
			wantState: failed, wantReason: rayv1.DeadlineExceeded},
	})
}

func TestPlanKnowsThatASidecarIsGoneWithItsHead(t *testing.T) {
	provisioned := func(s *Snapshot) {
		s.Cluster.Annotations = map[string]string{rayv1.AnnotationDisableProvisionedHeadRestart: "true"}
		s.Cluster.Status.Conditions = []metav1.Condition{{Type: string(rayv1.ConditionRayClusterProvisioned), Status: metav1.ConditionTrue}}
		s.Job.Status.Submission = nil
	}
	for _, state := range []rayv1.JobDeploymentStatus{rayv1.JobDeploymentStatusInitializing, running} {
		t.Run(string(state), func(t *testing.T) {
			lost := step{given: given(state, cluster(rayv1.ClusterStateNew), mode(rayv1.SidecarMode), provisioned, noHead),
				wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.JobLost}
			lost.run(t)
		})
	}
}

func TestPlanCorrectsTheRecordOfTheHead(t *testing.T) {
	for name, tc := range map[string]struct {
		edits []func(*Snapshot)
		want  rayv1.RayJobSubmission
	}{
		"when the session answers after the other life was seen": {
			[]func(*Snapshot){answer(raySays(dashboard.JobRunning)), seen(lifeOf(headPod("another")), time.Second)},
			rayv1.RayJobSubmission{HeadPod: "head", HeadPodUID: "another", SessionName: "session_1"}},
		"not before": {
			[]func(*Snapshot){answer(raySays(dashboard.JobRunning))},
			rayv1.RayJobSubmission{HeadPod: "head", HeadPodUID: "head-uid", SessionName: "session_1"}},
		"and by the session in which a job was found that was on its way": {
			[]func(*Snapshot){answer(raySays(dashboard.JobRunning)), func(s *Snapshot) {
				s.Answer.SessionName, s.Job.Status.Submission.ConfirmedTime = "session_2", nil
			}},
			rayv1.RayJobSubmission{HeadPod: "head", HeadPodUID: "another", SessionName: "session_2"}},
	} {
		t.Run(name, func(t *testing.T) {
			edits := append([]func(*Snapshot){overHTTP, ready, confirmed, head(func(p *corev1.Pod) { p.UID = "another" })}, tc.edits...)
			after := next(given(running, edits...))
			got := *after.Submission
			if got.ConfirmedTime == nil || after.JobDeploymentStatus != running {
				t.Errorf("state %s, submission %+v", after.JobDeploymentStatus, got)
			}
			got.ConfirmedTime = nil
			if got != tc.want {
				t.Errorf("recorded %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestPlanRemembers(t *testing.T) {
	t.Run("a corrected selector", func(t *testing.T) {
		s := given(rayv1.JobDeploymentStatusInitializing, func(s *Snapshot) {
			s.Job.Status.RayClusterName, s.Job.Spec.ClusterSelector = "shraed", map[string]string{rayv1.LabelCluster: "shared"}
		})
		if got := next(s).RayClusterName; got != "shared" {
			t.Errorf("the job waits for cluster %q", got)
		}
	})
	t.Run("that another operator had the job confirmed", func(t *testing.T) {
		s := given(running, overHTTP, ready, knownAs(rayv1.JobStatusRunning), answer(rayDoesNotKnow), func(s *Snapshot) { s.Job.Status.Submission = nil })
		if got := next(s).Submission; got == nil || got.ConfirmedTime == nil {
			t.Errorf("the job would be submitted again: %+v", got)
		}
	})
	t.Run("a corrected id of an interactive job", func(t *testing.T) {
		s := given(running, mode(rayv1.InteractiveMode), ready, answer(rayDoesNotKnow), func(s *Snapshot) { s.Job.Spec.JobId = "mine" })
		if got := next(s).JobId; got != "mine" {
			t.Errorf("Ray is asked for %q", got)
		}
	})
	t.Run("how the driver failed, while its log is still printed", func(t *testing.T) {
		s := given(running, ready, confirmed, submitter(""), answer(raySays(dashboard.JobFailed)), func(s *Snapshot) {
			s.Answer.Job.Message, s.Answer.Job.DriverExitCode = "Job entrypoint command failed with exit code 3, last available logs:\nboom\n", ptr.To[int32](3)
		})
		s.Job.Status = next(s)
		s.Answer = nil // the poller has forgotten it
		submitter("Complete")(&s)
		got := next(s)
		pm := got.PostMortem
		if got.JobDeploymentStatus != rayv1.JobDeploymentStatusFailed || pm == nil || ptr.Deref(pm.ExitCode, 0) != 3 || pm.Log != "boom\n" {
			t.Errorf("state %s, post-mortem %+v", got.JobDeploymentStatus, pm)
		}
	})
}

// What was heard must not be forgotten before it is stored.
func TestPlanGoesOnAskingUntilTheEndIsStored(t *testing.T) {
	succeeded := answer(raySays(dashboard.JobSucceeded))
	for name, tc := range map[string]struct {
		given Snapshot
		asks  bool
	}{
		"the end is heard":                     {given(running, overHTTP, ready, confirmed, succeeded), true},
		"the end is heard after the head":      {given(running, overHTTP, ready, confirmed, succeeded, noHead), true},
		"the end is heard while it is stopped": {given(running, ready, confirmed, succeeded, stoppingFor(string(rayv1.DeadlineExceeded))), true},
		"the end is stored":                    {given(running, overHTTP, ready, confirmed, knownAs(rayv1.JobStatusSucceeded), succeeded), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(tc.given, settings, now).Ask != nil; got != tc.asks {
				t.Errorf("Ray is asked: %t, want %t", got, tc.asks)
			}
		})
	}
}

func TestPlanLooksAgain(t *testing.T) {
	refused := func(s *Snapshot) {
		s.HeadService.Spec.Selector = nil
		s.HeadService.Annotations = nil
		s.Holds = map[string]action.Hold{"Service/train-head-svc": {Until: now.Add(2 * time.Second)}}
	}
	for name, tc := range map[string]struct {
		given Snapshot
		want  time.Duration
	}{
		"for an answer of this term, which may be the same as the one before": {given(running, ready, confirmed), pollAgain},
		"when a refused Service may be tried again":                           {given(running, ready, confirmed, answer(raySays(dashboard.JobRunning)), refused), 2 * time.Second},
		"not at all while Ray runs the job":                                   {given(running, ready, confirmed, answer(raySays(dashboard.JobRunning))), 0},
		"not at all when suspended":                                           {given(rayv1.JobDeploymentStatusSuspended, suspended), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(tc.given, settings, now).LookAgain; got != tc.want {
				t.Errorf("looks again after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestConditionsOfEveryPhase(t *testing.T) {
	stalledCluster := func(s *Snapshot) {
		s.Cluster.Status.Conditions = []metav1.Condition{{Type: rayv1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "ImagePullBackOff", Message: "head: no such image"}}
	}
	invalid := func(s *Snapshot) { s.Job.Spec.TTLSecondsAfterFinished = -1 }
	for name, tc := range map[string]struct {
		given Snapshot
		// what is True, and the reasons of Ready and Stalled.
		want           []string
		ready, stalled string
	}{
		"a new job": {given(""), []string{rayv1.ConditionReconciling, rayv1.ConditionValid}, rayv1.ReasonWaitingForCluster, rayv1.ReasonWaitingForCluster},
		"a cluster that cannot start": {given(rayv1.JobDeploymentStatusInitializing, cluster(rayv1.ClusterStateNew), stalledCluster),
			[]string{rayv1.ConditionStalled, rayv1.ConditionValid}, rayv1.ReasonWaitingForCluster, "ImagePullBackOff"},
		"a spec that makes no sense": {given("", invalid), []string{rayv1.ConditionStalled, rayv1.ConditionTroubled}, rayv1.ReasonSpecInvalid, rayv1.ReasonSpecInvalid},
		"a refused cluster": {given(rayv1.JobDeploymentStatusInitializing, func(s *Snapshot) {
			s.Holds = map[string]action.Hold{roleCluster: {Reason: "FailedToCreateRayCluster", Message: "exceeded quota", Until: now.Add(time.Minute)}}
		}), []string{rayv1.ConditionStalled, rayv1.ConditionTroubled, rayv1.ConditionValid}, rayv1.ReasonWaitingForCluster, "FailedToCreateRayCluster"},
		"an interactive job": {given(rayv1.JobDeploymentStatusWaiting, ready, mode(rayv1.InteractiveMode)),
			[]string{rayv1.ConditionReconciling, rayv1.ConditionValid}, rayv1.ReasonWaitingForUser, rayv1.ReasonWaitingForUser},
		"a submission under way": {given(running, ready, answer(rayDoesNotKnow)), []string{rayv1.ConditionReconciling, rayv1.ConditionValid}, rayv1.ReasonSubmitting, rayv1.ReasonSubmitting},
		"a running job": {given(running, ready, confirmed, answer(raySays(dashboard.JobRunning))),
			[]string{rayv1.ConditionReady, rayv1.ConditionRunning, rayv1.ConditionSubmitted, rayv1.ConditionValid}, rayv1.ReasonConfirmed, rayv1.ReasonConfirmed},
		"a running job with a spec edited into nonsense": {given(running, ready, confirmed, answer(raySays(dashboard.JobRunning)), invalid),
			[]string{rayv1.ConditionReady, rayv1.ConditionRunning, rayv1.ConditionSubmitted, rayv1.ConditionTroubled}, rayv1.ReasonConfirmed, rayv1.ReasonConfirmed},
		"a silent dashboard": {given(running, ready, confirmed, answer(silent(time.Minute))),
			[]string{rayv1.ConditionReconciling, rayv1.ConditionRunning, rayv1.ConditionSubmitted, rayv1.ConditionTroubled, rayv1.ConditionValid}, rayv1.ReasonRayDoesNotAnswer, rayv1.ReasonRayDoesNotAnswer},
		"a success": {given(running, overHTTP, ready, confirmed, answer(raySays(dashboard.JobSucceeded))),
			[]string{rayv1.ConditionReady, rayv1.ConditionSubmitted, rayv1.ConditionSucceeded, rayv1.ConditionValid}, rayv1.ReasonEnded, rayv1.ReasonEnded},
		"a failure": {given(running, overHTTP, ready, confirmed, answer(raySays(dashboard.JobFailed))),
			[]string{rayv1.ConditionFailed, rayv1.ConditionStalled, rayv1.ConditionSubmitted, rayv1.ConditionTroubled, rayv1.ConditionValid}, string(rayv1.AppFailed), string(rayv1.AppFailed)},
		"a failure of which an older operator left no reason": {given(rayv1.JobDeploymentStatusFailed, ready),
			[]string{rayv1.ConditionFailed, rayv1.ConditionStalled, rayv1.ConditionTroubled, rayv1.ConditionValid}, rayv1.ReasonEnded, rayv1.ReasonEnded},
		"a job that was stopped": {given(running, overHTTP, ready, confirmed, answer(raySays(dashboard.JobStopped))),
			[]string{rayv1.ConditionReady, rayv1.ConditionStopped, rayv1.ConditionSubmitted, rayv1.ConditionValid}, rayv1.ReasonEnded, rayv1.ReasonEnded},
		"a suspended job": {given(rayv1.JobDeploymentStatusSuspended, suspended), []string{rayv1.ConditionReady, rayv1.ConditionValid}, rayv1.ReasonSuspended, rayv1.ReasonSuspended},
		"a retry":         {given(rayv1.JobDeploymentStatusRetrying, ready), []string{rayv1.ConditionReconciling, rayv1.ConditionTroubled, rayv1.ConditionValid}, rayv1.ReasonRetrying, rayv1.ReasonRetrying},
		"a retry that cannot clear up": {given(rayv1.JobDeploymentStatusRetrying, ready, seen(seenTakeDown, time.Hour)),
			[]string{rayv1.ConditionStalled, rayv1.ConditionTroubled, rayv1.ConditionValid}, rayv1.ReasonRetrying, rayv1.ReasonTakenDownSlowly},
		"a foreign Job in the way": {given(running, ready, answer(rayDoesNotKnow), submitter(""), func(s *Snapshot) { s.Submitter.OwnerReferences = nil }),
			[]string{rayv1.ConditionStalled, rayv1.ConditionTroubled, rayv1.ConditionValid}, rayv1.ReasonSubmitting, rayv1.ReasonNameCollision},
	} {
		t.Run(name, func(t *testing.T) {
			after := next(tc.given)
			var are []string
			for _, c := range after.Conditions {
				if c.Status == metav1.ConditionTrue {
					are = append(are, c.Type)
				}
				if c.Reason == "" {
					t.Errorf("condition %s has no reason", c.Type)
				}
			}
			slices.Sort(are)
			if !slices.Equal(are, tc.want) {
				t.Errorf("True are %v, want %v", are, tc.want)
			}
			for kind, want := range map[string]string{rayv1.ConditionReady: tc.ready, rayv1.ConditionStalled: tc.stalled} {
				if c := meta.FindStatusCondition(after.Conditions, kind); c.Reason != want {
					t.Errorf("%s has the reason %s, want %s", kind, c.Reason, want)
				}
			}
			tc.given.Job.Status = after
			if again := Plan(tc.given, settings, now); again.Status != nil && again.Status.Object.(*rayv1.RayJob).Status.JobDeploymentStatus == after.JobDeploymentStatus {
				t.Errorf("a second pass over the same facts writes again: %s", again.Status.Why)
			}
		})
	}
}
