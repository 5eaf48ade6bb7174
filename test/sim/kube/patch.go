package kube

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changed returns the object that a request wants in the place of the live one.
func (s *Server) changed(k *kind, r Request, live client.Object) (client.Object, error) {
	if r.Verb == Patch && r.PatchType == types.ApplyPatchType {
		return s.applied(k, r, live)
	}
	next := r.Object
	if r.Verb == Patch {
		var err error
		if next, err = patched(k, r, live); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if err := keepOther(r.Subresource, live, next); err != nil {
		return nil, err
	}
	if r.Subresource != "" || r.PatchType == types.JSONPatchType {
		return next, nil
	}
	return k.track(live, next, r.Manager)
}

// keepOther undoes what a request may not change: the status through the object, all else through the status.
func keepOther(subresource string, live, next client.Object) error {
	status := field(next, "Status")
	switch subresource {
	case "":
		if status.IsValid() {
			status.Set(field(live, "Status"))
		}
		return nil
	case "status":
		wanted := status.Interface()
		version, uid := next.GetResourceVersion(), next.GetUID()
		setTo(next, copyOf(live))
		next.SetResourceVersion(version)
		next.SetUID(uid)
		field(next, "Status").Set(valueOf(wanted))
		return nil
	default:
		return apierrors.NewBadRequest("the model has no subresource " + subresource)
	}
}

// goField is the Go field that holds a part of an object.
func goField(key string) string {
	switch key {
	case "metadata":
		return "ObjectMeta"
	case "spec":
		return "Spec"
	case "status":
		return "Status"
	}
	return ""
}

// patched applies a merge or a JSON patch. A merge patch is applied part by part, because writing a whole RayCluster as
// JSON takes far longer than writing its status.
func patched(k *kind, r Request, live client.Object) (client.Object, error) {
	if r.PatchType == types.JSONPatchType {
		return jsonPatched(k, r, live)
	}
	if r.PatchType != types.MergePatchType {
		return nil, fmt.Errorf("the model has no patches of type %s", r.PatchType)
	}
	parts := map[string]json.RawMessage{}
	if err := json.Unmarshal(r.Patch, &parts); err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	next := copyOf(live)
	for key, part := range parts {
		into := field(next, goField(key))
		if !into.IsValid() {
			return nil, fmt.Errorf("the model cannot patch %q of %s", key, k.name)
		}
		before, err := json.Marshal(into.Interface())
		if err != nil {
			return nil, err
		}
		after, err := jsonpatch.MergePatch(before, part)
		if err != nil {
			return nil, err
		}
		into.SetZero()
		if err := json.Unmarshal(after, into.Addr().Interface()); err != nil {
			return nil, err
		}
	}
	return next, nil
}

func jsonPatched(k *kind, r Request, live client.Object) (client.Object, error) {
	patch, err := jsonpatch.DecodePatch(r.Patch)
	if err != nil {
		return nil, fmt.Errorf("read the patch: %w", err)
	}
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, err
	}
	next := k.empty()
	return next, json.Unmarshal(after, next)
}

// applied merges an apply into the live object by the rules of the API server.
func (s *Server) applied(k *kind, r Request, live client.Object) (client.Object, error) {
	if k.fields == nil {
		return nil, apierrors.NewBadRequest("the model does not track the fields of " + k.name)
	}
	wanted := &unstructured.Unstructured{}
	if err := json.Unmarshal(r.Patch, &wanted.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	wanted.SetGroupVersionKind(k.gvk)
	uid, version := wanted.GetUID(), wanted.GetResourceVersion()
	merged, err := k.fields.Apply(withKind(live, k.gvk), wanted, r.Manager, r.Force)
	if err != nil {
		return nil, err
	}
	next := copyOf(merged.(client.Object))
	next.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	next.SetUID(uid)
	next.SetResourceVersion(version)
	s.refill(live, next)
	return next, nil
}

// refill sets defaults again that an apply has taken away, because they had come with a create of the same manager.
func (s *Server) refill(live, next client.Object) {
	service, isService := next.(*corev1.Service)
	if !isService {
		return
	}
	if service.Spec.ClusterIP == "" {
		service.Spec.ClusterIP = live.(*corev1.Service).Spec.ClusterIP
	}
	s.fillIn(service)
}

// track notes who set which fields of an object, for kinds where that matters.
func (k *kind) track(before, after client.Object, manager string) (client.Object, error) {
	if k.fields == nil {
		return after, nil
	}
	if manager == "" {
		manager = "unknown"
	}
	tracked, err := k.fields.Update(withKind(before, k.gvk), withKind(after, k.gvk), manager)
	if err != nil {
		return nil, fmt.Errorf("track the fields of %s %s: %w", k.name, after.GetName(), err)
	}
	tracked.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return tracked.(client.Object), nil
}

func withKind(object client.Object, gvk schema.GroupVersionKind) client.Object {
	object = copyOf(object)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return object
}
