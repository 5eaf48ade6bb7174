package rayjob

import (
	"errors"
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

const running = rayv1.JobDeploymentStatusRunning

// ready is the job's cluster when it is ready.
func ready(s *Snapshot) { cluster(rayv1.ClusterStateReady)(s) }

func overHTTP(s *Snapshot) { mode(rayv1.HTTPMode)(s) }

func sent(err error, ago time.Duration) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Sent = &action.Outcome{BaseURL: dashboardAt, ID: "train-x7k2m", At: now.Add(-ago), Err: err}
	}
}

func silent(ago time.Duration) func(*poll.Observation) {
	return func(o *poll.Observation) {
		o.Err, o.FailingSince, o.Failures = errors.New("refused"), now.Add(-ago), leastFailures
	}
}

func retry(s *Snapshot) { s.Job.Spec.BackoffLimit = ptr.To[int32](1) }

func suspended(s *Snapshot) { s.Job.Spec.Suspend, s.Job.Spec.ShutdownAfterJobFinishes = true, true }

func deadline(seconds int32) func(*Snapshot) {
	return func(s *Snapshot) { s.Job.Spec.ActiveDeadlineSeconds = &seconds }
}

// step is what is given, and what one pass is to make of it.
type step struct {
	given      Snapshot
	wantState  rayv1.JobDeploymentStatus
	wantReason rayv1.JobFailedReason
	want       []string
}

