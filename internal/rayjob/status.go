package rayjob

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// statusWrite returns the status write of the pass, or nil when nothing changed.
func (p *planner) statusWrite() *action.StatusWrite {
	p.st.ObservedGeneration = p.s.Job.Generation
	if equality.Semantic.DeepEqual(p.s.Job.Status, p.job.Status) {
		return nil
	}
	written := p.s.Job.DeepCopy()
	written.Status = p.job.Status
	return &action.StatusWrite{Object: written, Base: p.s.Job, Why: whatChanged(&p.s.Job.Status, &p.job.Status)}
}

func whatChanged(before, after *rayv1.RayJobStatus) string {
	switch {
	case before.JobDeploymentStatus != after.JobDeploymentStatus:
		return fmt.Sprintf("%s is now %s", orNew(before.JobDeploymentStatus), orNew(after.JobDeploymentStatus))
	case before.JobStatus != after.JobStatus:
		return "Ray says that the job is " + string(after.JobStatus)
	default:
		return "observed facts changed"
	}
}

func orNew(status rayv1.JobDeploymentStatus) string {
	if status == rayv1.JobDeploymentStatusNew {
		return "New"
	}
	return string(status)
}
