package raycronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// runName is the name of the RayJob of a tick: different ticks have different minutes.
func runName(cron *rayv1.RayCronJob, tick time.Time) string {
	return fmt.Sprintf("%s-%d", cron.Name, tick.Unix()/60)
}

// newRun is the RayJob of a tick.
func newRun(cron *rayv1.RayCronJob, tick time.Time) *rayv1.RayJob {
	run := &rayv1.RayJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cron.Namespace, Name: runName(cron, tick),
			Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cron, rayv1.GroupVersion.WithKind(rayv1.KindRayCronJob))},
			Finalizers:      []string{rayv1.FinalizerRayCronJobTick},
		},
		Spec: *cron.Spec.JobTemplate.DeepCopy(),
	}
	if metadata := cron.Spec.JobTemplateMetadata; metadata != nil {
		maps.Copy(run.Labels, metadata.Labels)
		maps.Copy(run.Annotations, metadata.Annotations)
	}
	run.Labels[rayv1.LabelCronJobName] = cron.Name
	run.Annotations[rayv1.AnnotationCronJobScheduledTimestamp] = tick.UTC().Format(time.RFC3339)
	if run.Spec.JobId != "" && len(run.Spec.ClusterSelector) > 0 {
		// On one cluster the second run would be taken for the first.
		run.Spec.JobId = fmt.Sprintf("%s-%d", run.Spec.JobId, tick.Unix()/60)
	}
	return run
}

// tickOf is the tick that a RayJob was made for, or zero when nobody can tell.
func tickOf(run *rayv1.RayJob) time.Time {
	if tick, err := time.Parse(time.RFC3339, run.Annotations[rayv1.AnnotationCronJobScheduledTimestamp]); err == nil {
		return tick.UTC()
	}
	ending := run.Name[strings.LastIndexByte(run.Name, '-')+1:]
	if minutes, err := strconv.ParseInt(ending, 10, 64); err == nil {
		return time.Unix(minutes*60, 0).UTC()
	}
	return time.Time{}
}

// byTick orders RayJobs from the oldest tick to the newest.
func byTick(a, b *rayv1.RayJob) int {
	return cmp.Or(tickOf(a).Compare(tickOf(b)), cmp.Compare(a.Name, b.Name))
}

// finished tells whether a RayJob has ended. One whose spec is invalid never started and never will by itself.
func finished(run *rayv1.RayJob) bool {
	status := run.Status.JobDeploymentStatus
	return rayv1.IsJobDeploymentTerminal(status) || status == rayv1.JobDeploymentStatusValidationFailed
}

func succeeded(run *rayv1.RayJob) bool {
	return run.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusComplete && run.Status.JobStatus == rayv1.JobStatusSucceeded
}

// unfinished are the RayJobs that have not ended, those being deleted included.
func unfinished(runs []*rayv1.RayJob) []*rayv1.RayJob {
	return slices.DeleteFunc(slices.Clone(runs), finished)
}

// names lists some of the RayJobs.
func names(runs []*rayv1.RayJob) string {
	const most = 5
	var list []string
	for _, run := range runs[:min(len(runs), most)] {
		list = append(list, run.Name)
	}
	text := strings.Join(list, ", ")
	if len(runs) > most {
		text += fmt.Sprintf(" and %d more", len(runs)-most)
	}
	return text
}
