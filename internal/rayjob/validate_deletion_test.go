package rayjob

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func onJob(status rayv1.JobStatus, ttl int32, policy rayv1.DeletionPolicyType) rayv1.DeletionRule {
	return rayv1.DeletionRule{Policy: policy, Condition: rayv1.DeletionCondition{JobStatus: &status, TTLSeconds: ttl}}
}

func onFailed(ttl int32, policy rayv1.DeletionPolicyType) rayv1.DeletionRule {
	return rayv1.DeletionRule{Policy: policy, Condition: rayv1.DeletionCondition{
		JobDeploymentStatus: ptr.To(rayv1.JobDeploymentStatusFailed), TTLSeconds: ttl}}
}

func rules(all ...rayv1.DeletionRule) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) { s.DeletionStrategy = &rayv1.DeletionStrategy{DeletionRules: all} })
}

func legacy(onSuccess, onFailure rayv1.DeletionPolicyType) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) {
		s.DeletionStrategy = &rayv1.DeletionStrategy{
			OnSuccess: &rayv1.DeletionPolicy{Policy: &onSuccess}, OnFailure: &rayv1.DeletionPolicy{Policy: &onFailure}}
	})
}

func strategy(s rayv1.DeletionStrategy) edit {
	return jobSpec(func(spec *rayv1.RayJobSpec) { spec.DeletionStrategy = &s })
}

