package rayjob

import (
	. "github.com/onsi/gomega"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

func deletionCases() []Case {
	return []Case{
		{Row: 50, Kind: same, Given: "a running job", When: "the RayJob is deleted", Then: "one request to stop the Ray job; then RayJob, cluster and submitter go",
			How: "and it is waited for the stop", Run: func(e *env) {
				job, ray := e.submitted()
				id, cluster, submitter := job.Status.JobId, e.cluster(job), e.submitter(job)
				e.delete(job)
				e.gone(job)
				e.Expect(ray.Requests(fakedashboard.EndpointStop)).To(Equal(1))
				stopped, found := ray.Job(id)
				e.Expect(found).To(BeTrue())
				e.Expect(stopped.Step.Status).To(Equal("STOPPED"))
				e.gone(cluster)
				e.gone(submitter)
			}},
		{Row: 51, Kind: same, Given: "a job that has ended", When: "the RayJob is deleted", Then: "no request to stop it", Run: func(e *env) {
			job := e.succeeded()
			ray, cluster := e.ray(job), e.cluster(job)
			e.delete(job)
			e.gone(job)
			e.gone(cluster)
			e.Expect(ray.Requests(fakedashboard.EndpointStop)).To(BeZero())
		}},
		{Row: 52, Kind: same, Given: "a running job whose dashboard refuses connections", When: "the RayJob is deleted", Then: "it goes nevertheless",
			How: "after trying for 30 seconds, with a Warning", Run: func(e *env) {
				job, ray := e.submitted(mode(rayv1.HTTPMode))
				ray.Down()
				e.delete(job)
				e.gone(job)
				e.said(job, "Warning", "FailedToStopRayJob")
			}},
	}
}

func (e *env) delete(job *rayv1.RayJob) {
	e.t.Helper()
	e.Expect(e.Delete(e.t.Context(), job)).To(Succeed())
}
