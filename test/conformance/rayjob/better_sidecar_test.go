package rayjob

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// sidecarCases are about a submitter that is part of the head Pod and does not wait for workers.
func sidecarCases() []Case {
	return []Case{
		{Row: 77, Kind: better, Weak: []string{"RJ-W9"}, Theirs: "Initializing for ever",
			Given: "SidecarMode, workers that no node can take", When: "the job has succeeded and the sidecar has ended", Then: "Complete",
			How: "Ray is asked as soon as the head is there", Run: func(e *env) {
				job, head := beforeWorkers(e)
				ray := e.dashboardOf(job.Status.RayClusterName)
				e.letIn(job)
				ray.PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Metadata: mark(job),
					Step: fakedashboard.Step{Status: "SUCCEEDED"}})
				e.sidecarEnds(head, 0)
				e.phase(job, rayv1.JobDeploymentStatusComplete)
				e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
				e.counts(job, 1, 0)
			}},
		{Row: 78, Kind: better, Weak: []string{"RJ-W9"}, Theirs: "Initializing for ever; nothing is cleaned up",
			Given: "SidecarMode, workers that no node can take, shutdownAfterJobFinishes", When: "the sidecar exits with 1 before it has submitted",
			Then: "Failed; the cluster is deleted", How: "the end of the sidecar is looked at before the cluster is ready", Run: func(e *env) {
				job, head := beforeWorkers(e, givesUpCluster(0))
				cluster := e.cluster(job)
				e.dashboardOf(cluster.Name)
				e.sidecarEnds(head, 1)
				e.fails(job, rayv1.SubmissionFailed)
				e.gone(cluster)
				e.counts(job, 0, 1)
			}},
	}
}

// beforeWorkers makes a RayJob whose head is ready and whose worker never will be.
func beforeWorkers(e *env, edits ...edit) (*rayv1.RayJob, *corev1.Pod) {
	e.noKubelet = true
	job := e.given(append(edits, mode(rayv1.SidecarMode))...)
	e.cluster(job)
	e.soon(func() any { return e.Pods(e.t, e.ns, nil) }).Should(HaveLen(2))
	for _, worker := range e.Pods(e.t, e.ns, harness.WorkersOf(job.Status.RayClusterName)) {
		e.SetPod(e.t, &worker, harness.Unschedulable("0/1 nodes are available"))
	}
	head := e.head(job)
	e.SetPod(e.t, head, harness.Ready)
	return job, head
}