func TestValidateDeletionStrategy(t *testing.T) {
	const (
		at      = "spec.deletionStrategy"
		workers = rayv1.DeleteWorkers
		cluster = rayv1.DeleteCluster
		self    = rayv1.DeleteSelf
		none    = rayv1.DeleteNone
		good    = rayv1.JobStatusSucceeded
		bad     = rayv1.JobStatusFailed
	)
	one := ptr.To(cluster)
	for name, tc := range map[string]struct {
		refused, taken []edit
		want           violation
	}{
		"a strategy that says nothing": {
			refused: []edit{strategy(rayv1.DeletionStrategy{})}, taken: []edit{legacy(cluster, none)},
			want: violation{at, "give deletionRules"}},
		"both styles": {
			refused: []edit{strategy(rayv1.DeletionStrategy{OnSuccess: &rayv1.DeletionPolicy{Policy: one}, OnFailure: &rayv1.DeletionPolicy{Policy: one},
				DeletionRules: []rayv1.DeletionRule{onJob(good, 0, cluster)}})},
			taken: []edit{legacy(cluster, cluster)},
			want:  violation{at + ".deletionRules", "onSuccess"}},
		"one side only": {
			refused: []edit{strategy(rayv1.DeletionStrategy{OnSuccess: &rayv1.DeletionPolicy{Policy: one}})}, taken: []edit{legacy(cluster, self)},
			want: violation{at + ".onFailure.policy", "both"}},
		"a side without a policy": {
			refused: []edit{strategy(rayv1.DeletionStrategy{OnSuccess: &rayv1.DeletionPolicy{}, OnFailure: &rayv1.DeletionPolicy{Policy: one}})},
			taken:   []edit{legacy(none, cluster)},
			want:    violation{at + ".onSuccess.policy", "both"}},
		"an unknown policy": {
			refused: []edit{legacy("DeleteHead", none)}, taken: []edit{legacy(self, none)}, want: violation{at + ".onSuccess.policy", "DeleteSelf"}},
		"deleting a selected cluster": {
			refused: []edit{onCluster("shared"), legacy(self, cluster)}, taken: []edit{onCluster("shared"), legacy(self, none)},
			want: violation{at + ".onFailure.policy", "clusterSelector"}},
		"deleting workers that the autoscaler starts again": {
			refused: []edit{jobSpec(autoscaled), legacy(workers, cluster)}, taken: []edit{jobSpec(autoscaled), legacy(cluster, cluster)},
			want: violation{at + ".onSuccess.policy", "enableInTreeAutoscaling"}},
		"deleting nothing and shutting down": {
			refused: []edit{jobSpec(shutdown), legacy(cluster, none)}, taken: []edit{jobSpec(shutdown), legacy(cluster, workers)},
			want: violation{at + ".onFailure.policy", "shutdownAfterJobFinishes"}},
		"rules and shutting down": {
			refused: []edit{jobSpec(shutdown), rules(onJob(good, 0, cluster))}, taken: []edit{rules(onJob(good, 0, cluster))},
			want: violation{"spec.shutdownAfterJobFinishes", "deletionRules"}},
		"a rule with two conditions": {
			refused: []edit{rules(rayv1.DeletionRule{Policy: cluster, Condition: rayv1.DeletionCondition{
				JobStatus: ptr.To(bad), JobDeploymentStatus: ptr.To(rayv1.JobDeploymentStatusFailed)}})},
			taken: []edit{rules(onJob(bad, 0, cluster), onFailed(0, cluster))},
			want:  violation{at + ".deletionRules[0].condition.jobDeploymentStatus", "one rule for each"}},
		"a rule without a condition": {
			refused: []edit{rules(onFailed(0, cluster), rayv1.DeletionRule{Policy: self})}, taken: []edit{rules(onFailed(0, cluster), onFailed(0, self))},
			want: violation{at + ".deletionRules[1].condition", "jobStatus or"}},
		"a condition that no job comes to": {
			refused: []edit{rules(onJob(rayv1.JobStatusStopped, 0, cluster))}, taken: []edit{rules(onJob(bad, 0, cluster))},
			want: violation{at + ".deletionRules[0].condition.jobStatus", "SUCCEEDED"}},
		"a phase that is no end": {
			refused: []edit{rules(rayv1.DeletionRule{Policy: cluster, Condition: rayv1.DeletionCondition{
				JobDeploymentStatus: ptr.To(rayv1.JobDeploymentStatusRunning)}})},
			taken: []edit{rules(onFailed(0, cluster))},
			want:  violation{at + ".deletionRules[0].condition.jobDeploymentStatus", "Failed"}},
		"a rule in the past": {
			refused: []edit{rules(onJob(good, -1, cluster))}, taken: []edit{rules(onJob(good, 0, cluster))},
			want: violation{at + ".deletionRules[0].condition.ttlSeconds", "negative"}},
		"a rule that deletes a selected cluster": {
			refused: []edit{onCluster("shared"), rules(onJob(good, 0, cluster))}, taken: []edit{onCluster("shared"), rules(onJob(good, 0, self))},
			want: violation{at + ".deletionRules[0].policy", "clusterSelector"}},
		"a rule that deletes workers that the autoscaler starts again": {
			refused: []edit{jobSpec(autoscaled), rules(onJob(good, 0, workers))}, taken: []edit{rules(onJob(good, 0, workers))},
			want: violation{at + ".deletionRules[0].policy", "enableInTreeAutoscaling"}},
		"one thing twice": {
			refused: []edit{rules(onJob(good, 1, cluster), onJob(bad, 1, cluster), onJob(good, 2, cluster))},
			taken:   []edit{rules(onJob(good, 1, cluster), onJob(bad, 1, cluster), onFailed(2, cluster))},
			want:    violation{at + ".deletionRules[2].policy", "jobStatus SUCCEEDED already, spec.deletionStrategy.deletionRules[0]"}},
		"workers after their cluster": {
			refused: []edit{rules(onJob(good, 20, cluster), onJob(good, 21, workers))},
			taken:   []edit{rules(onJob(good, 20, cluster), onJob(good, 20, workers), onJob(bad, 21, workers))},
			want:    violation{at + ".deletionRules[1].condition.ttlSeconds", "DeleteCluster for jobStatus SUCCEEDED, which is 20"}},
		"a cluster after its RayJob": {
			refused: []edit{rules(onFailed(30, cluster), onFailed(5, self))}, taken: []edit{rules(onFailed(5, cluster), onFailed(30, self))},
			want: violation{at + ".deletionRules[0].condition.ttlSeconds", "DeleteSelf for jobDeploymentStatus Failed, which is 5"}},
		"workers after their RayJob": {
			refused: []edit{rules(onFailed(6, workers), onFailed(5, self))}, taken: []edit{rules(onFailed(6, none), onFailed(5, self))},
			want: violation{at + ".deletionRules[0].condition.ttlSeconds", "DeleteSelf for jobDeploymentStatus Failed, which is 5"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkRule(t, tc.refused, tc.taken, tc.want)
		})
	}
}

