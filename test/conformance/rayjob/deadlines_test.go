package rayjob

import (
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// mayTake sets activeDeadlineSeconds.
func mayTake(seconds int32) edit {
	return func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To(seconds) }
}

// mayWait sets preRunningDeadlineSeconds.
func mayWait(seconds int32) edit {
	return func(j *rayv1.RayJob) { j.Spec.PreRunningDeadlineSeconds = ptr.To(seconds) }
}

func deadlineCases() []Case {
	return []Case{
		{Row: 36, Kind: same, Given: "a running job, activeDeadlineSeconds, backoffLimit 2", When: "the time is over", Then: "Failed, DeadlineExceeded, failed 1, no retry",
			How: "and the Ray job is stopped", Run: func(e *env) {
				job, _ := e.submitted(mode(rayv1.HTTPMode), retries(2))
				e.change(job, mayTake(1))
				e.fails(job, rayv1.DeadlineExceeded)
				e.rest()
				e.fails(job, rayv1.DeadlineExceeded)
				e.counts(job, 0, 1)
			}},
		{Row: 37, Kind: same, Given: "preRunningDeadlineSeconds", When: "the cluster is not ready in time", Then: "Failed, PreRunningDeadlineExceeded", Run: func(e *env) {
			e.noKubelet = true
			job := e.given(mayWait(3))
			e.cluster(job)
			e.fails(job, rayv1.PreRunningDeadlineExceeded)
			e.counts(job, 0, 1)
		}},
		{Row: 38, Kind: same, Given: "InteractiveMode, Waiting, preRunningDeadlineSeconds", When: "the time is over", Then: "Failed, PreRunningDeadlineExceeded", Run: func(e *env) {
			job := e.waits()
			e.change(job, mayWait(1))
			e.fails(job, rayv1.PreRunningDeadlineExceeded)
		}},
	}
}

// suspended sets spec.suspend, and what it needs.
func suspended(suspend bool) edit {
	return func(j *rayv1.RayJob) { j.Spec.Suspend, j.Spec.ShutdownAfterJobFinishes = suspend, true }
}

func suspendCases() []Case {
	return []Case{
		{Row: 39, Kind: same, Given: "suspend", When: "the job is created", Then: "Suspended; no cluster, no Job, no names in the status", Run: func(e *env) {
			job := e.given(suspended(true))
			e.phase(job, rayv1.JobDeploymentStatusSuspended)
			e.rest()
			e.refresh(job)
			e.Expect(job.Status.JobDeploymentStatus).To(Equal(rayv1.JobDeploymentStatusSuspended))
			e.Expect(job.Status.JobId + job.Status.RayClusterName).To(BeEmpty())
			e.Expect(e.clusters()).To(BeEmpty())
			e.Expect(e.jobs()).To(BeEmpty())
			e.Expect(e.operator.Traffic.Count("create", "rayclusters")).To(BeZero())
		}},
		{Row: 40, Kind: same, Given: "Suspended from the start", When: "suspend becomes false", Then: "it runs to its end", Run: func(e *env) {
			job := e.given(suspended(true))
			e.phase(job, rayv1.JobDeploymentStatusSuspended)
			e.change(job, suspended(false))
			e.runs(job)
			e.ends(job, rayv1.JobStatusSucceeded)
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			e.counts(job, 1, 0)
		}},
		{Row: 41, Kind: same, Given: "a running job whose cluster cannot go", When: "suspend becomes true and then false", Then: "Suspending until the cluster is gone, then Suspended, then it starts again", Run: suspendsToTheEnd},
		{Row: 42, Kind: same, Given: "Complete", When: "suspend becomes true", Then: "it stays Complete", Run: func(e *env) {
			job := e.succeeded(mode(rayv1.HTTPMode))
			e.changeSeen(job, suspended(true))
			e.rest()
			e.phase(job, rayv1.JobDeploymentStatusComplete)
		}},
	}
}

func suspendsToTheEnd(e *env) {
	seen := e.record()
	job, _ := e.submitted(suspended(false))
	first := job.Status
	cluster := e.cluster(job)
	e.hold(cluster)
	e.change(job, suspended(true))
	e.phase(job, rayv1.JobDeploymentStatusSuspending)
	e.soon(func() any {
		e.Expect(e.read(cluster, cluster.Name)).To(Succeed())
		return cluster.DeletionTimestamp
	}).ShouldNot(BeNil())
	e.changeSeen(job, suspended(false))
	e.rest()
	e.phase(job, rayv1.JobDeploymentStatusSuspending)
	e.release(cluster)
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.RayClusterName }).ShouldNot(BeElementOf("", first.RayClusterName))
	e.runs(job)
	e.Expect(job.Status.JobId).ToNot(Equal(first.JobId))
	e.Expect(seen.phases()).To(ContainElements(rayv1.JobDeploymentStatusSuspending, rayv1.JobDeploymentStatusSuspended))
	e.Expect(harness.Alive(e.Pods(e.t, e.ns, harness.HeadOf(first.RayClusterName)))).To(BeEmpty())
}
