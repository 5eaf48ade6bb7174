package raycluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	// Recoveries are the last losses, as the status is to tell of them.
	Recoveries []rayv1.RayClusterRecovery
	// Census is what the status is to keep of the Pods and actors for the next leader.
	Census *rayv1.RayClusterCensus
	// Idle means that Ray has said that no job runs in the cluster.
	Idle bool
	// Streaks tell which groups' Pods end soon after they are made, by group.
	Streaks map[string]Streak
	// Heads are the head Pods of all clusters in the namespace, where this one keeps the state of its GCS on a volume.
	Heads []*corev1.Pod
	// Strangers are the Pods that say by label that they belong to the cluster, and that it does not control.
	Strangers []*corev1.Pod
	// MountFailures are the kubelet's words about volumes that cannot be mounted, by the UID of the Pod.
	MountFailures map[types.UID]string
}

// Observe reads what a plan for a RayCluster is made from, for somebody who looks once and is no operator: what an operator
// remembers of its earlier passes, such as refused writes, is not known. The reader must serve OwnerUIDIndex and
// EventPodIndex. A cluster that is not there gives an empty Snapshot.
func Observe(ctx context.Context, reader client.Reader, name types.NamespacedName, settings Settings, now time.Time) (Snapshot, error) {
	snapshot, err := observe(ctx, reader, name, settings)
	if err != nil || snapshot.Cluster == nil {
		return snapshot, err
	}
	snapshot.LastValid = NewSpecs(settings).Note(snapshot.Cluster)
	if snapshot.LastValid == nil {
		snapshot.LastValid = snapshot.storedSpec()
	}
	snapshot.Recoveries, snapshot.Census = snapshot.Cluster.Status.Recoveries, snapshot.Cluster.Status.LastCensus
	snapshot.Streaks = NewStreaks().Note(snapshot.Cluster, snapshot.Pods, now)
	return snapshot, nil
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
	if err := errors.Join(snapshot.observeStrangers(ctx, reader), snapshot.observeHeads(ctx, reader), snapshot.observeMountFailures(ctx, reader)); err != nil {
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

// observeHeads reads the Pods that may be on the volume of this cluster's GCS.
func (s *Snapshot) observeHeads(ctx context.Context, reader client.Reader) error {
	if !embedded(s.Cluster) {
		return nil
	}
	pods := &corev1.PodList{}
	err := reader.List(ctx, pods, client.InNamespace(s.Cluster.Namespace),
		client.MatchingLabels{rayv1.LabelNodeType: rayv1.NodeTypeHead}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the head Pods in namespace %s: %w", s.Cluster.Namespace, err)
	}
	for i := range pods.Items {
		s.Heads = append(s.Heads, &pods.Items[i])
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

// ownedKind is a kind of objects, apart from Pods, that a RayCluster owns.
type ownedKind struct {
	object client.Object
	list   client.ObjectList
	// names are those under which a cluster wants, or uses, an object of the kind.
	names func(*rayv1.RayCluster) []string
}

// ownedKinds returns all such kinds, by name.
func ownedKinds(routes bool) map[string]ownedKind {
	short := func(cluster *rayv1.RayCluster) []string { return []string{ShortName(cluster.Name)} }
	kinds := map[string]ownedKind{
		kindService: {&corev1.Service{}, &corev1.ServiceList{}, func(cluster *rayv1.RayCluster) []string {
			return []string{HeadServiceName(cluster), ServeServiceName(cluster.Name), HeadlessServiceName(cluster.Name)}
		}},
		kindServiceAccount: {&corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, func(cluster *rayv1.RayCluster) []string {
			return []string{AutoscalerAccountName(cluster)}
		}},
		kindRole:        {&rbacv1.Role{}, &rbacv1.RoleList{}, short},
		kindRoleBinding: {&rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{}, short},
		kindSecret:      {&corev1.Secret{}, &corev1.SecretList{}, short},
		kindRevision: {&appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{}, func(cluster *rayv1.RayCluster) []string {
			return []string{lastValidName(cluster)}
		}},
		kindClaim: {&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, func(cluster *rayv1.RayCluster) []string {
			if !embedded(cluster) {
				return nil
			}
			return []string{claimName(cluster)}
		}},
		kindJob: {&batchv1.Job{}, &batchv1.JobList{}, func(cluster *rayv1.RayCluster) []string {
			if cluster.DeletionTimestamp == nil {
				return nil
			}
			return []string{cleanupJobName(cluster)}
		}},
		kindBudget: {&policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}, budgetNames},
		kindIngress: {&networkingv1.Ingress{}, &networkingv1.IngressList{}, func(cluster *rayv1.RayCluster) []string {
			return []string{ingressName(cluster)}
		}},
	}
	if routes {
		route, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		route.SetGroupVersionKind(RouteKind())
		list.SetGroupVersionKind(RouteKind().GroupVersion().WithKind(kindRoute + "List"))
		kinds[kindRoute] = ownedKind{route, list, func(cluster *rayv1.RayCluster) []string { return []string{routeName(cluster)} }}
	}
	return kinds
}

// OwnedObjects returns one empty object of each kind, apart from Pods, that a RayCluster owns.
func OwnedObjects(settings Settings) []client.Object {
	var objects []client.Object
	for _, kind := range ownedKinds(settings.Routes) {
		objects = append(objects, kind.object)
	}
	return objects
}

// observeObjects reads all but Pods that the cluster owns, and what else stands under the names that it wants.
func (s *Snapshot) observeObjects(ctx context.Context, reader client.Reader, settings Settings) error {
	var errs []error
	s.Named = map[string]client.Object{}
	kinds := ownedKinds(settings.Routes)
	// In a fixed order, so that the same history leads to the same plan.
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		errs = append(errs, s.observeOwned(ctx, reader, name, kinds[name]), s.observeNamed(ctx, reader, name, kinds[name]))
	}
	return errors.Join(errs...)
}

func (s *Snapshot) observeOwned(ctx context.Context, reader client.Reader, name string, kind ownedKind) error {
	err := reader.List(ctx, kind.list, client.InNamespace(s.Cluster.Namespace),
		client.MatchingFields{OwnerUIDIndex: string(s.Cluster.UID)})
	if err != nil {
		return fmt.Errorf("list what RayCluster %s/%s owns of kind %s: %w", s.Cluster.Namespace, s.Cluster.Name, name, err)
	}
	return meta.EachListItem(kind.list, func(item runtime.Object) error {
		s.Owned = append(s.Owned, withKind(item.(client.Object), name))
		return nil
	})
}

func (s *Snapshot) observeNamed(ctx context.Context, reader client.Reader, name string, kind ownedKind) error {
	for _, wanted := range kind.names(s.Cluster) {
		if s.standing(name, wanted) != nil {
			continue
		}
		object := kind.object.DeepCopyObject().(client.Object)
		err := reader.Get(ctx, types.NamespacedName{Namespace: s.Cluster.Namespace, Name: wanted}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s %s/%s: %w", name, s.Cluster.Namespace, wanted, err)
		}
		s.Named[objectKey(name, wanted)] = withKind(object, name)
	}
	return nil
}

// withKind writes the kind on an object, because objects from a cache have none.
func withKind(object client.Object, kind string) client.Object {
	gvk := object.GetObjectKind().GroupVersionKind()
	gvk.Kind = kind
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return object
}

// standing is the object under a name that the cluster wants, whoever owns it, or nil.
func (s Snapshot) standing(kind, name string) client.Object {
	for _, object := range s.Owned {
		if kindOf(object) == kind && object.GetName() == name {
			return object
		}
	}
	return s.Named[objectKey(kind, name)]
}

// service is the Service under a name that the cluster wants, whoever owns it, or nil.
func (s Snapshot) service(name string) *corev1.Service {
	service, _ := s.standing(kindService, name).(*corev1.Service)
	return service
}