func (c step) run(t *testing.T) {
	t.Helper()
	decision := Plan(c.given, settings, now)
	got := c.given.Job.Status
	if decision.Status != nil {
		got = decision.Status.Object.(*rayv1.RayJob).Status
	}
	if got.JobDeploymentStatus != c.wantState || got.Reason != c.wantReason {
		t.Errorf("state %q reason %q, want %q %q (message %q)", got.JobDeploymentStatus, got.Reason, c.wantState, c.wantReason, got.Message)
	}
	if diff := cmp.Diff(c.want, verbs(decision.Actions)); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func runSteps(t *testing.T, steps map[string]step) {
	t.Helper()
	for name, c := range steps {
		t.Run(name, c.run)
	}
}

func TestPlanBeginsAnAttempt(t *testing.T) {
	initializing := rayv1.JobDeploymentStatusInitializing
	invalid, reason := rayv1.JobDeploymentStatusValidationFailed, rayv1.ValidationFailed
	runSteps(t, map[string]step{
		"the finalizer comes before anything else": {
			given: given("", func(s *Snapshot) { s.Job.Finalizers = nil }), want: []string{"finalizers " + rayv1.FinalizerRayJob}},
		"names are recorded before anything is made under them": {given: given(""), wantState: initializing},
		"a job without a cluster gets one":                      {given: given(initializing), wantState: initializing, want: []string{"create train-bcd4f"}},
		"a cluster that is not ready is waited for": {
			given: given(initializing, cluster(rayv1.ClusterStateNew)), wantState: initializing},
		"a ready cluster lets the job run":            {given: given(initializing, ready), wantState: running},
		"an interactive job then waits for its user":  {given: given(initializing, ready, mode(rayv1.InteractiveMode)), wantState: rayv1.JobDeploymentStatusWaiting},
		"a sidecar is not held up by slow workers":    {given: given(initializing, cluster(rayv1.ClusterStateNew), onRecord, sidecarIs(true, 0), answer(raySays(dashboard.JobRunning))), wantState: running},
		"a sidecar that failed is looked into":        {given: given(initializing, cluster(rayv1.ClusterStateNew), sidecarIs(false, 1)), wantState: running},
		"a sidecar that has not submitted waits":      {given: given(initializing, cluster(rayv1.ClusterStateNew), sidecarIs(true, 0), answer(rayDoesNotKnow)), wantState: initializing},
		"a foreign cluster under our name is no ours": {given: given(initializing, ready, func(s *Snapshot) { s.Cluster.OwnerReferences[0].UID = "another" }), wantState: initializing},
		"a refused cluster is held back": {
			given: given(initializing, func(s *Snapshot) {
				s.Holds = map[string]action.Hold{roleCluster: {Message: "exceeded quota", Until: now.Add(time.Minute)}}
			}), wantState: initializing},
		"a job that is to be suspended makes nothing": {given: given(initializing, suspended), wantState: rayv1.JobDeploymentStatusSuspending},
		"a cluster that is never ready ends at the deadline": {
			given:     given(initializing, cluster(rayv1.ClusterStateNew), func(s *Snapshot) { s.Job.Spec.PreRunningDeadlineSeconds = ptr.To[int32](30) }),
			wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.PreRunningDeadlineExceeded},
		"a spec that was edited into nonsense before the cluster was made is said": {
			given:     given(initializing, func(s *Snapshot) { s.Job.Spec.TTLSecondsAfterFinished = -1 }),
			wantState: invalid, wantReason: reason},
		"a spec that makes no sense is said and nothing is made": {
			given: given("", func(s *Snapshot) { s.Job.Spec.TTLSecondsAfterFinished = -1 }), wantState: invalid, wantReason: reason},
		"an unknown submission mode is said":    {given: given("", mode("CarrierPigeon")), wantState: invalid, wantReason: reason},
		"a corrected spec leads out":            {given: given(invalid), wantState: initializing},
		"another controller's job is let alone": {given: given("", func(s *Snapshot) { s.Job.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })},
	})
}

// onRecord makes the head the one that is to take the job.
func onRecord(s *Snapshot) {
	s.Job.Status.Submission = &rayv1.RayJobSubmission{HeadPod: "head", HeadPodUID: "head-uid", SessionName: "session_1"}
}

// sidecarIs puts a submitter into the head Pod that runs, or has ended with an exit code.
func sidecarIs(runs bool, code int32) func(*Snapshot) {
	return func(s *Snapshot) {
		mode(rayv1.SidecarMode)(s)
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		if !runs {
			state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
		}
		s.Head.Status.ContainerStatuses = append(s.Head.Status.ContainerStatuses, corev1.ContainerStatus{Name: "ray-job-submitter", State: state})
	}
}

func TestPlanSubmitsOnce(t *testing.T) {
	failed := rayv1.JobDeploymentStatusFailed
	unrecorded := func(s *Snapshot) { s.Job.Status.Submission = nil }
	runSteps(t, map[string]step{
		"nothing is sent before Ray was asked":         {given: given(running, ready, unrecorded), wantState: running},
		"nothing is sent before the head was recorded": {given: given(running, ready, unrecorded, answer(rayDoesNotKnow)), wantState: running},
		"the submitter is made when Ray does not know": {given: given(running, ready, answer(rayDoesNotKnow)), wantState: running, want: []string{"create train"}},
		"the submitter is not made while Ray is silent": {
			given: given(running, ready, answer(silent(time.Second))), wantState: running},
		"the submitter is not made again for a job that Ray has": {
			given: given(running, ready, confirmed, answer(raySays(dashboard.JobRunning))), wantState: running},
		"HTTPMode submits when Ray does not know": {
			given: given(running, overHTTP, ready, answer(rayDoesNotKnow)), wantState: running, want: []string{"submit train-x7k2m"}},
		"HTTPMode waits for a look after a submission that Ray took": {
			given: given(running, overHTTP, ready, answer(rayDoesNotKnow), sent(nil, -time.Millisecond)), wantState: running},
		"HTTPMode fails with Ray's words when Ray refuses": {
			given: given(running, overHTTP, ready, answer(rayDoesNotKnow), sent(dashboard.ErrRefused, 0)), wantState: failed, wantReason: rayv1.SubmissionFailed},
		"HTTPMode tries again after an answer that settles nothing": {
			given:     given(running, overHTTP, ready, answer(rayDoesNotKnow), sent(dashboard.ErrNoAgent, resubmitAfter)),
			wantState: running, want: []string{"submit train-x7k2m"}},
		"HTTPMode does not try for ever": {
			given: given(running, overHTTP, ready, answer(rayDoesNotKnow), sent(dashboard.ErrNoAgent, resubmitAfter), seen(seenSubmitFails, 6*time.Minute),
				func(s *Snapshot) {
					s.Job.Status.JobStatusCheckFailureStartTime = ptr.To(metav1.NewTime(now.Add(-6 * time.Minute)))
				}),
			wantState: failed, wantReason: rayv1.JobStatusCheckTimeoutExceeded},
		"an answer about an earlier attempt counts for nothing": {
			given:     given(running, overHTTP, ready, answer(rayDoesNotKnow), func(s *Snapshot) { s.Answer.Target.SubmissionID = "older" }),
			wantState: running},
		"a foreign Job under the submitter's name is waited for": {
			given: given(running, ready, answer(rayDoesNotKnow), submitter(""), func(s *Snapshot) { s.Submitter.OwnerReferences = nil }), wantState: running},
		"a foreign Job that no cache shows is waited for": {
			given: given(running, ready, answer(rayDoesNotKnow), func(s *Snapshot) {
				s.Holds = map[string]action.Hold{roleSubmitter: {Collision: true, Until: now.Add(time.Minute)}}
			}), wantState: running},
		"a failed submitter is no verdict while Ray runs the job": {
			given: given(running, ready, submitter(batchv1.JobFailed), answer(raySays(dashboard.JobRunning))), wantState: running},
		"nor right after its end, when Ray may not have been asked since": {
			given: given(running, ready, submitter(batchv1.JobFailed), answer(rayDoesNotKnow)), wantState: running},
		"a failed submitter ends the attempt when Ray, asked after that, does not know the job": {
			given:     given(running, ready, submitter(batchv1.JobFailed), answer(rayDoesNotKnow), seen(seenSubmitterEnd, submitterGrace)),
			wantState: failed, wantReason: rayv1.SubmissionFailed},
		"so does one that finished": {
			given:     given(running, ready, submitter(batchv1.JobComplete), answer(rayDoesNotKnow), seen(seenSubmitterEnd, submitterGrace)),
			wantState: failed, wantReason: rayv1.AppFailed},
		"a sidecar that failed ends the attempt": {
			given:     given(running, ready, sidecarIs(false, 1), answer(rayDoesNotKnow), seen(seenSubmitterEnd, submitterGrace)),
			wantState: failed, wantReason: rayv1.SubmissionFailed},
	})
}

// The sidecar starts with its head. What it may do is for the operator to say, once that life of the head is on record.
func TestPlanLetsASidecarSubmit(t *testing.T) {
	initializing := rayv1.JobDeploymentStatusInitializing
	waits, unready := sidecarIs(true, 0), cluster(rayv1.ClusterStateNew)
	unrecorded := func(s *Snapshot) { s.Job.Status.Submission = nil }
	letInto := func(session string) func(*Snapshot) {
		return head(func(p *corev1.Pod) { p.Annotations = map[string]string{rayv1.AnnotationSubmitTo: session} })
	}
	unnamed := func(s *Snapshot) { s.Job.Status.Submission.SessionName, s.Answer.SessionName = "", "" }
	runSteps(t, map[string]step{
		"not before its head is on record":               {given: given(running, ready, waits, unrecorded, answer(rayDoesNotKnow)), wantState: running},
		"when its head is on record":                     {given: given(running, ready, waits, answer(rayDoesNotKnow)), wantState: running, want: []string{"update head"}},
		"once":                                           {given: given(running, ready, waits, letInto("session_1"), answer(rayDoesNotKnow)), wantState: running},
		"to a Ray that tells no session":                 {given: given(running, ready, waits, answer(rayDoesNotKnow), unnamed), wantState: running, want: []string{"update head"}},
		"to such a Ray once":                             {given: given(running, ready, waits, letInto("any"), answer(rayDoesNotKnow), unnamed), wantState: running},
		"not before it runs":                             {given: given(running, ready, mode(rayv1.SidecarMode), answer(rayDoesNotKnow)), wantState: running},
		"not when its head is going":                     {given: given(running, ready, waits, head(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }), answer(rayDoesNotKnow)), wantState: running},
		"not when another life of the head is on record": {given: given(running, ready, waits, head(func(p *corev1.Pod) { p.UID = "another" }), answer(rayDoesNotKnow)), wantState: running},
		"not while the workers are missing, before its head is on record": {
			given: given(initializing, unready, waits, answer(rayDoesNotKnow)), wantState: initializing},
		"while the workers are missing, when its head is on record": {
			given: given(initializing, unready, onRecord, waits, answer(rayDoesNotKnow)), wantState: initializing, want: []string{"update head"}},
		"not while it is being stopped": {
			given: given(running, ready, waits, deadline(30), stoppingFor(string(rayv1.DeadlineExceeded)), answer(rayDoesNotKnow), seen(seenStopping, 0)), wantState: running},
	})
}

