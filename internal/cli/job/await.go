package job

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/diagnose"
)

// view is how things stand with a RayJob.
type view struct {
	// cluster is set when it is ready.
	cluster *rayv1.RayCluster
	// waiting is what is waited for otherwise.
	waiting string
	// queued tells whether the RayJob may not begin yet. How long that takes is for others to say.
	queued bool
}

// awaitCluster waits until the cluster of the RayJob is ready, and says meanwhile what it waits for. The RayJob is deleted
// when that takes too long; the time that it stands in a queue does not count.
func (r *run) awaitCluster(ctx context.Context) (*rayv1.RayCluster, error) {
	now := clock.RealClock{}.Now
	deadline := now().Add(r.flags.timeout)
	for {
		v, err := r.look(ctx)
		if ctx.Err() != nil {
			return nil, r.leaving(errors.New("interrupted"))
		}
		switch {
		case err != nil:
			return nil, err
		case v.cluster != nil:
			r.progress.say("RayCluster %s/%s is ready.", v.cluster.Namespace, v.cluster.Name)
			return v.cluster, nil
		case v.queued:
			deadline = now().Add(r.flags.timeout)
		case now().After(deadline):
			return nil, r.giveUp(ctx, fmt.Errorf("the RayCluster was not ready within %s (--cluster-timeout): still waiting for %s", r.flags.timeout, v.waiting))
		}
		r.progress.say("Waiting for %s", v.waiting)
		if err := kube.Sleep(ctx, r.pace.look); err != nil {
			return nil, r.leaving(errors.New("interrupted"))
		}
	}
}

// look reads where things stand. Errors are those that waiting does not mend.
func (r *run) look(ctx context.Context) (view, error) {
	job := r.plan.job
	err := r.client.Get(ctx, client.ObjectKeyFromObject(job), job)
	switch {
	case apierrors.IsNotFound(err), err == nil && job.UID != r.uid:
		return view{}, fmt.Errorf("the RayJob %s/%s was deleted before its job could be submitted", job.Namespace, job.Name)
	case hopeless(err):
		return view{}, r.leaving(fmt.Errorf("read RayJob %s/%s: %w", job.Namespace, job.Name, err))
	case err != nil:
		return view{waiting: fmt.Sprintf("the API server, to read RayJob %s: %s", job.Name, oneLine(err.Error()))}, nil
	}
	if text, over := ended(job); over {
		return view{}, fmt.Errorf("the RayJob %s/%s has ended before its job could be submitted: it is %s", job.Namespace, job.Name, text)
	}
	if job.Spec.Suspend || job.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspended {
		return view{waiting: "RayJob " + job.Name + " to be resumed: it is suspended, as jobs are that stand in a queue", queued: true}, nil
	}
	if job.Status.RayClusterName == "" {
		return view{waiting: awaited("the operator to begin with RayJob "+job.Name, job.Status.Conditions)}, nil
	}
	cluster := &rayv1.RayCluster{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: job.Status.RayClusterName}, cluster)
	switch {
	case apierrors.IsNotFound(err):
		return view{waiting: awaited("RayCluster "+job.Status.RayClusterName+" to be made", job.Status.Conditions)}, nil
	case hopeless(err):
		return view{}, r.leaving(fmt.Errorf("read RayCluster %s/%s: %w", job.Namespace, job.Status.RayClusterName, err))
	case err != nil:
		return view{waiting: fmt.Sprintf("the API server, to read RayCluster %s: %s", job.Status.RayClusterName, oneLine(err.Error()))}, nil
	}
	if ready(cluster) {
		return view{cluster: cluster}, nil
	}
	return view{waiting: r.awaitedOf(ctx, cluster)}, nil
}

// hopeless tells whether the API server will answer the same next time.
func hopeless(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err)
}

// ready tells whether a cluster is ready, also one of another operator, which may set no conditions.
func ready(cluster *rayv1.RayCluster) bool {
	// Older operators write nothing but the state.
	return cluster.Status.State == rayv1.ClusterStateReady || meta.IsStatusConditionTrue(cluster.Status.Conditions, rayv1.ConditionRayClusterProvisioned)
}

// awaited adds to a text why nothing goes on, if a condition says so.
func awaited(text string, conditions []metav1.Condition) string {
	for _, kind := range []string{rayv1.ConditionStalled, rayv1.ConditionReconciling} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue && c.Message != "" {
			return text + ": " + oneLine(c.Message)
		}
	}
	return text
}

// awaitedOf says what a cluster waits for: by its conditions, or by its Pods where its operator sets none.
func (r *run) awaitedOf(ctx context.Context, cluster *rayv1.RayCluster) string {
	text := "RayCluster " + cluster.Name
	if c := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionPodsHealthy); c != nil && c.Status == metav1.ConditionFalse {
		return text + ": " + c.Reason + ": " + oneLine(c.Message)
	}
	if told := awaited(text, cluster.Status.Conditions); told != text {
		return told
	}
	if reason := cluster.Status.Reason; reason != "" {
		return text + ": " + oneLine(reason)
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(cluster.Namespace), client.MatchingLabels{rayv1.LabelCluster: cluster.Name}); err != nil {
		return text + ", whose Pods cannot be listed: " + err.Error()
	}
	if len(pods.Items) == 0 {
		return text + ": it has no Pods yet"
	}
	var notReady []string
	for i := range pods.Items {
		if what := r.waitsFor(&pods.Items[i]); what != "" {
			notReady = append(notReady, what)
		}
	}
	const shown = 3
	if more := len(notReady) - shown; more > 0 {
		notReady = append(notReady[:shown], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s: %s", text, strings.Join(append(notReady, fmt.Sprintf("%d Pods in all", len(pods.Items))), ", "))
}

// waitsFor says why a Pod is not ready, or nothing when it is.
func (r *run) waitsFor(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	if finding, _ := diagnose.Pod(diagnose.PodFacts{Pod: pod, Now: r.env.Now()}); finding.Found() {
		return fmt.Sprintf("%s: %s: %s", finding.Object, finding.Reason, oneLine(finding.Message))
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			return fmt.Sprintf("Pod %s: %s", pod.Name, c.State.Waiting.Reason)
		}
	}
	return fmt.Sprintf("Pod %s is not ready", pod.Name)
}

// oneLine keeps a message to one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
