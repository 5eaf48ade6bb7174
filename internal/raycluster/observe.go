package raycluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/diagnose"
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

// EventPodIndex is the cache index of events by the UID of the Pod that they are about.
const EventPodIndex = "heliostat.io/event-pod-uid"

// IndexEventPod returns the UID of the Pod that an event is about.
func IndexEventPod(object client.Object) []string {
	event, ok := object.(*corev1.Event)
	if !ok || event.InvolvedObject.UID == "" {
		return nil
	}
	return []string{string(event.InvolvedObject.UID)}
}

// Snapshot is all that one plan for a RayCluster may know.
type Snapshot struct {
	// Cluster is nil when it is gone.
	Cluster *rayv1.RayCluster
	// Pods are those that the cluster controls, terminating ones included.
	Pods []*corev1.Pod
	// Owned are the objects apart from Pods that the cluster controls. They have their kind written on them.
	Owned []client.Object
	// Named are the objects of others that stand under a name the cluster wants, by objectKey. Of some kinds the caches
	// show only what carries our labels.
	Named map[string]client.Object
	// Holds are the writes that failed lately, by group.
	Holds map[string]action.Hold
	// LastValid is the last spec of the cluster that made sense, nil when none is known.
	LastValid *rayv1.RayClusterSpec
	// Streaks tell which groups' Pods end soon after they are made, by group.
	Streaks map[string]Streak
	// Strangers are the Pods that say by label that they belong to the cluster, and that it does not control.
	Strangers []*corev1.Pod
	// MountFailures are the kubelet's words about volumes that cannot be mounted, by the UID of the Pod.
	MountFailures map[types.UID]string
}

// observe reads the cluster and all that belongs to it from the caches.
func observe(ctx context.Context, reader client.Reader, name types.NamespacedName, settings Settings) (Snapshot, error) {
	cluster := &rayv1.RayCluster{}
	if err := reader.Get(ctx, name, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return Snapshot{}, nil
		}
		return Snapshot{}, fmt.Errorf("read RayCluster %s: %w", name, err)
	}
	snapshot := Snapshot{Cluster: cluster}
	owned := []client.ListOption{client.InNamespace(name.Namespace), client.MatchingFields{OwnerUIDIndex: string(cluster.UID)}}

	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, owned...); err != nil {
		return Snapshot{}, fmt.Errorf("list the Pods of RayCluster %s: %w", name, err)
	}
	for i := range pods.Items {
		snapshot.Pods = append(snapshot.Pods, &pods.Items[i])
	}
	if err := errors.Join(snapshot.observeStrangers(ctx, reader), snapshot.observeMountFailures(ctx, reader)); err != nil {
		return Snapshot{}, err
	}

	if err := snapshot.observeObjects(ctx, reader, settings); err != nil {
		return Snapshot{}, err
	}
	return snapshot, nil
}

// observeStrangers reads the Pods that carry the cluster's label and belong to somebody else.
func (s *Snapshot) observeStrangers(ctx context.Context, reader client.Reader) error {
	pods := &corev1.PodList{}
	err := reader.List(ctx, pods, client.InNamespace(s.Cluster.Namespace),
		client.MatchingLabels{rayv1.LabelCluster: s.Cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the Pods with the label of RayCluster %s/%s: %w", s.Cluster.Namespace, s.Cluster.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		node := pod.Labels[rayv1.LabelNodeType]
		if (node == rayv1.NodeTypeHead || node == rayv1.NodeTypeWorker) && !metav1.IsControlledBy(pod, s.Cluster) {
			s.Strangers = append(s.Strangers, pod)
		}
	}
	return nil
}

// observeMountFailures reads the events about the Pods that have a node and have not started.
func (s *Snapshot) observeMountFailures(ctx context.Context, reader client.Reader) error {
	for _, pod := range s.Pods {
		if pod.Status.Phase != corev1.PodPending || pod.Spec.NodeName == "" {
			continue
		}
		events := &corev1.EventList{}
		err := reader.List(ctx, events, client.InNamespace(pod.Namespace), client.MatchingFields{EventPodIndex: string(pod.UID)})
		if err != nil {
			return fmt.Errorf("list the events about Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if text := diagnose.MountFailure(events.Items); text != "" {
			if s.MountFailures == nil {
				s.MountFailures = map[types.UID]string{}
			}
			s.MountFailures[pod.UID] = text
		}
	}
	return nil
}

// uids are the UIDs of all owned objects that the caches show.
func (s Snapshot) uids() []types.UID {
	uids := make([]types.UID, 0, len(s.Pods)+len(s.Owned))
	for _, pod := range s.Pods {
		uids = append(uids, pod.UID)
	}
	for _, object := range s.Owned {
		uids = append(uids, object.GetUID())
	}
	return uids
}