// A head that was lost before the workers came is made again, as nothing was submitted.
func TestPlanForgivesTheLossOfAHeadThatSubmittedNothing(t *testing.T) {
	lost := step{given: given(rayv1.JobDeploymentStatusInitializing, cluster(rayv1.ClusterStateNew), mode(rayv1.SidecarMode), noHead),
		wantState: rayv1.JobDeploymentStatusInitializing}
	lost.run(t)
}

func TestPlanTellsOurJobsFromOthers(t *testing.T) {
	marked := func(uid string) func(*Snapshot) {
		return func(s *Snapshot) { s.Answer.Job.Metadata = map[string]string{rayv1.MetadataRayJobUID: uid} }
	}
	fixed := func(s *Snapshot) { s.Job.Spec.JobId = "train-x7k2m" }
	ownCommand := func(s *Snapshot) {
		s.Job.Spec.SubmitterPodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"mine"}}}}}
	}
	found := answer(raySays(dashboard.JobRunning))
	foreign := step{wantState: rayv1.JobDeploymentStatusFailed, wantReason: rayv1.SubmissionFailed}
	ours := step{wantState: running}
	for name, c := range map[string]struct {
		given Snapshot
		want  step
	}{
		"a computed id is ours": {given(running, overHTTP, ready, onSharedCluster, func(s *Snapshot) {
			s.Job.Status.JobId = childName(s.Job, "submission", "")
		}, found), ours},
		"an id of somebody's is not, although spec.jobId was emptied since": {given(running, overHTTP, ready, onSharedCluster, found), foreign},
		"an id that KubeRay has drawn is":                                   {given(running, overHTTP, ready, onSharedCluster, func(s *Snapshot) { s.Job.Status.Attempt = 0 }, found), ours},
		"a chosen id on our own cluster is ours":                            {given(running, overHTTP, ready, fixed, found), ours},
		"a chosen id with our mark is ours":                                 {given(running, overHTTP, ready, onSharedCluster, fixed, found, marked("job-uid")), ours},
		"a chosen id with another mark is not":                              {given(running, overHTTP, ready, onSharedCluster, fixed, found, marked("another")), foreign},
		"a chosen id without a mark is not":                                 {given(running, overHTTP, ready, onSharedCluster, fixed, found), foreign},
		"unless it was confirmed before":                                    {given(running, overHTTP, ready, onSharedCluster, fixed, confirmed, found), ours},
		"or a command of the user's may have sent it":                       {given(running, ready, onSharedCluster, fixed, ownCommand, submitter(""), found), ours},
		"but not before that command was given a chance":                    {given(running, ready, onSharedCluster, fixed, ownCommand, found), foreign},
		"what an interactive user submits is ours":                          {given(running, mode(rayv1.InteractiveMode), ready, onSharedCluster, fixed, found), ours},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.given = c.given
			c.want.run(t)
		})
	}
}

