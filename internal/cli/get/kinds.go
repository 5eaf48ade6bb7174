package get

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func jobs() view[*rayv1.RayJob] {
	type job = *rayv1.RayJob
	return view[job]{
		source: source[job]{
			what:   string(kube.RayJob),
			object: func() job { return &rayv1.RayJob{} },
			list:   func() client.ObjectList { return &rayv1.RayJobList{} },
		},
		kind:  kube.RayJob,
		word:  "job",
		short: "List Ray jobs",
		columns: func(now time.Time) []column[job] {
			return []column[job]{
				{name: "NAME", cell: nameOf[job]},
				{name: "JOB STATUS", cell: func(j job) string { return orNone(string(j.Status.JobStatus)) }},
				{name: "DEPLOYMENT STATUS", cell: func(j job) string { return orNone(string(j.Status.JobDeploymentStatus)) }},
				{name: "RAY CLUSTER NAME", cell: func(j job) string { return orNone(j.Status.RayClusterName) }},
				{name: "START TIME", cell: func(j job) string { return moment(j.Status.StartTime) }},
				{name: "END TIME", cell: func(j job) string { return moment(j.Status.EndTime) }},
				{name: "AGE", cell: ageOf[job](now)},
				{name: "JOB ID", cell: func(j job) string { return orNone(j.Status.JobId) }, wide: true},
				{name: "REASON", cell: func(j job) string { return orNone(string(j.Status.Reason)) }, wide: true},
			}
		},
	}
}

func services() view[*rayv1.RayService] {
	type service = *rayv1.RayService
	return view[service]{
		source: source[service]{
			what:   string(kube.RayService),
			object: func() service { return &rayv1.RayService{} },
			list:   func() client.ObjectList { return &rayv1.RayServiceList{} },
		},
		kind:  kube.RayService,
		word:  "service",
		short: "List Ray services",
		columns: func(now time.Time) []column[service] {
			return []column[service]{
				{name: "NAME", cell: nameOf[service]},
				{name: "SERVICE STATUS", cell: func(s service) string { return orNone(string(s.Status.ServiceStatus)) }},
				{name: "NUM SERVE ENDPOINTS", cell: func(s service) string { return strconv.Itoa(int(s.Status.NumServeEndpoints)) }},
				{name: "AGE", cell: ageOf[service](now)},
				{name: "ACTIVE CLUSTER", cell: func(s service) string { return orNone(s.Status.ActiveServiceStatus.RayClusterName) }, wide: true},
				{name: "PENDING CLUSTER", cell: func(s service) string { return orNone(s.Status.PendingServiceStatus.RayClusterName) }, wide: true},
			}
		},
	}
}

func cronJobs() view[*rayv1.RayCronJob] {
	type cronJob = *rayv1.RayCronJob
	return view[cronJob]{
		source: source[cronJob]{
			what:   string(kube.RayCronJob),
			object: func() cronJob { return &rayv1.RayCronJob{} },
			list:   func() client.ObjectList { return &rayv1.RayCronJobList{} },
		},
		kind:  kube.RayCronJob,
		word:  "cronjob",
		short: "List Ray cron jobs",
		columns: func(now time.Time) []column[cronJob] {
			return []column[cronJob]{
				{name: "NAME", cell: nameOf[cronJob]},
				{name: "SCHEDULE", cell: func(c cronJob) string { return c.Spec.Schedule }},
				{name: "TIMEZONE", cell: func(c cronJob) string { return orNone(ptr.Deref(c.Spec.TimeZone, "")) }},
				{name: "LAST SCHEDULE", cell: func(c cronJob) string {
					if c.Status.LastScheduleTime == nil {
						return none
					}
					return kube.Age(now, *c.Status.LastScheduleTime)
				}},
				{name: "AGE", cell: ageOf[cronJob](now)},
				{name: "SUSPEND", cell: func(c cronJob) string { return strconv.FormatBool(ptr.Deref(c.Spec.Suspend, false)) }},
				{name: "ACTIVE", cell: func(c cronJob) string { return strconv.Itoa(len(c.Status.Active)) }, wide: true},
				{name: "NEXT SCHEDULE", cell: func(c cronJob) string { return moment(c.Status.NextScheduleTime) }, wide: true},
			}
		},
	}
}

// moment is a time as RFC 3339 in UTC.
func moment(t *metav1.Time) string {
	if t.IsZero() {
		return none
	}
	return t.UTC().Format(time.RFC3339)
}
