package status

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/state"
)

// job is what Ray and the operator say about a RayJob.
type job struct {
	ID      string       `json:"id,omitempty"`
	Status  string       `json:"status,omitempty"`
	Attempt int32        `json:"attempt,omitempty"`
	Mode    string       `json:"mode"`
	Cluster string       `json:"cluster,omitempty"`
	Started *metav1.Time `json:"started,omitempty"`
	Ended   *metav1.Time `json:"ended,omitempty"`
}

func jobOf(o *rayv1.RayJob) *job {
	mode := cmp.Or(o.Status.SubmissionMode, o.Spec.SubmissionMode, rayv1.K8sJobMode)
	return &job{
		ID: o.Status.JobId, Status: string(o.Status.JobStatus), Attempt: o.Status.Attempt, Mode: string(mode),
		Cluster: o.Status.RayClusterName, Started: o.Status.StartTime, Ended: o.Status.EndTime,
	}
}

// service is what Serve and the operator say about a RayService.
type service struct {
	Active       string        `json:"active,omitempty"`
	Pending      string        `json:"pending,omitempty"`
	Endpoints    int32         `json:"endpoints"`
	Applications []application `json:"applications,omitempty"`
	// Upgrade says how far a replacement has come, or nothing.
	Upgrade string `json:"upgrade,omitempty"`
}

type application struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

func serviceOf(o *rayv1.RayService) *service {
	s := &service{
		Active: o.Status.ActiveServiceStatus.RayClusterName, Pending: o.Status.PendingServiceStatus.RayClusterName,
		Endpoints: o.Status.NumServeEndpoints,
	}
	for _, status := range []rayv1.RayServiceStatus{o.Status.ActiveServiceStatus, o.Status.PendingServiceStatus} {
		for _, name := range slices.Sorted(maps.Keys(status.ApplicationStatuses)) {
			app := status.ApplicationStatuses[name]
			s.Applications = append(s.Applications, application{status.RayClusterName, name, app.Status, app.Message})
		}
	}
	if c := state.True(o.Status.Conditions, rayv1.ConditionUpgradeInProgress); c != nil {
		s.Upgrade = cmp.Or(c.Message, c.Reason)
	}
	if abandoned := o.Status.AbandonedUpgrade; abandoned != nil {
		s.Upgrade = "given up: " + cmp.Or(abandoned.Message, abandoned.Reason)
	}
	return s
}

// schedule is what is known of a RayCronJob.
type schedule struct {
	Cron     string       `json:"cron"`
	TimeZone string       `json:"timeZone,omitempty"`
	Last     *metav1.Time `json:"last,omitempty"`
	Next     *metav1.Time `json:"next,omitempty"`
	Jobs     []run        `json:"jobs,omitempty"`
}

type run struct {
	Name    string      `json:"name"`
	Created metav1.Time `json:"created"`
	state.State
}

func scheduleOf(o *rayv1.RayCronJob, jobs []*rayv1.RayJob) *schedule {
	s := &schedule{
		Cron: o.Spec.Schedule, TimeZone: ptr.Deref(o.Spec.TimeZone, ""),
		Last: o.Status.LastScheduleTime, Next: o.Status.NextScheduleTime,
	}
	newest := slices.SortedFunc(slices.Values(jobs), func(a, b *rayv1.RayJob) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, job := range newest {
		s.Jobs = append(s.Jobs, run{job.Name, job.CreationTimestamp, state.Of(job)})
	}
	return s
}
