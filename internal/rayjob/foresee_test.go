package rayjob

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/ray/poll"
)

func headGone(s *Snapshot) { s.Head = nil }

func suspendedSpec(s *Snapshot) { s.Job.Spec.Suspend, s.Job.Spec.ShutdownAfterJobFinishes = true, true }

func invalidSpec(s *Snapshot) { s.Job.Spec.SubmissionMode = "Carrier pigeon" }

// settled lets plans without memory be carried out until there is no status to write.
func settled(s *Snapshot) {
	for range 5 {
		o := Foresee(*s, settings, now)
		if o.Status == nil {
			return
		}
		s.Job = o.Status.Object.(*rayv1.RayJob)
	}
}

// stalledBy is what the status says while the API server refuses the cluster.
func stalledBy(message string) func(*Snapshot) {
	return func(s *Snapshot) {
		s.Holds = map[string]action.Hold{roleCluster: {Until: now.Add(time.Minute), Reason: "FailedToCreateRayCluster", Message: message}}
		s.Job = Plan(*s, settings, now).Status.Object.(*rayv1.RayJob)
		s.Holds = nil
	}
}

func TestForesee(t *testing.T) {
	running := rayv1.JobDeploymentStatusRunning
	for name, test := range map[string]struct {
		given Snapshot
		// does are the actions, status is why the status is written; both may be empty.
		does   []string
		status string
		// asks, waits and unknown are parts of the sentences, one for each sentence.
		asks, waits, unknown []string
	}{
		"a new job begins":                      {given: given(rayv1.JobDeploymentStatusNew), status: "New is now Initializing", waits: []string{"RayCluster train-"}},
		"it needs its cluster":                  {given: given(rayv1.JobDeploymentStatusInitializing, settled), does: []string{"create train-bcd4f"}, waits: []string{"RayCluster train-bcd4f to be ready"}},
		"it waits for its cluster":              {given: given(rayv1.JobDeploymentStatusInitializing, cluster(""), settled), waits: []string{"RayCluster train-bcd4f to be ready"}},
		"a refused cluster stays what it is":    {given: given(rayv1.JobDeploymentStatusInitializing, stalledBy("exceeded quota")), does: []string{"create train-bcd4f"}, waits: []string{"RayCluster"}, unknown: []string{"exceeded quota"}},
		"a running job is asked about":          {given: given(running, cluster(rayv1.ClusterStateReady), confirmed, settled), asks: []string{"about job train-x7k2m, and follows what it says"}},
		"one to submit over HTTP":               {given: given(running, mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), settled), asks: []string{"sends the job if Ray does not know it"}},
		"one to submit by a Job":                {given: given(running, cluster(rayv1.ClusterStateReady), settled), asks: []string{"makes the submitter Job if Ray does not know it"}},
		"one with a submitter":                  {given: given(running, cluster(rayv1.ClusterStateReady), submitter(""), settled), asks: []string{"until it is submitted"}},
		"an unknown session":                    {given: given(running, cluster(rayv1.ClusterStateReady), func(s *Snapshot) { s.Job.Status.Submission = nil }, settled), asks: []string{"records the session"}},
		"without its head it may be lost":       {given: given(running, cluster(rayv1.ClusterStateReady), confirmed, settled, headGone), unknown: []string{"head Pod head is gone: the attempt is over with JobLost, unless"}},
		"so may one that is deleted":            {given: given(running, cluster(rayv1.ClusterStateReady), confirmed, settled, headGone, deletedAt(now)), unknown: []string{"head Pod head is gone"}},
		"without its cluster it is lost":        {given: given(running, confirmed), status: "Running is now Failed"},
		"a deleted one is to be stopped":        {given: given(running, cluster(rayv1.ClusterStateReady), confirmed, settled, deletedAt(now)), asks: []string{"and to stop it; the RayJob goes when it has stopped"}},
		"a deleted one that never ran goes":     {given: given(rayv1.JobDeploymentStatusInitializing, deletedAt(now)), does: []string{"finalizers "}},
		"the last valid spec is not known":      {given: given(running, cluster(rayv1.ClusterStateReady), confirmed, settled, invalidSpec), unknown: []string{"its last valid spec asked, which only the operator knows"}},
		"an invalid one does not begin":         {given: given(rayv1.JobDeploymentStatusNew, invalidSpec), status: "New is now ValidationFailed", waits: []string{"the spec to be corrected"}},
		"a suspended one waits for that":        {given: given(rayv1.JobDeploymentStatusSuspended, suspendedSpec, settled), waits: []string{"spec.suspend to be false"}},
		"an interactive one waits for its user": {given: given(rayv1.JobDeploymentStatusWaiting, mode(rayv1.InteractiveMode), cluster(rayv1.ClusterStateReady), settled), waits: []string{"the user to submit the job"}},
		"a retry waits for the rest":            {given: given(rayv1.JobDeploymentStatusRetrying, cluster(rayv1.ClusterStateReady), settled), does: []string{"delete train-bcd4f"}, waits: []string{"RayCluster train-bcd4f"}},
		"an end waits for the log": {given: given(running, cluster(rayv1.ClusterStateReady), confirmed, knownAs(rayv1.JobStatusSucceeded), submitter(""), settled),
			waits: []string{"the submitter, which prints the log"}},
		"an ended one is at rest": {given: given(rayv1.JobDeploymentStatusComplete, cluster(rayv1.ClusterStateReady), confirmed, knownAs(rayv1.JobStatusSucceeded), settled)},
		"others manage it": {given: given(running, func(s *Snapshot) { s.Job.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue") }),
			waits: []string{"spec.managedBy leaves the job to kueue.x-k8s.io/multikueue"}},
		"there is none": {},
	} {
		t.Run(name, func(t *testing.T) {
			o := Foresee(test.given, settings, now)
			if does := verbs(o.Actions); !slices.Equal(does, test.does) {
				t.Errorf("it does %v, want %v", does, test.does)
			}
			status := ""
			if o.Status != nil {
				status = o.Status.Why
			}
			if status != test.status {
				t.Errorf("it writes the status because %q, want %q", status, test.status)
			}
			for what, sentences := range map[string][2][]string{"asks": {o.Asks, test.asks}, "waits": {o.Waits, test.waits}, "unknown": {o.Unknown, test.unknown}} {
				if !slices.EqualFunc(sentences[0], sentences[1], strings.Contains) {
					t.Errorf("%s: %q, want %q", what, sentences[0], sentences[1])
				}
			}
		})
	}
}

// memories are things that an operator may know besides what stands in the API server. Ends that Ray has told of are not among
// them: they are written at once.
func memories() map[string]func(*Snapshot) {
	silent := func(o *poll.Observation) {
		o.Err, o.Failures, o.FailingSince = errors.New("silent"), 9, now.Add(-time.Minute)
	}
	return map[string]func(*Snapshot){
		"nothing":          func(*Snapshot) {},
		"that it runs":     answer(raySays(dashboard.JobRunning)),
		"that it is not":   answer(rayDoesNotKnow),
		"silence":          answer(silent),
		"a long stop":      seen(seenStopping, time.Hour),
		"a long take-down": seen(seenTakeDown, time.Hour),
		"a submission": func(s *Snapshot) {
			s.Sent = &action.Outcome{BaseURL: dashboardAt, ID: s.Job.Status.JobId, At: now.Add(-time.Second)}
		},
	}
}

// TestWhatIsForeseenIsDoneWhateverIsRemembered plans for jobs in all states with and without a memory: a write that one without
// memory foresees is one that the other makes as well.
func TestWhatIsForeseenIsDoneWhateverIsRemembered(t *testing.T) {
	states := []rayv1.JobDeploymentStatus{
		rayv1.JobDeploymentStatusNew, rayv1.JobDeploymentStatusInitializing, rayv1.JobDeploymentStatusWaiting, rayv1.JobDeploymentStatusRunning,
		rayv1.JobDeploymentStatusSuspending, rayv1.JobDeploymentStatusSuspended, rayv1.JobDeploymentStatusRetrying,
		rayv1.JobDeploymentStatusComplete, rayv1.JobDeploymentStatusFailed,
	}
	none := func(*Snapshot) {}
	recorded := func(s *Snapshot) {
		if s.Job.Status.Submission != nil {
			confirmed(s)
		}
	}
	without := func(edit func(*Snapshot)) func(*Snapshot) {
		return func(s *Snapshot) {
			cluster(rayv1.ClusterStateReady)(s)
			edit(s)
		}
	}
	worlds := map[string]func(*Snapshot){
		"no cluster": none, "a cluster": cluster(rayv1.ClusterStateReady), "no head": without(headGone),
		"another head":  without(func(s *Snapshot) { s.Head = headPod("other") }),
		"an ended head": without(head(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })),
		"a submitter":   without(submitter("")), "a failed submitter": without(submitter(batchv1.JobFailed)),
	}
	wishes := map[string]func(*Snapshot){
		"nothing": none, "its end": deletedAt(now), "a rest": suspendedSpec, "a stop": stoppingFor("DeadlineExceeded"),
		"haste": func(s *Snapshot) { s.Job.Spec.ActiveDeadlineSeconds = ptr.To[int32](1) }, "nonsense": invalidSpec,
	}
	for _, state := range states {
		for world, there := range worlds {
			for wish, wanted := range wishes {
				for told, known := range map[string]func(*Snapshot){"unconfirmed": none, "confirmed": recorded} {
					s := given(state, there, known, wanted)
					foreseen := Foresee(s, settings, now)
					for memory, remember := range memories() {
						t.Run(fmt.Sprintf("%s/%s/wants %s/%s/remembers %s", state, world, wish, told, memory), func(t *testing.T) {
							knowing := s
							knowing.FirstSeen = map[fact]time.Time{}
							remember(&knowing)
							doesWhatIsForeseen(t, foreseen, Plan(knowing, settings, now))
						})
					}
				}
			}
		}
	}
}

