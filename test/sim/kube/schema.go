// Package kube is a model of a Kubernetes API server in memory, small and quick enough for thousands of simulated
// histories, and faithful in what controllers stumble over: resourceVersions and conflicts, generations, the status
// subresource, merge and JSON patches, server-side apply (by the code of the API server itself), preconditions,
// finalizers, graceful deletion of Pods, garbage collection, admission, and caches that learn of changes late.
//
// Nothing in it runs by itself: a Server changes when Do is called, a Cache when Deliver or Relist is called.
package kube

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Schema is what is known about kinds. It never changes, and Servers share it.
type Schema struct {
	// Scheme knows the Go types.
	Scheme *runtime.Scheme
	// Mapper knows the resources.
	Mapper meta.RESTMapper

	byName map[string]*kind
	byType map[reflect.Type]*kind
}

// kind is one kind of objects.
type kind struct {
	name     string
	gvk      schema.GroupVersionKind
	resource schema.GroupResource
	goType   reflect.Type
	listType reflect.Type
	// fields tracks who set what; nil for kinds that are never applied.
	fields *managedfields.FieldManager
}

// NewSchema returns the Schema of the given kinds. Owners of fields are tracked for the applied ones only, because that
// costs most of the time. All kinds are namespaced and have a status subresource if their Go type has a field Status.
func NewSchema(scheme *runtime.Scheme, plain, applied []client.Object) (*Schema, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	s := &Schema{Scheme: scheme, Mapper: mapper, byName: map[string]*kind{}, byType: map[reflect.Type]*kind{}}
	for _, object := range slices.Concat(plain, applied) {
		gvks, _, err := scheme.ObjectKinds(object)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", object, err)
		}
		gvk := gvks[0]
		mapper.Add(gvk, meta.RESTScopeNamespace)
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		k := &kind{name: gvk.Kind, gvk: gvk, resource: plural.GroupResource(), goType: reflect.TypeOf(object).Elem()}
		list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("find the list of %s: %w", gvk.Kind, err)
		}
		k.listType = reflect.TypeOf(list).Elem()
		s.byName[gvk.Kind], s.byType[k.goType], s.byType[k.listType] = k, k, k
	}
	types := applyconfigurations.NewTypeConverter(scheme)
	for _, object := range applied {
		k := s.byType[reflect.TypeOf(object).Elem()]
		var err error
		k.fields, err = managedfields.NewDefaultFieldManager(types, scheme, nothing{}, scheme, k.gvk, k.gvk.GroupVersion(), "", nil)
		if err != nil {
			return nil, fmt.Errorf("track the fields of %s: %w", k.name, err)
		}
	}
	return s, nil
}

// nothing fills in no defaults.
type nothing struct{}

// Default does nothing.
func (nothing) Default(runtime.Object) {}

// Kinds returns the names of all kinds in order.
func (s *Schema) Kinds() []string {
	names := make([]string, 0, len(s.byName))
	for name := range s.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Describe returns the full name of a kind and an empty list of it.
func (s *Schema) Describe(name string) (schema.GroupVersionKind, client.ObjectList) {
	k := s.byName[name]
	return k.gvk, reflect.New(k.listType).Interface().(client.ObjectList)
}

// KindOf returns the name of the kind of an object or a list.
func (s *Schema) KindOf(object runtime.Object) string { return s.kindOf(object).name }

// kindOf panics for an unknown kind: the list of kinds in the simulation is then incomplete.
func (s *Schema) kindOf(object runtime.Object) *kind {
	if k := s.byType[reflect.TypeOf(object).Elem()]; k != nil {
		return k
	}
	switch object.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		name := strings.TrimSuffix(object.GetObjectKind().GroupVersionKind().Kind, "List")
		if k := s.byName[name]; k != nil {
			return k
		}
	}
	panic(fmt.Sprintf("the model of the API server has no kind for %T", object))
}

func (k *kind) empty() client.Object { return reflect.New(k.goType).Interface().(client.Object) }

// field returns a field of an object by its name in Go; it is not valid where the kind has none.
func field(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func copyOf(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }
