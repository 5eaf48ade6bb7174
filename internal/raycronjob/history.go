package raycronjob

import (
	"fmt"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// maxDeletes is how many old RayJobs are deleted in one pass; the next pass deletes more.
const maxDeletes = 50

// prune deletes the oldest RayJobs that have ended, beyond the numbers that are to be kept.
func (p *planner) prune() {
	var good, bad []*rayv1.RayJob
	for _, run := range p.s.Runs {
		switch {
		case !finished(run), run.DeletionTimestamp != nil:
		case succeeded(run):
			good = append(good, run)
		default:
			bad = append(bad, run)
		}
	}
	spec := &p.cron.Spec
	old := append(beyond(good, spec.SuccessfulJobsHistoryLimit), beyond(bad, spec.FailedJobsHistoryLimit)...)
	if len(old) > maxDeletes {
		old = old[:maxDeletes]
		p.again(nextStep)
	}
	for _, run := range old {
		p.delete(run, fmt.Sprintf("the history limit of RayCronJob %s is reached", p.cron.Name), "deleted an old RayJob")
	}
}

// beyond are the oldest RayJobs of more than the limit. No limit keeps all.
func beyond(runs []*rayv1.RayJob, limit *int32) []*rayv1.RayJob {
	if limit == nil || len(runs) <= int(*limit) {
		return nil
	}
	return runs[:len(runs)-int(*limit)]
}