func doesWhatIsForeseen(t *testing.T, foreseen action.Outlook, decision Decision) {
	t.Helper()
	does := verbs(decision.Actions)
	for _, verb := range verbs(foreseen.Actions) {
		if !slices.Contains(does, verb) {
			t.Errorf("%q is foreseen, and done are %v", verb, does)
		}
	}
	if foreseen.Status == nil {
		return
	}
	before, after := phases(foreseen.Status)
	if before == after {
		return
	}
	if decision.Status == nil {
		t.Fatalf("%s is foreseen to become %s, and stays", before, after)
	}
	if _, really := phases(decision.Status); really != after {
		t.Errorf("%s is foreseen to become %s, and becomes %s", before, after, really)
	}
}

func phases(write *action.StatusWrite) (before, after rayv1.JobDeploymentStatus) {
	return write.Base.(*rayv1.RayJob).Status.JobDeploymentStatus, write.Object.(*rayv1.RayJob).Status.JobDeploymentStatus
}

// TestLastWordsOfSilenceStand: that Ray does not answer is told again only by somebody who has asked.
func TestLastWordsOfSilenceStand(t *testing.T) {
	silent := func(o *poll.Observation) {
		o.Err, o.Failures, o.FailingSince = errors.New("connection refused"), 9, now.Add(-time.Minute)
	}
	s := given(rayv1.JobDeploymentStatusRunning, cluster(rayv1.ClusterStateReady), confirmed, answer(silent))
	s.Job = Plan(s, settings, now).Status.Object.(*rayv1.RayJob)
	if s.Job.Status.JobStatusCheckFailureStartTime.Equal(&metav1.Time{}) {
		t.Fatal("the silence is not recorded")
	}
	s.Answer = nil
	if write := Plan(s, settings, now).Status; write != nil {
		t.Errorf("somebody who has not asked writes the status because %s", write.Why)
	}
}
