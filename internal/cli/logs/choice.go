package logs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

// choice says which Pods are read, and which container of them.
type choice struct {
	namespace string
	labels    client.MatchingLabels
	// pod and replica narrow it down further, where not empty.
	pod, replica string
	// container is the name of the container; empty means the first one, which is that of Ray.
	container string
	// what is for the user.
	what string
	// over is set when no other Pods will come.
	over bool
}

// takes tells whether a Pod with the labels is meant.
func (c *choice) takes(pod *corev1.Pod) bool {
	return (c.pod == "" || pod.Name == c.pod) && (c.replica == "" || pod.Labels[rayv1.LabelWorkerGroupReplicaIndex] == c.replica)
}

// containerOf is the name of the container to read.
func (c *choice) containerOf(pod *corev1.Pod) string {
	named := func(container corev1.Container) bool { return container.Name == c.container }
	if c.container != "" && slices.ContainsFunc(pod.Spec.Containers, named) || len(pod.Spec.Containers) == 0 {
		return c.container
	}
	return pod.Spec.Containers[0].Name
}

// labelJobName is on the Pods of a Job in every version of Kubernetes. The one of today, with a prefix, came with 1.27.
const labelJobName = "job-name"

// ofSubmitter are the Pods in which a RayJob is submitted.
func ofSubmitter(job *rayv1.RayJob) (choice, error) {
	c := choice{
		namespace: job.Namespace, container: ray.SubmitterContainer, what: fmt.Sprintf("the submitter of RayJob %s/%s", job.Namespace, job.Name),
		over: rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus),
	}
	switch job.Spec.SubmissionMode {
	case rayv1.K8sJobMode, "":
		c.labels = client.MatchingLabels{labelJobName: job.Name}
	case rayv1.SidecarMode:
		if job.Status.RayClusterName == "" {
			return c, fmt.Errorf("the RayJob %s/%s has no RayCluster, in whose head it is submitted", job.Namespace, job.Name)
		}
		c.labels = client.MatchingLabels{rayv1.LabelCluster: job.Status.RayClusterName, rayv1.LabelNodeType: rayv1.NodeTypeHead}
	default:
		return c, fmt.Errorf("the RayJob %s/%s has no submitter in %s: its job's log is among the files of the head (--source ray --group head)",
			job.Namespace, job.Name, job.Spec.SubmissionMode)
	}
	return c, nil
}

// headWord is what users may write for the group of the head.
const headWord = "head"

// ofCluster are the Pods of a cluster that the flags choose.
func (r *reader) ofCluster(ctx context.Context, namespace, cluster string) (choice, error) {
	c := choice{
		namespace: namespace, what: fmt.Sprintf("RayCluster %s/%s", namespace, cluster),
		labels: client.MatchingLabels{rayv1.LabelCluster: cluster, rayv1.LabelIsRayNode: rayv1.IsRayNodeYes},
	}
	switch group := r.options.group; group {
	case "":
	case headWord:
		c.labels[rayv1.LabelNodeType] = rayv1.NodeTypeHead
	default:
		c.labels[rayv1.LabelGroup] = group
	}
	worker := r.options.worker
	if worker == "" {
		return c, nil
	}
	c.labels[rayv1.LabelNodeType] = rayv1.NodeTypeWorker
	number, err := strconv.Atoi(worker)
	if err != nil {
		c.pod = worker
		return c, nil
	}
	pods, err := r.pods(ctx, &c)
	if err != nil {
		return c, err
	}
	// Workers that another operator made may not be numbered. Then they are counted.
	if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Labels[rayv1.LabelWorkerGroupReplicaIndex] != "" }) {
		c.replica = worker
		return c, nil
	}
	if number < 0 || number >= len(pods) {
		return c, fmt.Errorf("there is no worker %d among the %d workers of %s", number, len(pods), c.what)
	}
	c.pod = pods[number].Name
	return c, nil
}

// pods are the chosen Pods by name.
func (r *reader) pods(ctx context.Context, c *choice) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(c.namespace), c.labels); err != nil {
		return nil, fmt.Errorf("list the Pods of %s: %w", c.what, err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !c.takes(&pod) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}
