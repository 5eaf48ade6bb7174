package rayjob

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// clusterIndex is the cache index of RayJobs by the cluster that they use, whether it is theirs or a selected one.
const clusterIndex = "heliostat.io/ray-cluster"

func indexCluster(object client.Object) []string {
	job, ok := object.(*rayv1.RayJob)
	if !ok || job.Status.RayClusterName == "" {
		return nil
	}
	return []string{job.Status.RayClusterName}
}

// jobsOfCluster wakes the jobs that use a cluster.
func (r *Reconciler) jobsOfCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.jobsOn(ctx, cluster.GetNamespace(), cluster.GetName())
}

// jobsOfPod wakes the jobs that use the cluster of a head Pod, or the one whose submitter a Pod is of.
func (r *Reconciler) jobsOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	if pod.GetLabels()[rayv1.LabelNodeType] == rayv1.NodeTypeSubmitter {
		name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[rayv1.LabelOriginatedFromName]}
		return []reconcile.Request{{NamespacedName: name}}
	}
	return r.jobsOn(ctx, pod.GetNamespace(), pod.GetLabels()[rayv1.LabelCluster])
}

func (r *Reconciler) jobsOn(ctx context.Context, namespace, cluster string) []reconcile.Request {
	jobs := &rayv1.RayJobList{}
	if err := r.Reader.List(ctx, jobs, client.InNamespace(namespace), client.MatchingFields{clusterIndex: cluster}); err != nil {
		log.FromContext(ctx).Error(err, "Cannot find the RayJobs of a cluster", "cluster", cluster)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(jobs.Items))
	for i := range jobs.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&jobs.Items[i])})
	}
	return requests
}

// podTells lets through what a job may want to know of a Pod: that a head or a submitter comes, goes, or changes its
// state. Of workers only the end counts, for jobs whose cluster is being taken down.
func podTells() predicate.Predicate {
	matters := func(pod client.Object) bool {
		node := pod.GetLabels()[rayv1.LabelNodeType]
		return node == rayv1.NodeTypeHead || node == rayv1.NodeTypeSubmitter
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return matters(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return matters(e.ObjectNew) && changed(e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

// changed tells whether a Pod has another phase, or one of its containers another life or readiness.
func changed(before, after client.Object) bool {
	old, wasPod := before.(*corev1.Pod)
	pod, isPod := after.(*corev1.Pod)
	if !wasPod || !isPod || old.Status.Phase != pod.Status.Phase || len(old.Status.ContainerStatuses) != len(pod.Status.ContainerStatuses) ||
		len(old.Status.Conditions) != len(pod.Status.Conditions) {
		return true
	}
	for i, s := range pod.Status.ContainerStatuses {
		was := old.Status.ContainerStatuses[i]
		if was.RestartCount != s.RestartCount || was.Ready != s.Ready || reasonOf(was) != reasonOf(s) || (was.State.Terminated == nil) != (s.State.Terminated == nil) {
			return true
		}
	}
	return false
}

// reasonOf is why a container waits, or empty.
func reasonOf(s corev1.ContainerStatus) string {
	if s.State.Waiting == nil {
		return ""
	}
	return s.State.Waiting.Reason
}
