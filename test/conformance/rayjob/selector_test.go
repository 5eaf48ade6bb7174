package rayjob

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// shared is the name of a cluster that existed before the job.
const shared = "shared"

// onShared selects that cluster.
func onShared(j *rayv1.RayJob) {
	j.Spec.RayClusterSpec, j.Spec.ClusterSelector = nil, map[string]string{rayv1.LabelCluster: shared}
}

func selectorCases() []Case {
	return []Case{
		{Row: 30, Kind: same, Given: "clusterSelector names a ready cluster", When: "the job is created", Then: "it runs there; no other cluster and no <job>-head-svc is made", Run: func(e *env) {
			e.sharedCluster()
			job, _ := e.submitted(onShared)
			e.Expect(job.Status.RayClusterName).To(Equal(shared))
			e.Expect(job.Status.DashboardURL).To(HavePrefix("shared-head-svc."))
			e.rest()
			e.Expect(e.clusters()).To(HaveLen(1))
			e.Expect(apierrors.IsNotFound(e.read(&corev1.Service{}, "train-head-svc"))).To(BeTrue())
		}},
		{Row: 31, Kind: same, Given: "clusterSelector names no cluster", When: "the job is created", Then: "Warning RayClusterNotFound; it goes on once the cluster is there", Run: func(e *env) {
			job := e.given(onShared)
			e.Expect(e.said(job, corev1.EventTypeWarning, "RayClusterNotFound")).To(ContainSubstring(shared))
			e.phase(job, rayv1.JobDeploymentStatusInitializing)
			e.sharedCluster()
			e.runs(job)
		}},
		{Row: 32, Kind: same, Given: "clusterSelector, shutdownAfterJobFinishes", When: "the job has ended", Then: "the cluster is not touched", Run: func(e *env) {
			before := e.sharedCluster()
			job := e.succeeded(onShared, func(j *rayv1.RayJob) { j.Spec.ShutdownAfterJobFinishes = true })
			e.rest()
			e.phase(job, rayv1.JobDeploymentStatusComplete)
			after := e.cluster(job)
			e.Expect(after.UID).To(Equal(before.UID))
			e.Expect(after.DeletionTimestamp).To(BeNil())
			e.Expect(after.Generation).To(Equal(before.Generation))
		}},
	}
}

// sharedCluster makes a cluster that belongs to no job, and waits until it is ready.
func (e *env) sharedCluster() *rayv1.RayCluster {
	e.t.Helper()
	if e.operator == nil {
		e.start()
	}
	cluster := harness.NewCluster(e.ns, shared)
	e.make(cluster)
	e.BecomesReady(e.t, cluster)
	return cluster
}
