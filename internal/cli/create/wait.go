package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/state"
)

// waitProvisioned waits until all Pods of the cluster were ready. It fails at once when that will not be unless somebody
// changes something, and ends with kube.ExitTimeout when the time is over first.
func waitProvisioned(ctx context.Context, env *kube.Env, target kube.Target, timeout time.Duration) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last *rayv1.RayCluster
	err = kube.Follow(ctx, c, target, func(object client.Object) (bool, error) {
		cluster, ok := object.(*rayv1.RayCluster)
		if !ok {
			return false, errors.New("somebody deleted it")
		}
		last = cluster
		if provisioned(cluster) {
			return true, nil
		}
		if stalled(cluster) {
			return false, fmt.Errorf("it will not be provisioned unless something is changed%s", because(cluster))
		}
		return false, nil
	})
	switch {
	case err == nil:
		_, err = fmt.Fprintf(env.Out, "Ray cluster %s is provisioned\n", target.Name)
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return kube.ExitError{Code: kube.ExitTimeout, Err: fmt.Errorf("%s is not provisioned after %s%s", target, timeout, because(last))}
	default:
		return fmt.Errorf("wait for %s: %w", target, err)
	}
}

// stalled tells whether the operator says of the present spec that it cannot go on.
func stalled(cluster *rayv1.RayCluster) bool {
	if seen := state.ObservedGeneration(cluster); seen != 0 && seen < cluster.Generation {
		return false
	}
	return state.Of(cluster).Word == state.Stalled
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
	if cluster == nil || len(cluster.Status.Conditions) == 0 && cluster.Status.State == "" {
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
