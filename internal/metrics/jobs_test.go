package metrics

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// fixedJobs lists always the same.
type fixedJobs struct {
	client.Reader
	items []rayv1.RayJob
}

func (f fixedJobs) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*rayv1.RayJobList).Items = f.items
	return nil
}

// job is a RayJob in a phase. Times are seconds; an end of 0 is none.
func job(name string, phase rayv1.JobDeploymentStatus, failed int32, start, end int) *rayv1.RayJob {
	j := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u-1"}}
	j.Status = rayv1.RayJobStatus{JobDeploymentStatus: phase, Failed: &failed, StartTime: ptr.To(at(start))}
	if end > 0 {
		j.Status.EndTime = ptr.To(at(end))
	}
	return j
}

// retrying is a job whose attempt has failed and that waits for the next.
func retrying(failed int32, start, end int) *rayv1.RayJob {
	j := job("train", rayv1.JobDeploymentStatusRetrying, failed, start, 0)
	j.Status.PostMortem = &rayv1.RayJobPostMortem{Attempt: failed, Time: at(end)}
	return j
}

func TestJobSeries(t *testing.T) {
	lead := true
	blank := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "ns", UID: "u-1"}}
	jobs := NewJobs(fixedJobs{items: []rayv1.RayJob{
		*blank,
		*job("runs", rayv1.JobDeploymentStatusRunning, 0, 10, 0),
		*job("good", rayv1.JobDeploymentStatusComplete, 0, 10, 52),
		*job("second-try", rayv1.JobDeploymentStatusComplete, 1, 100, 107),
		*job("bad", rayv1.JobDeploymentStatusFailed, 3, 10, 20),
	}}, func() bool { return lead }, logr.Discard())
	want := []string{
		`kuberay_job_deployment_status{deployment_status="",name="new",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_deployment_status{deployment_status="Complete",name="good",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_deployment_status{deployment_status="Complete",name="second-try",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_deployment_status{deployment_status="Failed",name="bad",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_deployment_status{deployment_status="Running",name="runs",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_execution_duration_seconds{job_deployment_status="Complete",name="good",namespace="ns",retry_count="0",uid="u-1"} 42`,
		`kuberay_job_execution_duration_seconds{job_deployment_status="Complete",name="second-try",namespace="ns",retry_count="1",uid="u-1"} 7`,
		`kuberay_job_execution_duration_seconds{job_deployment_status="Failed",name="bad",namespace="ns",retry_count="2",uid="u-1"} 10`,
		`kuberay_job_info{name="bad",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_info{name="good",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_info{name="new",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_info{name="runs",namespace="ns",uid="u-1"} 1`,
		`kuberay_job_info{name="second-try",namespace="ns",uid="u-1"} 1`,
	}
	if diff := cmp.Diff(want, scrape(t, jobs, "kuberay_")); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	lead = false
	if got := scrape(t, jobs, "kuberay_"); len(got) > 0 {
		t.Errorf("a standby has series: %v", got)
	}
}

// Given a job that fails twice and then ends, each attempt has a series until the job is gone, also on a replica that was a
// standby meanwhile.
func TestRetriedAttemptsHaveSeries(t *testing.T) {
	const series = "kuberay_job_execution_duration_seconds"
	running := func(failed int32, start int) *rayv1.RayJob {
		return job("train", rayv1.JobDeploymentStatusRunning, failed, start, 0)
	}
	end := job("train", rayv1.JobDeploymentStatusComplete, 2, 200, 230)
	lead, reader := false, &fixedJobs{items: []rayv1.RayJob{*end}}
	jobs, events := NewJobs(reader, func() bool { return lead }, logr.Discard()), &informer{}
	if err := jobs.Watch(events); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]*rayv1.RayJob{
		{running(0, 0), retrying(1, 0, 15)},
		{retrying(1, 0, 15), retrying(1, 0, 15)},
		{retrying(1, 0, 15), running(1, 100)},
		{running(1, 100), retrying(2, 100, 120)},
		{retrying(2, 100, 120), running(2, 200)},
		{running(2, 200), end},
	} {
		events.OnUpdate(change[0], change[1])
	}
	lead = true
	last := series + `{job_deployment_status="Complete",name="train",namespace="ns",retry_count="2",uid="u-1"} 30`
	want := []string{
		last,
		series + `{job_deployment_status="Retrying",name="train",namespace="ns",retry_count="0",uid="u-1"} 15`,
		series + `{job_deployment_status="Retrying",name="train",namespace="ns",retry_count="1",uid="u-1"} 20`,
	}
	if diff := cmp.Diff(want, scrape(t, jobs, series)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	events.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/train", Obj: end})
	if diff := cmp.Diff([]string{last}, scrape(t, jobs, series)); diff != "" {
		t.Errorf("series after the deletion (-want +got):\n%s", diff)
	}
	events.OnUpdate(running(0, 0), retrying(1, 0, 15))
	other := running(0, 300)
	other.UID = "u-2"
	events.OnUpdate(retrying(1, 0, 15), other)
	if diff := cmp.Diff([]string{last}, scrape(t, jobs, series)); diff != "" {
		t.Errorf("series after another job has taken the name (-want +got):\n%s", diff)
	}
}

func TestEventsAreCounted(t *testing.T) {
	told := NewEvents()
	told.Count("RayJob", "JobLost", "Warning")
	told.Count("RayCluster", "CreatedHeadPod", "Normal")
	told.Count("RayCluster", "CreatedHeadPod", "Normal")
	want := []string{
		`heliostat_events_total{kind="RayCluster",reason="ActorsLost",type="Warning"} 0`,
		`heliostat_events_total{kind="RayCluster",reason="CreatedHeadPod",type="Normal"} 2`,
		`heliostat_events_total{kind="RayCluster",reason="ForceDeletedStuckCluster",type="Warning"} 0`,
		`heliostat_events_total{kind="RayCluster",reason="JobsLost",type="Warning"} 0`,
		`heliostat_events_total{kind="RayCluster",reason="LossUnknown",type="Warning"} 0`,
		`heliostat_events_total{kind="RayCluster",reason="RedisCleanupFailed",type="Warning"} 0`,
		`heliostat_events_total{kind="RayJob",reason="FailedToStopRayJob",type="Warning"} 0`,
		`heliostat_events_total{kind="RayJob",reason="JobLost",type="Warning"} 1`,
		`heliostat_events_total{kind="RayJob",reason="NoDeletionRuleMatches",type="Warning"} 0`,
	}
	if diff := cmp.Diff(want, scrape(t, told, "heliostat_events_total")); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}
