package rayjob

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func retries(limit int32) edit {
	return func(j *rayv1.RayJob) { j.Spec.BackoffLimit = ptr.To(limit) }
}

func clusterName(s rayv1.RayJobStatus) string { return s.RayClusterName }

func retryCases() []Case {
	return []Case{
		{Row: 33, Kind: same, Given: "HTTPMode, backoffLimit 2", When: "the job fails each time", Then: "three clusters, failed 3, Failed", Run: func(e *env) {
			e.newRays(func(ray *fakedashboard.Dashboard) { ray.SetDefaultScript(fakedashboard.Steps("FAILED")...) })
			seen := e.record()
			job := e.given(mode(rayv1.HTTPMode), retries(2))
			e.fails(job, rayv1.AppFailed)
			e.counts(job, 0, 3)
			e.Expect(seen.distinct(clusterName)).To(HaveLen(3))
			e.Expect(seen.distinct(func(s rayv1.RayJobStatus) string { return s.JobId })).To(HaveLen(3))
		}},
		{Row: 34, Kind: same, Given: "backoffLimit 2", When: "an attempt has failed", Then: "Retrying; cluster and submitter are gone before the next names are there; another jobId", Run: retriesWhenAllIsGone},
		{Row: 35, Kind: same, Given: "HTTPMode, backoffLimit 1", When: "the job fails once and then succeeds", Then: "Complete, failed 1, succeeded 1", Run: func(e *env) {
			job, _ := e.submitted(mode(rayv1.HTTPMode), retries(1))
			e.nextAttempt(job)
			e.ends(job, rayv1.JobStatusSucceeded)
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			e.counts(job, 1, 1)
		}},
		{Row: 60, Kind: same, Given: "HTTPMode, backoffLimit 2", When: "the second attempt runs", Then: "<job>-head-svc selects the second cluster", Run: func(e *env) {
			job, _ := e.submitted(mode(rayv1.HTTPMode), retries(2))
			e.nextAttempt(job)
			service := &corev1.Service{}
			e.soon(func() any {
				e.Expect(e.read(service, "train-head-svc")).To(Succeed())
				return service.Spec.Selector[rayv1.LabelCluster]
			}).Should(Equal(job.Status.RayClusterName))
			e.Expect(e.Pods(e.t, e.ns, client.MatchingLabels(service.Spec.Selector))).To(HaveLen(1))
		}},
	}
}

// nextAttempt has the present attempt fail, and follows the RayJob until the next one runs in Ray.
func (e *env) nextAttempt(job *rayv1.RayJob) {
	e.t.Helper()
	e.refresh(job)
	first := job.Status
	e.ends(job, rayv1.JobStatusFailed)
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.RayClusterName }).ShouldNot(BeElementOf("", first.RayClusterName))
	e.runs(job)
	e.Expect(job.Status.JobId).ToNot(Equal(first.JobId))
}

func retriesWhenAllIsGone(e *env) {
	job, _ := e.submitted(retries(2))
	first := job.Status
	cluster, submitter := e.cluster(job), e.submitter(job)
	e.hold(cluster)
	e.hold(submitter)
	e.ends(job, rayv1.JobStatusFailed)
	e.phase(job, rayv1.JobDeploymentStatusRetrying)
	for _, object := range []client.Object{cluster, submitter} {
		e.soon(func() any {
			e.Expect(e.read(object, object.GetName())).To(Succeed())
			return object.GetDeletionTimestamp()
		}).ShouldNot(BeNil())
	}
	e.release(cluster)
	e.rest()
	e.phase(job, rayv1.JobDeploymentStatusRetrying)
	e.Expect(e.clusters()).To(BeEmpty(), "the submitter is still there")
	e.release(submitter)
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.RayClusterName }).ShouldNot(BeElementOf("", first.RayClusterName))
	e.Expect(job.Status.JobId).ToNot(Equal(first.JobId))
	e.Expect(e.isGone(cluster)).To(BeTrue())
	e.Expect(e.isGone(submitter)).To(BeTrue())
	e.runs(job)
}

// held is a finalizer of a test.
const held = "test.heliostat.io/held"

// hold keeps an object terminating once it is deleted.
func (e *env) hold(object client.Object) {
	e.t.Helper()
	e.finalizers(object, append(object.GetFinalizers(), held))
}

// release lets a held object go.
func (e *env) release(object client.Object) {
	e.t.Helper()
	e.Expect(e.read(object, object.GetName())).To(Succeed())
	var rest []string
	for _, finalizer := range object.GetFinalizers() {
		if finalizer != held {
			rest = append(rest, finalizer)
		}
	}
	e.finalizers(object, rest)
}

func (e *env) finalizers(object client.Object, finalizers []string) {
	e.t.Helper()
	base := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(finalizers)
	e.Expect(e.Patch(e.t.Context(), object, client.MergeFrom(base))).To(Succeed())
}