func TestPlanNoticesThatTheHeadIsGone(t *testing.T) {
	failed := rayv1.JobDeploymentStatusFailed
	runSteps(t, map[string]step{
		"the head Pod is gone": {given: given(running, ready, confirmed, func(s *Snapshot) { s.Head = nil }), wantState: failed, wantReason: rayv1.JobLost},
		"there is another":     {given: given(running, ready, confirmed, head(func(p *corev1.Pod) { p.UID = "another" })), wantState: failed, wantReason: rayv1.JobLost},
		"it has ended":         {given: given(running, ready, confirmed, head(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })), wantState: failed, wantReason: rayv1.JobLost},
		"Ray was restarted in it": {given: given(running, ready, confirmed, head(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 1 })),
			wantState: failed, wantReason: rayv1.JobLost},
		"Ray speaks of another session": {given: given(running, ready, confirmed, answer(func(o *poll.Observation) { o.JobFound, o.SessionName = poll.Missing, "session_2" })),
			wantState: failed, wantReason: rayv1.JobLost},
		"another session has a job of that name": {given: given(running, ready, confirmed, answer(raySays(dashboard.JobRunning)), func(s *Snapshot) { s.Answer.SessionName = "session_2" }),
			wantState: failed, wantReason: rayv1.JobLost},
		"Ray does not know the job any more": {given: given(running, overHTTP, ready, confirmed, answer(rayDoesNotKnow)), wantState: failed, wantReason: rayv1.JobLost},
		"Ray took the job and does not know it": {given: given(running, overHTTP, ready, answer(rayDoesNotKnow), sent(nil, time.Second)),
			wantState: failed, wantReason: rayv1.JobLost},
		"the cluster is gone":                       {given: given(running, confirmed), wantState: failed, wantReason: rayv1.JobLost},
		"a retry is left":                           {given: given(running, confirmed, retry), wantState: rayv1.JobDeploymentStatusRetrying, wantReason: rayv1.JobLost},
		"nothing was sent: the cluster comes again": {given: given(running, func(s *Snapshot) { s.Job.Status.Submission = nil }), wantState: rayv1.JobDeploymentStatusInitializing},
		"a store outlives the head": {given: given(running, ready, confirmed, answer(raySays(dashboard.JobRunning)), func(s *Snapshot) {
			s.Head, s.Cluster.Spec.GcsFaultToleranceOptions = nil, &rayv1.GcsFaultToleranceOptions{}
		}), wantState: running},
		"a user has not submitted yet": {given: given(running, mode(rayv1.InteractiveMode), ready, answer(rayDoesNotKnow), func(s *Snapshot) { s.Head, s.Answer.SessionName = nil, "session_2" }),
			wantState: running},
		"the end was heard before": {given: given(running, overHTTP, knownAs(rayv1.JobStatusSucceeded)), wantState: rayv1.JobDeploymentStatusComplete},
	})
}

