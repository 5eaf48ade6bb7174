package raycluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

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
	for name, kind := range ownedKinds(settings.Routes) {
		errs = append(errs, s.observeOwned(ctx, reader, name, kind), s.observeNamed(ctx, reader, name, kind))
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
