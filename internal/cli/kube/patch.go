package kube

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Addition puts a value at a place of an object, as the operation "add" of RFC 6902 does: a member that exists already is
// replaced, and "-" stands for the end of a list.
type Addition struct {
	Path  string
	Value any
}

// PatchUnchanged makes additions to an object if nobody has changed it since it was read. Unlike an update, it leaves
// fields alone that this program does not know, for example those of a later version of the API. The object then is as
// the API server has it. If somebody has changed it, be it only the operator its status, the error wraps a conflict:
// read, check and patch in retry.RetryOnConflict of client-go.
func PatchUnchanged(ctx context.Context, c client.Writer, object client.Object, additions ...Addition) error {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// With the version that was read in it, the API server answers with a conflict when there is a later one.
	operations := []operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}}
	for _, addition := range additions {
		operations = append(operations, operation{Op: "add", Path: addition.Path, Value: addition.Value})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	err = c.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
	if apierrors.IsConflict(err) {
		return changed{conflict: err}
	}
	return err
}

// changed says a conflict in words for a user, without those of the API server, which speak to programs.
type changed struct{ conflict error }

func (changed) Error() string { return "somebody changed it at the same time: try again" }

// Unwrap returns the conflict.
func (c changed) Unwrap() error { return c.conflict }