func TestPlanEndsByRaysWord(t *testing.T) {
	failed, complete := rayv1.JobDeploymentStatusFailed, rayv1.JobDeploymentStatusComplete
	succeeded := answer(raySays(dashboard.JobSucceeded))
	runSteps(t, map[string]step{
		"success waits for the submitter to print the rest of the log": {given: given(running, ready, confirmed, submitter(""), succeeded), wantState: running},
		"but not for ever": {given: given(running, ready, confirmed, submitter(""), knownAs(rayv1.JobStatusSucceeded), seen(seenJobEnd, 5*time.Minute)),
			wantState: complete, wantReason: rayv1.JobDeploymentStatusTransitionGracePeriodExceeded},
		"success with an ended submitter completes":  {given: given(running, ready, confirmed, submitter(batchv1.JobComplete), succeeded), wantState: complete},
		"success with a failed submitter, too":       {given: given(running, ready, confirmed, submitter(batchv1.JobFailed), succeeded), wantState: complete},
		"success without a submitter, too":           {given: given(running, ready, confirmed, succeeded), wantState: complete},
		"a stopped job completes, as clients expect": {given: given(running, overHTTP, ready, confirmed, answer(raySays(dashboard.JobStopped))), wantState: complete},
		"a failed job fails":                         {given: given(running, overHTTP, ready, confirmed, answer(raySays(dashboard.JobFailed))), wantState: failed, wantReason: rayv1.AppFailed},
		"a failed job with a retry left is retried": {given: given(running, overHTTP, ready, confirmed, retry, answer(raySays(dashboard.JobFailed))),
			wantState: rayv1.JobDeploymentStatusRetrying, wantReason: rayv1.AppFailed},
		"silence of Ray is borne for a while": {given: given(running, overHTTP, ready, confirmed, answer(silent(time.Minute))), wantState: running},
		"silence for too long ends the attempt": {given: given(running, overHTTP, ready, confirmed, answer(silent(6*time.Minute))),
			wantState: failed, wantReason: rayv1.JobStatusCheckTimeoutExceeded},
		"a predecessor's record of silence is no verdict by itself": {
			given: given(running, overHTTP, ready, confirmed, answer(silent(time.Second)), func(s *Snapshot) {
				s.Job.Status.JobStatusCheckFailureStartTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
			}), wantState: running},
		"an unfinished submitter of a failed job goes": {given: given(failed, ready, submitter("")), wantState: failed, want: []string{"delete train"}},
		"a finished one stays, for its log":            {given: given(failed, ready, submitter(batchv1.JobFailed)), wantState: failed},
	})
}