func TestDeletionStrategyNeedsItsGate(t *testing.T) {
	off := settings
	off.DeletionPolicy = false
	all := violations(t, Validate(edited(legacy(rayv1.DeleteCluster, rayv1.DeleteNone)), off))
	if len(all) != 1 || all[0].Field != "spec.deletionStrategy" {
		t.Errorf("want one error of spec.deletionStrategy, not %v", all)
	}
	if err := Validate(edited(jobSpec(shutdown)), off); err != nil {
		t.Errorf("shutdownAfterJobFinishes needs no gate: %v", err)
	}
}

func TestValidateReportsAllRulesTogether(t *testing.T) {
	job := edited(rules(onJob(rayv1.JobStatusSucceeded, 9, rayv1.DeleteWorkers), rayv1.DeletionRule{Policy: rayv1.DeleteSelf},
		onJob(rayv1.JobStatusSucceeded, 5, rayv1.DeleteSelf), onJob(rayv1.JobStatusSucceeded, -1, rayv1.DeleteSelf)))
	var fields []string
	for _, e := range violations(t, Validate(job, settings)) {
		fields = append(fields, e.Field)
	}
	at := "spec.deletionStrategy.deletionRules"
	want := []string{at + "[1].condition", at + "[3].condition.ttlSeconds", at + "[3].policy", at + "[0].condition.ttlSeconds"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestUncoveredOutcomesAreNoted(t *testing.T) {
	const note = "no rule of spec.deletionStrategy.deletionRules "
	deadline := jobSpec(func(s *rayv1.RayJobSpec) { s.ActiveDeadlineSeconds = ptr.To[int32](60) })
	success := onJob(rayv1.JobStatusSucceeded, 0, rayv1.DeleteCluster)
	failure := onJob(rayv1.JobStatusFailed, 0, rayv1.DeleteCluster)
	for name, tc := range map[string]struct {
		given []edit
		want  []string
	}{
		"no rules":                       {},
		"no strategy, with a deadline":   {given: []edit{deadline, jobSpec(shutdown)}},
		"the older style covers all":     {given: []edit{deadline, legacy(rayv1.DeleteCluster, rayv1.DeleteNone)}},
		"success and failure":            {given: []edit{rules(success, failure)}},
		"success, failure, and deadline": {given: []edit{deadline, rules(success, failure, onFailed(0, rayv1.DeleteCluster))}},
		"a selected cluster stays anyway": {given: []edit{onCluster("shared"), deadline,
			rules(onJob(rayv1.JobStatusFailed, 0, rayv1.DeleteSelf))}},
		"a deadline that only the rules for FAILED are left to cover (L43)": {given: []edit{deadline, rules(success, failure)},
			want: []string{note + "has the condition jobDeploymentStatus Failed, which is how a job ends that misses a deadline: " +
				"the rules for jobStatus FAILED are applied then"}},
		"only FAILED": {given: []edit{rules(failure)}, want: []string{note + "covers a job that succeeds: nothing is deleted then"}},
		"only Failed": {given: []edit{deadline, rules(onFailed(0, rayv1.DeleteCluster))},
			want: []string{note + "covers a job that succeeds; or a job that is stopped: nothing is deleted then"}},
		"only SUCCEEDED": {given: []edit{deadline, rules(success)},
			want: []string{note + "covers a job that fails; or a job that is stopped; or a job that never gets to Ray, is lost or misses a deadline: " +
				"nothing is deleted then"}},
	} {
		t.Run(name, func(t *testing.T) {
			job := edited(tc.given...)
			if err := Validate(job, settings); err != nil {
				t.Fatalf("a note is about a valid spec: %v", err)
			}
			if diff := cmp.Diff(tc.want, uncovered(&job.Spec)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// Given any spec that the API server can hold, Validate returns, and says the same twice.
func TestValidateTakesAnySpec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := edited()
		job.Name, job.Spec = drawText(t, "name"), drawSpec(t)
		first, second := Validate(job, settings), Validate(job.DeepCopy(), settings)
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Fatalf("two looks at one spec differ:\n%v\n%v", first, second)
		}
		uncovered(&job.Spec)
	})
}
