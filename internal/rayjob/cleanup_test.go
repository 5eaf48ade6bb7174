package rayjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// over is a job that has ended so long ago, with its cluster of one worker group.
func over(phase rayv1.JobDeploymentStatus, said rayv1.JobStatus, ago time.Duration, edits ...func(*Snapshot)) Snapshot {
	end := func(s *Snapshot) {
		s.Job.Status.JobStatus = said
		s.Job.Status.EndTime = ptr.To(metav1.NewTime(now.Add(-ago)))
		s.Cluster.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{{GroupName: "workers"}}
	}
	return given(phase, slices.Concat([]func(*Snapshot){cluster(rayv1.ClusterStateReady), end, submitter(batchv1.JobComplete)}, edits)...)
}

// asks gives the snapshot's job edits of its spec.
func asks(edits ...edit) func(*Snapshot) {
	return func(s *Snapshot) {
		for _, e := range edits {
			e(s.Job)
		}
	}
}

func after(seconds int32) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) { s.ShutdownAfterJobFinishes, s.TTLSecondsAfterFinished = true, seconds })
}

// foreign gives the cluster to somebody else.
func foreign(s *Snapshot) { s.Cluster.OwnerReferences = nil }

func noCluster(s *Snapshot) { s.Cluster, s.ClusterService, s.Head = nil, nil, nil }

func workersSuspended(s *Snapshot) {
	for i := range s.Cluster.Spec.WorkerGroupSpecs {
		s.Cluster.Spec.WorkerGroupSpecs[i].Suspend = ptr.To(true)
	}
}

