package get

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// scope is where to look.
type scope struct {
	// namespace is empty for all namespaces.
	namespace string
}

func (s scope) String() string {
	if s.namespace == corev1.NamespaceAll {
		return "in any namespace"
	}
	return fmt.Sprintf("in namespace %q", s.namespace)
}

// all tells whether all namespaces are meant.
func (s scope) all() bool { return s.namespace == corev1.NamespaceAll }

// scopeFlag is the flag -A.
type scopeFlag struct{ allNamespaces bool }

func (f *scopeFlag) add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Look in all namespaces.")
}

func (f *scopeFlag) scope(env *kube.Env) (scope, error) {
	if f.allNamespaces {
		return scope{namespace: corev1.NamespaceAll}, nil
	}
	namespace, err := env.Namespace()
	return scope{namespace: namespace}, err
}

// source says how objects of a kind are read.
type source[T client.Object] struct {
	// what is the word for one object in messages.
	what string
	// object and list return empty ones to read into.
	object func() T
	list   func() client.ObjectList
}

// raw reads objects as the API server has them, with fields that this program does not know.
func raw(what string, kind schema.GroupVersionKind) source[*unstructured.Unstructured] {
	return source[*unstructured.Unstructured]{
		what: what,
		object: func() *unstructured.Unstructured {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			return object
		},
		list: func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			return list
		},
	}
}

// find reads the objects of a name, or all when the name is empty. No object of a name that is given is an error.
func (s source[T]) find(ctx context.Context, c client.Reader, where scope, name string, options ...client.ListOption) ([]T, error) {
	found, err := s.read(ctx, c, where, name, options...)
	if err != nil {
		return nil, err
	}
	if name != "" && len(found) == 0 {
		return nil, fmt.Errorf("no %s %q %s", s.what, name, where)
	}
	for _, object := range found {
		object.SetManagedFields(nil)
	}
	return found, nil
}

func (s source[T]) read(ctx context.Context, c client.Reader, where scope, name string, options ...client.ListOption) ([]T, error) {
	// Whoever may read only objects that a role names can get them, and not list.
	if name != "" && !where.all() && len(options) == 0 {
		object := s.object()
		err := c.Get(ctx, types.NamespacedName{Namespace: where.namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s/%s: %w", s.what, where.namespace, name, err)
		}
		return []T{object}, nil
	}
	list := s.list()
	if err := c.List(ctx, list, append(options, client.InNamespace(where.namespace))...); err != nil {
		return nil, fmt.Errorf("list every %s %s: %w", s.what, where, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("list every %s %s: %w", s.what, where, err)
	}
	var found []T
	for _, item := range items {
		if object, ok := item.(T); ok && (name == "" || object.GetName() == name) {
			found = append(found, object)
		}
	}
	return found, nil
}
