package kube

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// source is anything that objects are read from: the server itself, or a cache.
type source interface {
	get(kind string, key client.ObjectKey) client.Object
	all(kind string) []client.Object
	// version is the resourceVersion of lists, or empty.
	version() string
	// index returns the function of a cache index, or nil.
	index(kind, name string) client.IndexerFunc
}

func (s *Server) get(kind string, key client.ObjectKey) client.Object { return s.Get(kind, key) }
func (s *Server) all(kind string) []client.Object                     { return s.List(kind) }
func (s *Server) version() string                                     { return strconv.FormatInt(s.rv, 10) }
func (s *Server) index(string, string) client.IndexerFunc             { return nil }

// Live returns a Reader of what the server stores now.
func (s *Server) Live() client.Reader { return reader{schema: s.Schema, from: s} }

// reader answers reads from a source, with copies.
type reader struct {
	schema *Schema
	from   source
}

// Get reads one object.
func (r reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k := r.schema.kindOf(into)
	object := r.from.get(k.name, key)
	if object == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	r.schema.fill(into, object)
	return nil
}

// List reads the objects that match namespace, labels and at most one indexed field, by name.
func (r reader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	k := r.schema.kindOf(into)
	matches := func(client.Object) bool { return true }
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		wanted := o.FieldSelector.Requirements()[0]
		index := r.from.index(k.name, wanted.Field)
		if index == nil {
			return fmt.Errorf("there is no index %s of %s", wanted.Field, k.name)
		}
		matches = func(object client.Object) bool { return slices.Contains(index(object), wanted.Value) }
	}
	var found []client.Object
	for _, object := range r.from.all(k.name) {
		if (o.Namespace == "" || o.Namespace == object.GetNamespace()) && matches(object) &&
			(o.LabelSelector == nil || o.LabelSelector.Matches(labelsOf(object.GetLabels()))) {
			found = append(found, object)
		}
	}
	into.SetResourceVersion(r.from.version())
	if partial, isPartial := into.(*metav1.PartialObjectMetadataList); isPartial {
		partial.Items = make([]metav1.PartialObjectMetadata, len(found))
		for i, object := range found {
			r.schema.fill(&partial.Items[i], object)
		}
		return nil
	}
	items := reflect.ValueOf(into).Elem().FieldByName("Items")
	filled := reflect.MakeSlice(items.Type(), len(found), len(found))
	for i, object := range found {
		filled.Index(i).Set(reflect.ValueOf(copyOf(object)).Elem())
	}
	items.Set(filled)
	return nil
}

// labelsOf lets a label selector look at a plain map.
type labelsOf map[string]string

// Has tells whether there is a label.
func (l labelsOf) Has(label string) bool { _, ok := l[label]; return ok }

// Get returns the value of a label.
func (l labelsOf) Get(label string) string { return l[label] }

// Lookup returns the value of a label and whether there is one.
func (l labelsOf) Lookup(label string) (string, bool) { value, ok := l[label]; return value, ok }
