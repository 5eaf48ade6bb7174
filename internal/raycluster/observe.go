package raycluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// OwnerUIDIndex is the cache index by the UID of the controlling owner. What belongs to a cluster is found by UID
// and never by labels, so that the Pods of a deleted cluster of the same name are not taken for its successor's.
const OwnerUIDIndex = "heliostat.io/owner-uid"

// IndexOwnerUID returns the UID of the object's controller.
func IndexOwnerUID(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	return []string{string(owner.UID)}
}

// Snapshot is all that one plan for a RayCluster may know.
type Snapshot struct {
	// Cluster is nil when it is gone.
	Cluster *rayv1.RayCluster
	// Pods are those that the cluster controls, terminating ones included.
	Pods []*corev1.Pod
	// Owned are the Services that the cluster controls.
	Owned []*corev1.Service
	// Named are the Services that stand under a name the cluster wants, whoever owns them.
	Named map[string]*corev1.Service
	// Holds are the writes that failed lately, by group.
	Holds map[string]action.Hold
}

// observe reads the cluster and all that belongs to it from the caches.
func observe(ctx context.Context, reader client.Reader, name types.NamespacedName) (Snapshot, error) {
	cluster := &rayv1.RayCluster{}
	if err := reader.Get(ctx, name, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return Snapshot{}, nil
		}
		return Snapshot{}, fmt.Errorf("read RayCluster %s: %w", name, err)
	}
	snapshot := Snapshot{Cluster: cluster, Named: map[string]*corev1.Service{}}
	owned := []client.ListOption{client.InNamespace(name.Namespace), client.MatchingFields{OwnerUIDIndex: string(cluster.UID)}}

	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, owned...); err != nil {
		return Snapshot{}, fmt.Errorf("list the Pods of RayCluster %s: %w", name, err)
	}
	for i := range pods.Items {
		snapshot.Pods = append(snapshot.Pods, &pods.Items[i])
	}

	services := &corev1.ServiceList{}
	if err := reader.List(ctx, services, owned...); err != nil {
		return Snapshot{}, fmt.Errorf("list the Services of RayCluster %s: %w", name, err)
	}
	for i := range services.Items {
		snapshot.Owned = append(snapshot.Owned, &services.Items[i])
	}
	for _, wanted := range serviceNames(cluster) {
		service := &corev1.Service{}
		err := reader.Get(ctx, types.NamespacedName{Namespace: name.Namespace, Name: wanted}, service)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Snapshot{}, fmt.Errorf("read Service %s/%s: %w", name.Namespace, wanted, err)
		}
		snapshot.Named[wanted] = service
	}
	return snapshot, nil
}

// uids are the UIDs of all owned objects that the caches show.
func (s Snapshot) uids() []types.UID {
	uids := make([]types.UID, 0, len(s.Pods)+len(s.Owned))
	for _, pod := range s.Pods {
		uids = append(uids, pod.UID)
	}
	for _, service := range s.Owned {
		uids = append(uids, service.UID)
	}
	return uids
}

// serviceNames are the names under which the cluster's Services may stand.
func serviceNames(cluster *rayv1.RayCluster) []string {
	return []string{HeadServiceName(cluster), ServeServiceName(cluster.Name), HeadlessServiceName(cluster.Name)}
}
