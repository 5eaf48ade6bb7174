package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// awaited is the cluster that is waited for.
type awaited struct {
	namespace, name string
	// from is the resourceVersion from which on changes are watched.
	from    string
	timeout time.Duration
}

// watcher opens the watch on the one cluster, again after the API server has closed it.
type watcher struct {
	awaited
	client.WithWatch
}

// WatchWithContext opens the watch.
func (w watcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return w.WithWatch.Watch(ctx, &rayv1.RayClusterList{}, client.InNamespace(w.namespace), &client.ListOptions{
		Namespace:     w.namespace,
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, w.name),
		Raw:           &options,
	})
}

// waitProvisioned waits until all Pods of the cluster were ready. It ends with kube.ExitTimeout when the time is over first.
func waitProvisioned(ctx context.Context, env *kube.Env, a awaited) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	retrying, err := watchtools.NewRetryWatcherWithContext(ctx, a.from, watcher{awaited: a, WithWatch: c})
	if err != nil {
		return fmt.Errorf("watch RayCluster %s/%s: %w", a.namespace, a.name, err)
	}
	var last *rayv1.RayCluster
	_, err = watchtools.UntilWithoutRetry(ctx, retrying, func(event watch.Event) (bool, error) {
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		cluster, ok := event.Object.(*rayv1.RayCluster)
		if !ok || cluster.Name != a.name {
			return false, nil
		}
		last = cluster
		if event.Type == watch.Deleted {
			return false, errors.New("somebody deleted it")
		}
		return provisioned(cluster), nil
	})
	switch {
	case err == nil:
		_, err = fmt.Fprintf(env.Out, "Ray cluster %s is provisioned\n", a.name)
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return kube.ExitError{Code: kube.ExitTimeout, Err: fmt.Errorf("RayCluster %s/%s is not provisioned after %s%s",
			a.namespace, a.name, a.timeout, because(last))}
	default:
		// When somebody interrupts, the watch ends with an error of its own that says less.
		return fmt.Errorf("wait for RayCluster %s/%s: %w", a.namespace, a.name, cmp.Or(ctx.Err(), err))
	}
}

// provisioned tells whether all Pods were ready. Operators before KubeRay 1.3 have no conditions, only a state.
func provisioned(cluster *rayv1.RayCluster) bool {
	if condition := meta.FindStatusCondition(cluster.Status.Conditions, rayv1.ConditionRayClusterProvisioned); condition != nil {
		return condition.Status == metav1.ConditionTrue
	}
	return cluster.Status.State == rayv1.ClusterStateReady
}

// because is what the cluster last said of itself.
func because(cluster *rayv1.RayCluster) string {
	if cluster == nil {
		return ": no operator has said anything of it"
	}
	for _, kind := range []string{rayv1.ConditionStalled, rayv1.ConditionReplicaFailure} {
		if c := meta.FindStatusCondition(cluster.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return fmt.Sprintf(": %s: %s: %s", kind, c.Reason, c.Message)
		}
	}
	for _, kind := range []string{rayv1.ConditionReady, rayv1.ConditionHeadPodReady, rayv1.ConditionRayClusterProvisioned} {
		if c := meta.FindStatusCondition(cluster.Status.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return fmt.Sprintf(": %s is %s: %s: %s", kind, c.Status, c.Reason, c.Message)
		}
	}
	return ""
}