func TestPlanStopsTheRayJob(t *testing.T) {
	suspending, failed, complete := rayv1.JobDeploymentStatusSuspending, rayv1.JobDeploymentStatusFailed, rayv1.JobDeploymentStatusComplete
	late := func(edits ...func(*Snapshot)) Snapshot {
		return given(running, append([]func(*Snapshot){ready, confirmed, deadline(30), stoppingFor(string(rayv1.DeadlineExceeded))}, edits...)...)
	}
	suspend := func(edits ...func(*Snapshot)) Snapshot {
		return given(suspending, append([]func(*Snapshot){func(s *Snapshot) {
			s.Job.Status.Submission = &rayv1.RayJobSubmission{HeadPodUID: "head-uid"}
		}, ready, confirmed, suspended, stoppingFor(reasonSuspended)}, edits...)...)
	}
	runs := answer(raySays(dashboard.JobRunning))
	runSteps(t, map[string]step{
		"a passed deadline is recorded first":        {given: given(running, ready, confirmed, deadline(30), runs), wantState: running},
		"then the job is stopped":                    {given: late(runs), wantState: running, want: []string{"stop train-x7k2m"}},
		"a stop that Ray took is not repeated":       {given: late(runs, stopped(nil)), wantState: running},
		"one that did not get there is":              {given: late(runs, stopped(errors.New("refused"))), wantState: running, want: []string{"stop train-x7k2m"}},
		"the attempt fails when Ray has stopped it":  {given: late(answer(raySays(dashboard.JobStopped))), wantState: failed, wantReason: rayv1.DeadlineExceeded},
		"or does not answer for long":                {given: late(answer(silent(time.Minute)), seen(seenStopping, time.Minute)), wantState: failed, wantReason: rayv1.DeadlineExceeded},
		"or does not have the job":                   {given: late(answer(rayDoesNotKnow), seen(seenStopping, time.Second), seen(seenQuiet, time.Second)), wantState: failed, wantReason: rayv1.DeadlineExceeded},
		"a job that succeeded just then succeeded":   {given: late(answer(raySays(dashboard.JobSucceeded))), wantState: complete},
		"suspend is recorded first":                  {given: given(running, ready, confirmed, suspended, runs), wantState: suspending},
		"then the job is stopped before its cluster": {given: suspend(runs), wantState: suspending, want: []string{"stop train-x7k2m"}},
		"then the cluster and the submitter go":      {given: suspend(knownAs(rayv1.JobStatusStopped), submitter("")), wantState: suspending, want: []string{"delete train-bcd4f", "delete train"}},
		"a Pod that is left is waited for": {given: suspend(knownAs(rayv1.JobStatusStopped), func(s *Snapshot) {
			s.Cluster, s.Pods = nil, []*corev1.Pod{headPod("head-uid")}
		}), wantState: suspending},
		"nothing left is suspended":               {given: suspend(func(s *Snapshot) { s.Cluster = nil }), wantState: rayv1.JobDeploymentStatusSuspended},
		"a selected cluster is left alone":        {given: suspend(onSharedCluster, knownAs(rayv1.JobStatusStopped)), wantState: rayv1.JobDeploymentStatusSuspended},
		"a job that succeeds meanwhile has ended": {given: suspend(answer(raySays(dashboard.JobSucceeded))), wantState: complete},
		"a foreign job is not stopped":            {given: suspend(onSharedCluster, func(s *Snapshot) { s.Job.Spec.JobId = "x"; s.Job.Status.Submission.ConfirmedTime = nil }, runs), wantState: rayv1.JobDeploymentStatusSuspended},
		"a submitter that may submit goes first":  {given: suspend(func(s *Snapshot) { s.Job.Status.Submission.ConfirmedTime = nil }, submitter(""), answer(rayDoesNotKnow)), wantState: suspending, want: []string{"delete train"}},
		"a submission under way is waited for":    {given: suspend(func(s *Snapshot) { s.Job.Status.Submission.ConfirmedTime, s.Sending = nil, true }, answer(rayDoesNotKnow), seen(seenStopping, time.Second)), wantState: suspending},
		"suspended is left when it is not wanted": {given: given(rayv1.JobDeploymentStatusSuspended), wantState: ""},
		"waiting for a user can be suspended":     {given: given(rayv1.JobDeploymentStatusWaiting, ready, mode(rayv1.InteractiveMode), suspended), wantState: suspending},
		"waiting for a user has a deadline":       {given: given(rayv1.JobDeploymentStatusWaiting, ready, mode(rayv1.InteractiveMode), deadline(30)), wantState: failed, wantReason: rayv1.DeadlineExceeded},
		"waiting ends when the user tells the id": {given: given(rayv1.JobDeploymentStatusWaiting, ready, mode(rayv1.InteractiveMode), func(s *Snapshot) { s.Job.Spec.JobId = "mine" }), wantState: running},
		"retrying deletes cluster and submitter":  {given: given(rayv1.JobDeploymentStatusRetrying, ready, submitter("")), wantState: rayv1.JobDeploymentStatusRetrying, want: []string{"delete train-bcd4f", "delete train"}},
		"retrying starts over when both are gone": {given: given(rayv1.JobDeploymentStatusRetrying), wantState: rayv1.JobDeploymentStatusNew},
		"retrying waits for the submitter's Pods": {given: given(rayv1.JobDeploymentStatusRetrying, func(s *Snapshot) { s.SubmitterPods = []*corev1.Pod{headPod("p")} }), wantState: rayv1.JobDeploymentStatusRetrying},
		"an invalid spec does not suspend a job":  {given: given(running, ready, confirmed, runs, func(s *Snapshot) { s.Job.Spec.Suspend = true }), wantState: running},
		"an invalid spec does not fail a job":     {given: given(running, ready, confirmed, runs, func(s *Snapshot) { s.Job.Spec.TTLSecondsAfterFinished = -1 }), wantState: running},
	})
}