// kinds names the actions of a plan in the form "delete RayCluster": RayJob and submitter have one name.
func kinds(actions []action.Action) []string {
	var all []string
	kind := func(object action.Object) string { return strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.") }
	for _, a := range actions {
		switch a := a.(type) {
		case action.Delete:
			all = append(all, "delete "+kind(a.Object))
		case action.Update:
			all = append(all, "update "+kind(a.Object))
		default:
			all = append(all, fmt.Sprintf("%T", a))
		}
	}
	return all
}

func TestCleanUp(t *testing.T) {
	const (
		complete = rayv1.JobDeploymentStatusComplete
		failed   = rayv1.JobDeploymentStatusFailed
		good     = rayv1.JobStatusSucceeded
		bad      = rayv1.JobStatusFailed
		stopped  = rayv1.JobStatusStopped
		runs     = rayv1.JobStatusRunning
		workers  = rayv1.DeleteWorkers
		self     = rayv1.DeleteSelf
		none     = rayv1.DeleteNone
	)
	deleteSelf := settings
	deleteSelf.DeleteJobAfterFinish = true
	inSteps := rules(onJob(good, 10, workers), onJob(good, 20, rayv1.DeleteCluster), onJob(good, 30, self))
	byPhase := rules(onFailed(0, rayv1.DeleteCluster))
	for name, tc := range map[string]struct {
		given    Snapshot
		settings *Settings
		want     []string
		again    time.Duration
	}{
		"nothing is asked for": {given: over(complete, good, time.Hour)},

		"RJ-043 the delay is not over":          {given: over(complete, good, 8*time.Second, asks(after(10))), again: 2 * time.Second},
		"RJ-043 the delay is over":              {given: over(complete, good, 10*time.Second, asks(after(10))), want: []string{"delete RayCluster"}},
		"a cluster that goes is waited for":     {given: over(complete, good, time.Hour, asks(after(0)), func(s *Snapshot) { s.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) })},
		"a cluster that is gone needs nothing":  {given: over(complete, good, time.Hour, asks(after(0)), noCluster)},
		"a failed job's cluster goes as well":   {given: over(failed, bad, 0, asks(after(0))), want: []string{"delete RayCluster"}},
		"a submitter that hangs goes with it":   {given: over(complete, good, 0, asks(after(0)), submitter("")), want: []string{"delete RayCluster", "delete Job"}},
		"a submitter that hangs goes after it":  {given: over(complete, good, 0, asks(after(0)), noCluster, submitter("")), want: []string{"delete Job"}},
		"a submitter that hangs may stay first": {given: over(complete, good, 0, asks(after(10)), submitter("")), again: 10 * time.Second},
		"RJ-068 a spec edited to invalid":       {given: over(complete, good, time.Hour, asks(after(10), named("3d"), inMode("Foo"))), want: []string{"delete RayCluster"}},
		"an end without a time counts from now": {given: over(complete, good, 0, asks(after(10)), func(s *Snapshot) { s.Job.Status.EndTime = nil }), again: 10 * time.Second},

		"RJ-032 a selected cluster stays":            {given: over(complete, good, time.Hour, foreign, asks(onCluster("train-bcd4f"), after(0)))},
		"a selector that is added later stops none":  {given: over(complete, good, time.Hour, asks(onCluster("other"), after(0))), want: []string{"delete RayCluster"}},
		"a selector that is removed later adds none": {given: over(complete, good, time.Hour, foreign, asks(after(0)))},

		"RJ-044 the operator deletes RayJobs":     {given: over(complete, good, 0, asks(after(0))), settings: &deleteSelf, want: []string{"delete RayJob"}},
		"also when the cluster is gone already":   {given: over(complete, good, 0, asks(after(0)), noCluster), settings: &deleteSelf, want: []string{"delete RayJob"}},
		"but not the one with a selected cluster": {given: over(complete, good, 0, foreign, asks(onCluster("train-bcd4f"), after(0))), settings: &deleteSelf},
		"a submitter that hangs beside a selected cluster goes": {
			given: over(complete, good, 0, foreign, asks(onCluster("train-bcd4f"), after(0)), submitter("")), want: []string{"delete Job"}},
		"also when a selector was added later": {given: over(complete, good, 0, noCluster, asks(onCluster("other"), after(0))), settings: &deleteSelf, want: []string{"delete RayJob"}},
		"even if that is gone":                 {given: over(complete, good, 0, noCluster, asks(onCluster("train-bcd4f"), after(0))), settings: &deleteSelf},
		"nor the one with a strategy":          {given: over(complete, good, 0, asks(legacy(rayv1.DeleteCluster, none))), settings: &deleteSelf, want: []string{"delete RayCluster"}},

		"RJ-049 success, the older style":              {given: over(complete, good, 0, asks(legacy(rayv1.DeleteCluster, none))), want: []string{"delete RayCluster"}},
		"RJ-049 failure, the older style":              {given: over(failed, bad, time.Hour, asks(legacy(rayv1.DeleteCluster, none)))},
		"RJ-087 stopped is a failure":                  {given: over(complete, stopped, time.Hour, asks(legacy(workers, rayv1.DeleteCluster), after(10))), want: []string{"delete RayCluster"}},
		"never submitted is a failure":                 {given: over(failed, "", 0, asks(legacy(workers, rayv1.DeleteCluster))), want: []string{"delete RayCluster"}},
		"the delay of the older style":                 {given: over(complete, good, 4*time.Second, asks(legacy(self, none), after(10))), again: 6 * time.Second},
		"deleting the RayJob, the older style":         {given: over(complete, good, 0, asks(legacy(self, none))), want: []string{"delete RayJob"}},
		"deleting the RayJob, with a selected cluster": {given: over(complete, good, 0, foreign, asks(onCluster("train-bcd4f"), legacy(self, none))), want: []string{"delete RayJob"}},

		"RJ-045 before all":                  {given: over(complete, good, 9*time.Second, asks(inSteps)), again: time.Second},
		"RJ-045 first the workers":           {given: over(complete, good, 10*time.Second, asks(inSteps)), want: []string{"update RayCluster"}, again: 10 * time.Second},
		"RJ-045 once":                        {given: over(complete, good, 15*time.Second, asks(inSteps), workersSuspended), again: 5 * time.Second},
		"RJ-045 then the cluster":            {given: over(complete, good, 20*time.Second, asks(inSteps), workersSuspended), want: []string{"delete RayCluster"}, again: 10 * time.Second},
		"RJ-045 with the cluster gone":       {given: over(complete, good, 25*time.Second, asks(inSteps), noCluster), again: 5 * time.Second},
		"RJ-045 then the RayJob":             {given: over(complete, good, 30*time.Second, asks(inSteps), noCluster), want: []string{"delete RayJob"}},
		"RJ-046 all at once":                 {given: over(complete, good, time.Hour, asks(inSteps)), want: []string{"delete RayJob"}},
		"RJ-047 by the phase":                {given: over(failed, runs, 0, asks(byPhase)), want: []string{"delete RayCluster"}},
		"not by the phase of another end":    {given: over(complete, good, time.Hour, asks(byPhase))},
		"RJ-048 nothing, and that is a rule": {given: over(failed, bad, time.Hour, asks(rules(onJob(bad, 0, none), onJob(good, 0, self))))},
		"RJ-088 the RayJob, and not the selected cluster": {
			given: over(complete, good, 0, foreign, asks(onCluster("train-bcd4f"), rules(onJob(good, 0, self)))), want: []string{"delete RayJob"}},
		"L43 a deadline that no rule names": {
			given: over(failed, stopped, time.Hour, asks(rules(onJob(bad, 0, rayv1.DeleteCluster), onJob(good, 0, self)))), want: []string{"delete RayCluster"}},
		"a stopped job that no rule names": {
			given: over(complete, stopped, time.Hour, asks(rules(onJob(bad, 0, rayv1.DeleteCluster), onJob(good, 0, self)))), want: []string{"delete RayCluster"}},
		"the rules for FAILED are left out when another names the end": {
			given: over(failed, runs, time.Hour, asks(rules(onJob(bad, 0, self), onFailed(0, workers)))), want: []string{"update RayCluster"}},
		"a success is never taken for a failure": {given: over(complete, good, time.Hour, asks(rules(onJob(bad, 0, self))))},
		"an end that nothing covers":             {given: over(failed, bad, time.Hour, asks(rules(onJob(good, 0, self))))},

		"workers of a cluster of somebody else's": {given: over(complete, good, time.Hour, foreign, asks(legacy(workers, none)))},
		"workers of a cluster that is gone":       {given: over(complete, good, time.Hour, noCluster, asks(legacy(workers, none)))},
		"workers that an autoscaler looks after": {given: over(complete, good, time.Hour, asks(legacy(workers, none)), func(s *Snapshot) {
			s.Cluster.Spec.EnableInTreeAutoscaling = ptr.To(true)
		})},
		"a refused update waits": {given: over(complete, good, time.Hour, asks(legacy(workers, none)), func(s *Snapshot) {
			s.Holds = map[string]action.Hold{action.Update{Object: s.Cluster}.Key(): {Until: now.Add(7 * time.Second)}}
		}), again: 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.settings == nil {
				tc.settings = &settings
			}
			got := Plan(tc.given, *tc.settings, now)
			if diff := cmp.Diff(tc.want, kinds(got.Actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if got.LookAgain != tc.again {
				t.Errorf("looks again after %s, want %s", got.LookAgain, tc.again)
			}
		})
	}
}

func TestDeletingWorkersKeepsTheHead(t *testing.T) {
	s := over(rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded, 0, asks(legacy(rayv1.DeleteWorkers, rayv1.DeleteNone)))
	before := s.Cluster.DeepCopy()
	got := Plan(s, settings, now)
	if len(got.Actions) != 1 {
		t.Fatalf("actions: %v", verbs(got.Actions))
	}
	update := got.Actions[0].(action.Update)
	if update.Done.Reason != "UpdatedRayCluster" || update.Failed.Reason != "FailedToUpdateRayCluster" {
		t.Errorf("events are %s and %s", update.Done.Reason, update.Failed.Reason)
	}
	want := before.DeepCopy()
	want.Spec.WorkerGroupSpecs[0].Suspend = ptr.To(true)
	if diff := cmp.Diff(want, update.Object); diff != "" {
		t.Errorf("the wanted cluster (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, update.Base); diff != "" {
		t.Errorf("the cluster that the patch counts from (-want +got):\n%s", diff)
	}
}

func TestDeletesOfClustersNameTheOwner(t *testing.T) {
	got := Plan(over(rayv1.JobDeploymentStatusFailed, rayv1.JobStatusFailed, 0, asks(after(0))), settings, now)
	if len(got.Actions) != 1 || got.Actions[0].(action.Delete).Owner.GetUID() != "job-uid" {
		t.Errorf("the delete must be refused for a cluster of another owner: %+v", got.Actions)
	}
}

// Given rules that leave an end open, when the job comes to it, then that is told in the pass that ends the job, and not
// again.
func TestAnUncoveredEndIsToldOnce(t *testing.T) {
	onlyGood := rules(onJob(rayv1.JobStatusSucceeded, 0, rayv1.DeleteCluster))
	onlyBad := rules(onJob(rayv1.JobStatusFailed, 0, rayv1.DeleteCluster))
	for name, tc := range map[string]struct {
		asked edit
		says  dashboard.JobStatus
		edits []func(*Snapshot)
		want  int
	}{
		"a failure without a rule":               {asked: onlyGood, says: dashboard.JobFailed, want: 1},
		"a success without a rule":               {asked: onlyBad, says: dashboard.JobSucceeded, want: 1},
		"a stop without any rule":                {asked: onlyGood, says: dashboard.JobStopped, want: 1},
		"a stop that the rules for FAILED cover": {asked: onlyBad, says: dashboard.JobStopped},
		"a success with a rule":                  {asked: onlyGood, says: dashboard.JobSucceeded},
		"no strategy at all":                     {asked: named("train"), says: dashboard.JobFailed},
		"a cluster of somebody else's":           {asked: onlyGood, says: dashboard.JobFailed, edits: []func(*Snapshot){foreign, asks(onCluster("train-bcd4f"))}},
		"an attempt that another follows":        {asked: onlyGood, says: dashboard.JobFailed, edits: []func(*Snapshot){retry}},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(rayv1.JobDeploymentStatusRunning, slices.Concat([]func(*Snapshot){mode(rayv1.HTTPMode), cluster(rayv1.ClusterStateReady), confirmed,
				answer(raySays(tc.says)), asks(tc.asked)}, tc.edits)...)
			first := Plan(s, settings, now)
			if got := warnings(first.Events, "NoDeletionRuleMatches"); got != tc.want {
				t.Errorf("told %d times at the end, want %d: %v", got, tc.want, first.Events)
			}
			s.Job = first.Status.Object.(*rayv1.RayJob)
			if got := warnings(Plan(s, settings, now).Events, "NoDeletionRuleMatches"); got != 0 {
				t.Errorf("told %d times after the end", got)
			}
		})
	}
}

