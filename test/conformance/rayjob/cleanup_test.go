package rayjob

import (
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// shutDown sets shutdownAfterJobFinishes, with a delay.
func shutDown(seconds int32) edit {
	return func(j *rayv1.RayJob) { j.Spec.ShutdownAfterJobFinishes, j.Spec.TTLSecondsAfterFinished = true, seconds }
}

// rule is one deletion rule.
func rule(policy rayv1.DeletionPolicyType, after rayv1.DeletionCondition) edit {
	return func(j *rayv1.RayJob) {
		if j.Spec.DeletionStrategy == nil {
			j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{}
		}
		j.Spec.DeletionStrategy.DeletionRules = append(j.Spec.DeletionStrategy.DeletionRules, rayv1.DeletionRule{Policy: policy, Condition: after})
	}
}

func afterSuccess(seconds int32) rayv1.DeletionCondition {
	return rayv1.DeletionCondition{JobStatus: ptr.To(rayv1.JobStatusSucceeded), TTLSeconds: seconds}
}

func afterFailure(seconds int32) rayv1.DeletionCondition {
	return rayv1.DeletionCondition{JobDeploymentStatus: ptr.To(rayv1.JobDeploymentStatusFailed), TTLSeconds: seconds}
}

// both sets the older style of a deletionStrategy.
func both(onSuccess, onFailure rayv1.DeletionPolicyType) edit {
	return func(j *rayv1.RayJob) {
		j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{
			OnSuccess: &rayv1.DeletionPolicy{Policy: &onSuccess}, OnFailure: &rayv1.DeletionPolicy{Policy: &onFailure}}
	}
}

func cleanupCases() []Case {
	return []Case{
		{Row: 43, Kind: same, Given: "shutdownAfterJobFinishes, a ttl", When: "the job has ended", Then: "the cluster goes when the ttl is over, not before; the submitter stays", Run: shutsDown},
		{Row: 44, Kind: same, Given: "operator with DELETE_RAYJOB_CR_AFTER_JOB_FINISHES, shutdownAfterJobFinishes", When: "the ttl is over", Then: "the RayJob goes, and all that it made", Run: func(e *env) {
			e.start(harness.Env("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", "true"))
			job, _ := e.submitted(shutDown(1))
			cluster, submitter, seen := e.cluster(job), e.submitter(job), e.record()
			e.ends(job, rayv1.JobStatusSucceeded)
			e.gone(job)
			e.Expect(seen.phases()).To(ContainElement(rayv1.JobDeploymentStatusComplete))
			e.gone(cluster)
			e.gone(submitter)
		}},
		{Row: 45, Kind: same, Given: "rules for workers, cluster and self", When: "one after the other becomes due", Then: "worker groups are suspended, then the cluster goes, then the RayJob", Run: followsTheRules},
		{Row: 46, Kind: same, Given: "the same rules, all due while there was no operator", When: "the operator starts", Then: "the RayJob is deleted at once", Run: takesTheStrongestRule},
		{Row: 47, Kind: same, Given: "a rule on jobDeploymentStatus Failed", When: "the deadline is exceeded", Then: "the rule is carried out", Run: func(e *env) {
			job, _ := e.submitted(mode(rayv1.HTTPMode), rule(rayv1.DeleteCluster, afterFailure(0)))
			cluster := e.cluster(job)
			e.change(job, mayTake(1))
			e.fails(job, rayv1.DeadlineExceeded)
			e.gone(cluster)
		}},
		{Row: 48, Kind: same, Given: "a rule DeleteNone", When: "the job has ended", Then: "nothing is deleted", Run: func(e *env) {
			job := e.succeeded(rule(rayv1.DeleteNone, afterSuccess(0)))
			e.keepsAll(job)
		}},
		{Row: 49, Kind: same, Given: "onSuccess DeleteCluster, onFailure DeleteNone", When: "one job succeeds and one fails", Then: "the cluster of the first goes, that of the second stays", Run: func(e *env) {
			good := e.succeeded(both(rayv1.DeleteCluster, rayv1.DeleteNone), func(j *rayv1.RayJob) { j.Name = "good" })
			e.soon(func() any { return len(e.clusters()) }).Should(BeZero())
			bad, _ := e.submitted(both(rayv1.DeleteCluster, rayv1.DeleteNone))
			e.ends(bad, rayv1.JobStatusFailed)
			e.fails(bad, rayv1.AppFailed)
			e.keepsAll(bad)
			e.phase(good, rayv1.JobDeploymentStatusComplete)
		}},
	}
}

// keepsAll checks that the cluster and the submitter of a job stay.
func (e *env) keepsAll(job *rayv1.RayJob) {
	e.t.Helper()
	e.rest()
	e.turn()
	e.Expect(e.cluster(job).DeletionTimestamp).To(BeNil())
	e.Expect(e.submitter(job).DeletionTimestamp).To(BeNil())
}

func shutsDown(e *env) {
	const ttl = 4
	job, _ := e.submitted(shutDown(ttl))
	cluster := e.cluster(job)
	e.hold(cluster) // so that it stays long enough to say when it was deleted
	e.ends(job, rayv1.JobStatusSucceeded)
	e.phase(job, rayv1.JobDeploymentStatusComplete)
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return cluster.DeletionTimestamp
	}).ShouldNot(BeNil())
	e.Expect(cluster.DeletionTimestamp.Time).To(BeTemporally(">=", job.Status.EndTime.Add(ttl*time.Second)))
	e.release(cluster)
	e.gone(cluster)
	e.rest()
	e.Expect(e.submitter(job).DeletionTimestamp).To(BeNil())
	e.phase(job, rayv1.JobDeploymentStatusComplete)
}

// inSteps sets rules that delete more and more.
func inSteps(workers, cluster, self int32) edit {
	return func(j *rayv1.RayJob) {
		j.Spec.DeletionStrategy = nil
		rule(rayv1.DeleteWorkers, afterSuccess(workers))(j)
		rule(rayv1.DeleteCluster, afterSuccess(cluster))(j)
		rule(rayv1.DeleteSelf, afterSuccess(self))(j)
	}
}

// hour is longer than any case takes: rules become due when a case says so.
const hour = 3600

func followsTheRules(e *env) {
	job := e.succeeded(inSteps(0, hour, hour))
	cluster := e.cluster(job)
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return ptr.Deref(cluster.Spec.WorkerGroupSpecs[0].Suspend, false)
	}).Should(BeTrue())
	e.soon(func() any { return len(e.Pods(e.t, e.ns, harness.WorkersOf(cluster.Name))) }).Should(BeZero())
	e.rest()
	e.Expect(e.isGone(cluster)).To(BeFalse())
	e.Expect(harness.Alive(e.heads(job))).To(HaveLen(1))

	e.change(job, inSteps(0, 0, hour))
	e.gone(cluster)
	e.rest()
	e.phase(job, rayv1.JobDeploymentStatusComplete)

	e.change(job, inSteps(0, 0, 0))
	e.gone(job)
}

func takesTheStrongestRule(e *env) {
	job := e.succeeded(inSteps(hour, hour, hour))
	cluster := e.cluster(job)
	e.operator.Stop()
	e.change(job, inSteps(0, 0, 0))
	e.start()
	e.gone(job)
	e.gone(cluster)
	e.rest()
	writes := e.operator.Traffic
	e.Expect([]int{writes.Count("patch", "rayclusters"), writes.Count("delete", "rayclusters"), writes.Count("delete", "rayjobs")}).To(Equal([]int{0, 0, 1}))
}
