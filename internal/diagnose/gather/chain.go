package gather

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// chain reads the object and the objects of ray.io/v1 below it.
func (g *gatherer) chain(ctx context.Context, object client.Object) {
	s := g.snapshot
	switch o := object.(type) {
	case *rayv1.RayCronJob:
		s.CronJob = o
		s.Jobs = owned(o, read(ctx, g, &rayv1.RayJobList{}, func(l *rayv1.RayJobList) []rayv1.RayJob { return l.Items }, g.here()))
	case *rayv1.RayJob:
		s.Jobs = []*rayv1.RayJob{o}
	case *rayv1.RayService:
		s.Service = o
	case *rayv1.RayCluster:
		s.Clusters = []*rayv1.RayCluster{o}
		return
	}
	g.clusters(ctx)
}

// clusters reads the RayClusters that the jobs and the service made or use.
func (g *gatherer) clusters(ctx context.Context) {
	s := g.snapshot
	all := read(ctx, g, &rayv1.RayClusterList{}, func(l *rayv1.RayClusterList) []rayv1.RayCluster { return l.Items }, g.here())
	for _, cluster := range all {
		byService := s.Service != nil && metav1.IsControlledBy(cluster, s.Service)
		byJob := slices.ContainsFunc(s.Jobs, func(job *rayv1.RayJob) bool {
			return metav1.IsControlledBy(cluster, job) || !rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus) && uses(job, cluster.Name)
		})
		if byService || byJob {
			s.Clusters = append(s.Clusters, cluster)
		}
	}
}

// uses tells whether a job runs, or is to run, on a cluster of that name. Before the operator has looked at the job only its selector
// tells.
func uses(job *rayv1.RayJob, cluster string) bool {
	return job.Status.RayClusterName == cluster || job.Spec.ClusterSelector[rayv1.LabelCluster] == cluster
}

// owned are those of the objects that the owner controls.
func owned[T any, P interface {
	*T
	metav1.Object
}](owner metav1.Object, objects []*T) []*T {
	var found []*T
	for _, object := range objects {
		if metav1.IsControlledBy(P(object), owner) {
			found = append(found, object)
		}
	}
	return found
}

// pods reads the Pods of the clusters and of the submitters, and the events about all objects.
func (g *gatherer) pods(ctx context.Context) {
	s := g.snapshot
	owners := map[types.UID]bool{}
	for _, cluster := range s.Clusters {
		owners[cluster.UID] = true
	}
	if len(s.Jobs) > 0 {
		for _, job := range s.Jobs {
			submitters := read(ctx, g, &batchv1.JobList{}, func(l *batchv1.JobList) []batchv1.Job { return l.Items }, g.here(),
				client.MatchingLabels{rayv1.LabelOriginatedFromName: job.Name})
			for _, submitter := range owned(job, submitters) {
				s.SubmitterJobs = append(s.SubmitterJobs, submitter)
				owners[submitter.UID] = true
			}
		}
	}
	all := read(ctx, g, &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items }, g.here())
	if all != nil {
		s.Pods = []*corev1.Pod{}
	}
	for _, pod := range all {
		if owner := metav1.GetControllerOf(pod); owner != nil && owners[owner.UID] {
			s.Pods = append(s.Pods, pod)
		}
	}
	g.events(ctx)
}

// events reads the events about the objects that the Snapshot holds so far.
func (g *gatherer) events(ctx context.Context) {
	s := g.snapshot
	about := map[types.UID]bool{}
	add := func(object metav1.Object) { about[object.GetUID()] = true }
	for _, o := range s.Clusters {
		add(o)
	}
	for _, o := range s.Jobs {
		add(o)
	}
	for _, o := range s.Pods {
		add(o)
	}
	for _, o := range s.SubmitterJobs {
		add(o)
	}
	if s.Service != nil {
		add(s.Service)
	}
	if s.CronJob != nil {
		add(s.CronJob)
	}
	for _, event := range read(ctx, g, &corev1.EventList{}, func(l *corev1.EventList) []corev1.Event { return l.Items }, g.here()) {
		if about[event.InvolvedObject.UID] || event.InvolvedObject.Kind == "PersistentVolumeClaim" {
			s.Events = append(s.Events, *event)
		}
	}
}

// Refresh reads an object again, for a command that looks more than once.
func Refresh(ctx context.Context, c client.Reader, object client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		return fmt.Errorf("read %s/%s again: %w", object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
