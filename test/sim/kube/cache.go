package kube

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache is what one process knows of the objects on the server. Of each kind it knows the state at one moment of the
// past, which moves on when the simulation says so.
type Cache struct {
	cache.Cache
	server *Server
	only   map[string]labels.Selector
	kinds  map[string]*kindCache

	mu      sync.Mutex // controllers register from several goroutines
	indices map[string]client.IndexerFunc
}

// kindCache is the part of a Cache for one kind.
type kindCache struct {
	objects  map[types.NamespacedName]client.Object
	at       int // how much of the history is known
	handlers []toolscache.ResourceEventHandler
}

// NewCache returns a cache that has just been filled. Of the kinds in only it shows what the selectors select.
func NewCache(server *Server, only map[string]labels.Selector) *Cache {
	c := &Cache{server: server, only: only, kinds: map[string]*kindCache{}, indices: map[string]client.IndexerFunc{}}
	for kind, objects := range server.objects {
		known := make(map[types.NamespacedName]client.Object, len(objects))
		for name, object := range objects {
			if c.selected(kind, object) != nil {
				known[name] = stripped(object)
			}
		}
		c.kinds[kind] = &kindCache{objects: known, at: len(server.history[kind])}
	}
	return c
}

// selected returns the object if the cache shows such objects, or nil.
func (c *Cache) selected(kind string, object client.Object) client.Object {
	if only := c.only[kind]; object == nil || only != nil && !only.Matches(labelsOf(object.GetLabels())) {
		return nil
	}
	return object
}

// stripped is an object as caches keep it: without the owners of its fields.
func stripped(object client.Object) client.Object {
	if len(object.GetManagedFields()) == 0 {
		return object
	}
	object = copyOf(object)
	object.SetManagedFields(nil)
	return object
}

// Reader returns a Reader of what the cache shows.
func (c *Cache) Reader() client.Reader { return reader{schema: c.server.Schema, from: c} }

// Get reads one object.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.Reader().Get(ctx, key, into, options...)
}

// List reads objects of one kind.
func (c *Cache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.Reader().List(ctx, into, options...)
}

func (c *Cache) get(kind string, key client.ObjectKey) client.Object {
	if object, ok := c.kinds[kind].objects[key]; ok {
		return object
	}
	return nil
}

func (c *Cache) all(kind string) []client.Object { return sorted(c.kinds[kind].objects) }

func (c *Cache) version() string { return "" }

func (c *Cache) index(kind, name string) client.IndexerFunc {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.indices[kind+"/"+name]
}

// IndexField adds an index.
func (c *Cache) IndexField(_ context.Context, object client.Object, name string, index client.IndexerFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.indices[c.server.Schema.KindOf(object)+"/"+name] = index
	return nil
}

// WaitForCacheSync returns at once: a Cache is filled when it is made.
func (c *Cache) WaitForCacheSync(context.Context) bool { return true }

// Pending returns how many changes of a kind the cache has not seen.
func (c *Cache) Pending(kind string) int { return len(c.server.history[kind]) - c.kinds[kind].at }

// Seen tells whether the cache knows all changes of a kind up to a resourceVersion.
func (c *Cache) Seen(kind string, rv int64) bool {
	return c.Pending(kind) == 0 || c.server.history[kind][c.kinds[kind].at].rv > rv
}

// Deliver lets the cache see the next change of a kind, and tells the controllers.
func (c *Cache) Deliver(kind string) {
	k := c.kinds[kind]
	next := c.server.history[kind][k.at]
	k.at++
	k.show(next.name, c.selected(kind, next.after))
}

// Relist lets the cache see the present state of a kind at once. Controllers learn of the difference only, as after a
// broken watch: what came and went meanwhile is never told, and a new object under an old name looks like a change.
func (c *Cache) Relist(kind string) {
	k := c.kinds[kind]
	missed := c.server.history[kind][k.at:]
	k.at += len(missed)
	seen := map[types.NamespacedName]bool{}
	for _, change := range missed {
		if !seen[change.name] {
			seen[change.name] = true
			k.show(change.name, c.selected(kind, c.server.Get(kind, change.name)))
		}
	}
}

// show changes what is known of one object; after is nil when it is gone.
func (k *kindCache) show(name types.NamespacedName, after client.Object) {
	before, known := k.objects[name]
	if after == nil {
		delete(k.objects, name)
		if known {
			k.tell(func(h toolscache.ResourceEventHandler) { h.OnDelete(before) })
		}
		return
	}
	after = stripped(after)
	k.objects[name] = after
	if known {
		k.tell(func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, after) })
		return
	}
	k.tell(func(h toolscache.ResourceEventHandler) { h.OnAdd(after, false) })
}

func (k *kindCache) tell(tell func(toolscache.ResourceEventHandler)) {
	for _, handler := range k.handlers {
		tell(handler)
	}
}

// GetInformer returns the source of events of a kind.
func (c *Cache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{cache: c, kind: c.kinds[c.server.Schema.KindOf(object)]}, nil
}

type informer struct {
	cache.Informer
	cache *Cache
	kind  *kindCache
}

// AddEventHandlerWithOptions registers a handler and tells it of everything that is known.
func (i informer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.mu.Lock()
	i.kind.handlers = append(i.kind.handlers, handler)
	i.cache.mu.Unlock()
	for _, object := range sorted(i.kind.objects) {
		handler.OnAdd(object, true)
	}
	return registration{}, nil
}

type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

// HasSynced is true: handlers are told of everything at once.
func (registration) HasSynced() bool { return true }
