package rayjob

import (
	"strconv"
	"time"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// childName is "<rayjob>-<five characters>". The ending follows from the job's UID, the role of the child and the
// start of the attempt; the whole name is recorded in the status before anything is made under it.
func childName(job *rayv1.RayJob, role string, attempt time.Time) string {
	return job.Name + "-" + raycluster.NameSuffix(string(job.UID), role, strconv.FormatInt(attempt.UnixNano(), 10))
}

// headServiceName is the Service that stays the same over all clusters of a job.
func headServiceName(job *rayv1.RayJob) string { return job.Name + "-head-svc" }
