// Package wake puts objects into a controller's queue for reasons that are not changes of watched objects: a term
// has begun, or Ray gave a new answer.
package wake

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Bell wakes the controller that watches its Source. Rings before that controller has started are lost, which is
// harmless: a starting controller looks at everything once.
type Bell struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns a Bell.
func New() *Bell { return &Bell{} }

// Source is to be watched by the controller.
func (b *Bell) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.queue = queue
		return nil
	})
}

// Ring queues one object and returns at once.
func (b *Bell) Ring(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue != nil {
		b.queue.Add(reconcile.Request{NamespacedName: name})
	}
}

// RingAll queues every object that reader lists into list.
func (b *Bell) RingAll(ctx context.Context, reader client.Reader, list client.ObjectList) error {
	if err := reader.List(ctx, list); err != nil {
		return fmt.Errorf("list all %T to queue them: %w", list, err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("read the name of a listed object: %w", err)
		}
		b.Ring(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
		return nil
	})
}
