package rayjob

import (
	"strconv"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// childName is "<rayjob>-<five characters>". The ending follows from the job's UID, the role of the child, the number of
// the attempt and, where that name is somebody else's, the name itself; it is recorded in the status before anything is
// made under it.
func childName(job *rayv1.RayJob, role, taken string) string {
	return job.Name + "-" + raycluster.NameSuffix(string(job.UID), role, strconv.Itoa(int(job.Status.Attempt)), taken)
}

// headServiceName is the Service that stays the same over all clusters of a job.
func headServiceName(job *rayv1.RayJob) string { return job.Name + "-head-svc" }
