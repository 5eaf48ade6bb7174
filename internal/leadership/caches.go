package leadership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// cachePause is the time between two looks into a cache that is behind.
	cachePause = 20 * time.Millisecond
	// listAgainAfter is how long a cache may be behind a list before there is a new list: what was listed may be gone
	// before the cache has ever shown it.
	listAgainAfter = 2 * time.Second
)

// CachedKind is one kind that plans are made from.
type CachedKind struct {
	// Kind is the kind of the objects.
	Kind schema.GroupVersionKind
	// List is an empty list of the type that the cache has.
	List client.ObjectList
	// Selector is what the cache is limited to; nil is no limit.
	Selector client.ListOption
}

// Caches are what a new leader plans from. A standby's may be behind: what its predecessor wrote last may still be on
// its way.
type Caches struct {
	// Cache reads what plans are made from.
	Cache client.Reader
	// Live reads from the API server itself.
	Live client.Reader
	// Kinds are all kinds that plans depend on.
	Kinds []CachedKind
	// Namespaces are those that the caches cover; none means all.
	Namespaces []string
}

// CatchUp returns when the caches show everything that was accepted before the call. It compares content with a
// consistent list of metadata, because the informer of a quiet kind learns a newer version only about once a minute.
func (c Caches) CatchUp(ctx context.Context) error {
	errs := make([]error, len(c.Kinds))
	var wg sync.WaitGroup
	for i, kind := range c.Kinds {
		wg.Go(func() { errs[i] = c.catchUp(ctx, kind) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c Caches) catchUp(ctx context.Context, kind CachedKind) error {
	for {
		stored, err := c.stored(ctx, kind)
		if err != nil {
			return err
		}
		for listed := time.Now(); time.Since(listed) < listAgainAfter; {
			shown, err := c.shown(ctx, kind)
			if err != nil {
				return err
			}
			behind, err := stored.ahead(shown)
			if err != nil || !behind {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("wait until the cache of kind %s has caught up: %w", kind.Kind.Kind, ctx.Err())
			case <-time.After(cachePause):
			}
		}
	}
}

// versions are the resource versions of the objects of a kind.
type versions struct {
	objects map[types.UID]string
	// of is the version of each namespace's list.
	of map[string]string
	// in is the namespace of each object.
	in map[types.UID]string
}

func newVersions() versions {
	return versions{objects: map[types.UID]string{}, of: map[string]string{}, in: map[types.UID]string{}}
}

func (v versions) add(object metav1.Object, namespace string) {
	v.objects[object.GetUID()], v.in[object.GetUID()] = object.GetResourceVersion(), namespace
}

// stored is what the API server has.
func (c Caches) stored(ctx context.Context, kind CachedKind) (versions, error) {
	found := newVersions()
	for _, namespace := range c.namespaces() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.Kind.GroupVersion().WithKind(kind.Kind.Kind + "List"))
		if err := c.Live.List(ctx, list, kind.options(namespace)...); err != nil {
			return versions{}, fmt.Errorf("list the metadata of kind %s: %w", kind.Kind.Kind, err)
		}
		found.of[namespace] = list.ResourceVersion
		for i := range list.Items {
			found.add(&list.Items[i], namespace)
		}
	}
	return found, nil
}

// shown is what the cache has.
func (c Caches) shown(ctx context.Context, kind CachedKind) (versions, error) {
	found := newVersions()
	for _, namespace := range c.namespaces() {
		list := kind.List.DeepCopyObject().(client.ObjectList)
		options := append(kind.options(namespace), client.UnsafeDisableDeepCopy)
		if err := c.Cache.List(ctx, list, options...); err != nil {
			return versions{}, fmt.Errorf("list kind %s from the cache: %w", kind.Kind.Kind, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil {
				found.add(object, namespace)
			}
			return err
		})
		if err != nil {
			return versions{}, fmt.Errorf("read the metadata of kind %s in the cache: %w", kind.Kind.Kind, err)
		}
	}
	return found, nil
}

func (c Caches) namespaces() []string {
	if len(c.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return c.Namespaces
}

func (k CachedKind) options(namespace string) []client.ListOption {
	options := []client.ListOption{client.InNamespace(namespace)}
	if k.Selector != nil {
		options = append(options, k.Selector)
	}
	return options
}

// ahead tells whether something is stored that the cache does not show yet: an object, a change, or that one is gone.
func (v versions) ahead(shown versions) (bool, error) {
	for uid, version := range v.objects {
		cached, ok := shown.objects[uid]
		if !ok {
			return true, nil
		}
		if older, err := olderThan(cached, version); older || err != nil {
			return older, err
		}
	}
	for uid, version := range shown.objects {
		if _, ok := v.objects[uid]; ok {
			continue
		}
		// What is newer than the list was made after it; all else is gone, and the cache has not heard of it.
		if older, err := olderThan(version, v.of[shown.in[uid]]); older || err != nil {
			return older, err
		}
	}
	return false, nil
}

func olderThan(version, other string) (bool, error) {
	order, err := resourceversion.CompareResourceVersion(version, other)
	if err != nil {
		return false, fmt.Errorf("compare resource versions %q and %q: %w", version, other, err)
	}
	return order < 0, nil
}
