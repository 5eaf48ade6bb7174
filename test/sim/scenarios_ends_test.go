package sim

import (
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// endScenarios are those of deadlines, and of what is cleaned up after the end.
func endScenarios() []scenario {
	long := []dashboard.JobStatus{forever}
	active := func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](60) }
	preRunning := func(j *rayv1.RayJob) { j.Spec.PreRunningDeadlineSeconds = ptr.To[int32](60) }
	neverReady := func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0].Env = missingSecret()
	}
	later := func(j *rayv1.RayJob) { j.Spec.TTLSecondsAfterFinished = 30 }
	return []scenario{
		{name: "a running job misses its deadline", timed: true, race: true, objects: trains(active), usesHTTP: true, outcomes: long},
		{name: "a running job over HTTP misses its deadline, and its cluster stays", timed: true, race: true,
			objects: trains(active, overHTTP, keepAfter), usesHTTP: true, outcomes: long},
		{name: "a job that waits for its user misses its deadline", timed: true, race: true, objects: trains(interactive, active), usesHTTP: true},
		{name: "a cluster never gets ready", timed: true, race: true, objects: trains(preRunning, neverReady)},
		{name: "two clusters never get ready", timed: true, race: true, objects: trains(preRunning, neverReady, retried)},
		{name: "a cluster goes some time after its job", timed: true, objects: trains(later)},
		{name: "a cluster goes some time after its job has failed", timed: true, objects: trains(later), outcomes: []dashboard.JobStatus{dashboard.JobFailed}},
		{name: "workers go, then the cluster", timed: true, objects: trains(rules(
			rule(rayv1.DeleteWorkers, dashboard.JobSucceeded, 20), rule(rayv1.DeleteCluster, dashboard.JobSucceeded, 50)))},
		{name: "workers go, and the head stays", timed: true, objects: trains(rules(rule(rayv1.DeleteWorkers, dashboard.JobSucceeded, 20)))},
		{name: "the RayJob deletes itself", timed: true, objects: trains(rules(rule(rayv1.DeleteSelf, dashboard.JobSucceeded, 20)))},
		{name: "a failed job keeps its cluster", timed: true, outcomes: []dashboard.JobStatus{dashboard.JobFailed}, objects: trains(rules(
			rule(rayv1.DeleteCluster, dashboard.JobSucceeded, 20), rule(rayv1.DeleteNone, dashboard.JobFailed, 0)))},
		{name: "the older strategy deletes the cluster of a failed job", outcomes: []dashboard.JobStatus{dashboard.JobFailed},
			objects: trains(keepAfter, func(j *rayv1.RayJob) {
				j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{OnSuccess: policy(rayv1.DeleteNone), OnFailure: policy(rayv1.DeleteCluster)}
			})},
		{name: "the older strategy deletes the workers of a job that succeeded", objects: trains(keepAfter, func(j *rayv1.RayJob) {
			j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{OnSuccess: policy(rayv1.DeleteWorkers), OnFailure: policy(rayv1.DeleteSelf)}
		})},
	}
}

func rules(rules ...rayv1.DeletionRule) func(*rayv1.RayJob) {
	return func(j *rayv1.RayJob) {
		j.Spec.ShutdownAfterJobFinishes = false
		j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{DeletionRules: rules}
	}
}

func rule(what rayv1.DeletionPolicyType, after dashboard.JobStatus, seconds int32) rayv1.DeletionRule {
	return rayv1.DeletionRule{Policy: what, Condition: rayv1.DeletionCondition{JobStatus: ptr.To(rayv1.JobStatus(after)), TTLSeconds: seconds}}
}

func policy(what rayv1.DeletionPolicyType) *rayv1.DeletionPolicy {
	return &rayv1.DeletionPolicy{Policy: &what}
}