func TestPlanDeletes(t *testing.T) {
	deleted := func(ago time.Duration, edits ...func(*Snapshot)) Snapshot {
		return given(running, append([]func(*Snapshot){ready, confirmed, deletedAt(now), seen(seenStopping, ago)}, edits...)...)
	}
	runs := answer(raySays(dashboard.JobRunning))
	knows := func(c step) step {
		c.wantState = running
		return c
	}
	runSteps(t, map[string]step{
		"Ray is asked first":                        knows(step{given: deleted(0)}),
		"a running job is stopped":                  knows(step{given: deleted(0, runs), want: []string{"stop train-x7k2m"}}),
		"a stop that Ray took is awaited":           knows(step{given: deleted(0, runs, stopped(nil))}),
		"a stopped job lets go":                     knows(step{given: deleted(time.Second, answer(raySays(dashboard.JobStopped))), want: []string{"finalizers "}}),
		"a stop that failed is repeated":            knows(step{given: deleted(0, runs, stopped(errors.New("refused"))), want: []string{"stop train-x7k2m"}}),
		"Ray's silence is not waited for for ever":  knows(step{given: deleted(time.Minute, answer(silent(time.Minute))), want: []string{"finalizers "}}),
		"nothing is stopped where the head is gone": knows(step{given: deleted(0, func(s *Snapshot) { s.Head = nil }), want: []string{"finalizers "}}),
		"nor where the job has ended":               knows(step{given: deleted(0, knownAs(rayv1.JobStatusSucceeded)), want: []string{"finalizers "}}),
		"other finalizers are none of ours":         knows(step{given: deleted(0, runs, func(s *Snapshot) { s.Job.Finalizers = []string{"other"} })}),
		"a job that never got anywhere lets go": {
			given: given(rayv1.JobDeploymentStatusInitializing, deletedAt(now)), wantState: rayv1.JobDeploymentStatusInitializing, want: []string{"finalizers "}},
	})
}