func warnings(events []action.Event, reason string) int {
	count := 0
	for _, e := range events {
		if e.Reason == reason && e.Type == corev1.EventTypeWarning {
			count++
		}
	}
	return count
}

// Given any spec and any end, nothing but the RayJob itself, its own cluster and its own submitter is ever written, and
// shutdownAfterJobFinishes holds whatever else was edited.
func TestCleanUpOfAnySpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phase := rapid.SampledFrom([]rayv1.JobDeploymentStatus{rayv1.JobDeploymentStatusComplete, rayv1.JobDeploymentStatusFailed}).Draw(t, "phase")
		said := rapid.SampledFrom([]rayv1.JobStatus{"", rayv1.JobStatusPending, rayv1.JobStatusRunning, rayv1.JobStatusStopped,
			rayv1.JobStatusSucceeded, rayv1.JobStatusFailed}).Draw(t, "jobStatus")
		s := over(phase, said, time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds since the end"))*time.Second)
		s.Job.Spec = drawSpec(t)
		own := rapid.Bool().Draw(t, "the cluster is its own")
		if !own {
			foreign(&s)
		}
		drawn := settings
		drawn.DeleteJobAfterFinish = rapid.Bool().Draw(t, "the operator deletes RayJobs")
		plan := Plan(s, drawn, now)
		for _, a := range plan.Actions {
			switch a := a.(type) {
			case action.Delete:
				_, isCluster := a.Object.(*rayv1.RayCluster)
				if isCluster && (!own || a.Owner == nil) {
					t.Fatalf("deletes a cluster that is not its own, or may not be")
				}
			case action.Update:
				if !own {
					t.Fatalf("updates a cluster of somebody else's")
				}
			default:
				t.Fatalf("does %T after the end", a)
			}
		}
		if s.Job.Spec.DeletionStrategy == nil && s.Job.Spec.ShutdownAfterJobFinishes && own && len(plan.Actions) == 0 && plan.LookAgain == 0 {
			t.Fatal("the cluster of a job that is to be shut down stays for ever")
		}
		if plan.LookAgain > 30*time.Second {
			t.Fatalf("looks again after %s, which is later than any rule", plan.LookAgain)
		}
	})
}
