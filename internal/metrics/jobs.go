package metrics

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Jobs are the series about RayJobs, under the names that dashboards for KubeRay expect. Only the replica that leads has
// series, so that sums over replicas are right.
type Jobs struct {
	reader  client.Reader
	leading func() bool
	log     logr.Logger

	info, phase, duration *prometheus.Desc

	mu sync.Mutex
	// retried are how many seconds the attempts took that failed and were followed by another, by how many had failed before.
	// The RayJob itself remembers only the last.
	retried map[types.UID]map[int32]float64
}

// NewJobs returns series about the RayJobs that reader lists.
func NewJobs(reader client.Reader, leading func() bool, log logr.Logger) *Jobs {
	labels := []string{"name", "namespace", "uid"}
	return &Jobs{
		reader: reader, leading: leading, log: log, retried: map[types.UID]map[int32]float64{},
		info: prometheus.NewDesc("kuberay_job_info", "One for each RayJob.", labels, nil),
		phase: prometheus.NewDesc("kuberay_job_deployment_status", "One for each RayJob, with its status.jobDeploymentStatus.",
			append(labels[:len(labels):len(labels)], "deployment_status"), nil),
		duration: prometheus.NewDesc("kuberay_job_execution_duration_seconds",
			"Time that an attempt of a RayJob took from its start to its end, with the phase that it ended in and how many attempts had failed before it.",
			append(labels[:len(labels):len(labels)], "job_deployment_status", "retry_count"), nil),
	}
}

// Describe implements [prometheus.Collector].
func (j *Jobs) Describe(out chan<- *prometheus.Desc) {
	out <- j.info
	out <- j.phase
	out <- j.duration
}

// Collect implements [prometheus.Collector].
func (j *Jobs) Collect(out chan<- prometheus.Metric) {
	if !j.leading() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	jobs := &rayv1.RayJobList{}
	if err := j.reader.List(ctx, jobs, client.UnsafeDisableDeepCopy); err != nil {
		j.log.Error(err, "Cannot list RayJobs for their metrics")
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range jobs.Items {
		j.collect(out, &jobs.Items[i])
	}
}

func (j *Jobs) collect(out chan<- prometheus.Metric, job *rayv1.RayJob) {
	gauge := func(desc *prometheus.Desc, value float64, more ...string) {
		labels := append([]string{job.Name, job.Namespace, string(job.UID)}, more...)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	took := func(seconds float64, phase rayv1.JobDeploymentStatus, retries int32) {
		gauge(j.duration, seconds, string(phase), strconv.Itoa(int(retries)))
	}
	phase := job.Status.JobDeploymentStatus
	gauge(j.info, 1)
	gauge(j.phase, 1, string(phase))
	for retries, seconds := range j.retried[job.UID] {
		took(seconds, rayv1.JobDeploymentStatusRetrying, retries)
	}
	start, end := job.Status.StartTime, job.Status.EndTime
	if rayv1.IsJobDeploymentTerminal(phase) && start != nil && end != nil {
		took(end.Sub(start.Time).Seconds(), phase, failedBefore(job))
	}
}

// failedBefore is how many attempts had failed before the one that the status tells of.
func failedBefore(job *rayv1.RayJob) int32 {
	failed := ptr.Deref(job.Status.Failed, 0)
	if job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusComplete {
		return failed
	}
	return max(failed-1, 0)
}

// Watch remembers, of attempts that fail from now on and are followed by another, how long they took. Every replica does
// so, and only the one that leads tells.
func (j *Jobs) Watch(informer Informer) error {
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, isJob := before.(*rayv1.RayJob)
			job, isAlso := after.(*rayv1.RayJob)
			if isJob && isAlso {
				j.observe(old, job)
			}
		},
		DeleteFunc: func(gone any) {
			if unseen, ok := gone.(cache.DeletedFinalStateUnknown); ok {
				gone = unseen.Obj
			}
			if job, isJob := gone.(*rayv1.RayJob); isJob {
				j.forget(job.UID)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch RayJobs for their metrics: %w", err)
	}
	return nil
}

func (j *Jobs) observe(before, after *rayv1.RayJob) {
	if before.UID != after.UID {
		j.forget(before.UID)
		return
	}
	const retrying = rayv1.JobDeploymentStatusRetrying
	failure, start := after.Status.PostMortem, after.Status.StartTime
	if before.Status.JobDeploymentStatus == retrying || after.Status.JobDeploymentStatus != retrying || failure == nil || start == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.retried[after.UID] == nil {
		j.retried[after.UID] = map[int32]float64{}
	}
	j.retried[after.UID][failedBefore(after)] = failure.Time.Sub(start.Time).Seconds()
}

func (j *Jobs) forget(job types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.retried, job)
}
