package plan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// indexed reads from the API server as the operator reads from its caches: it serves the operator's indexes, which the API
// server does not know, by reading the whole namespace.
type indexed struct{ client.Reader }

// List lists all and keeps what the index asks for.
func (r indexed) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	index, value := indexOf(wanted)
	if index == nil {
		return r.Reader.List(ctx, list, options...)
	}
	wanted.FieldSelector = nil
	if err := r.Reader.List(ctx, list, wanted); err != nil {
		return err
	}
	var kept []runtime.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		for _, key := range index(object) {
			if key == value {
				kept = append(kept, item)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("filter a list: %w", err)
	}
	return meta.SetList(list, kept)
}

// indexOf returns the index that options ask for, and the value in it, or nil.
func indexOf(options *client.ListOptions) (client.IndexerFunc, string) {
	if options.FieldSelector == nil {
		return nil, ""
	}
	for field, index := range map[string]client.IndexerFunc{
		raycluster.OwnerUIDIndex: raycluster.IndexOwnerUID, raycluster.EventPodIndex: raycluster.IndexEventPod,
	} {
		if value, found := options.FieldSelector.RequiresExactMatch(field); found {
			return index, value
		}
	}
	return nil, ""
}
