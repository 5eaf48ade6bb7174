package conformance

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Given an object whose field may be set once, when that field is changed, then the change is refused with the old
// value in the text; setting it for the first time and removing it are taken.
func (c *cluster) refusesChangesOfFixedFields(t *testing.T) {
	tests := map[string]struct {
		kind, path, before, after string
		// want is part of the refusal; empty if the change is taken.
		want string
	}{
		"managedBy of a RayCluster changed": {
			rayv1.KindRayCluster, "spec.managedBy", rayv1.ManagedByOperator, rayv1.ManagedByMultiKueue,
			"managedBy is ray.io/kuberay-operator and cannot be changed once it is set",
		},
		"managedBy of a RayJob changed": {
			rayv1.KindRayJob, "spec.managedBy", rayv1.ManagedByMultiKueue, rayv1.ManagedByOperator,
			"managedBy is kueue.x-k8s.io/multikueue and cannot be changed once it is set",
		},
		"managedBy of a RayService changed": {
			rayv1.KindRayService, "spec.managedBy", rayv1.ManagedByOperator, rayv1.ManagedByMultiKueue, "cannot be changed once it is set",
		},
		"managedBy set later":    {rayv1.KindRayCluster, "spec.managedBy", "-", rayv1.ManagedByOperator, ""},
		"managedBy removed":      {rayv1.KindRayCluster, "spec.managedBy", rayv1.ManagedByOperator, "-", ""},
		"backend of GCS changed": {rayv1.KindRayCluster, "spec.gcsFaultToleranceOptions.backend", "redis", "rocksdb", "backend is redis and cannot be changed once it is set"},
		"backend of GCS set later": {
			rayv1.KindRayCluster, "spec.gcsFaultToleranceOptions.backend", "-", "rocksdb", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			created, err := c.create(t.Context(), build(t, test.kind, test.path, test.before), c.newNamespace(t))
			if err != nil {
				t.Fatalf("creating: %v", err)
			}
			change(t, created.Object, strings.Split(test.path, "."), test.after)
			_, err = c.update(t, created)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && err == nil:
				t.Errorf("the change was taken")
			case test.want != "" && !strings.Contains(err.Error(), test.want):
				t.Errorf("the refusal does not say %q:\n%v", test.want, err)
			}
		})
	}
}

// Given a manifest of the old version, when it is created, then it is taken with a warning that names the version to
// use, and it is there under both versions.
func (c *cluster) servesTheOldVersionWithAWarning(t *testing.T) {
	for _, kind := range []string{rayv1.KindRayCluster, rayv1.KindRayJob, rayv1.KindRayService} {
		t.Run(kind, func(t *testing.T) {
			namespace := c.newNamespace(t)
			c.warnings.take()
			created, err := c.create(t.Context(), oldVersion(t, kind), namespace)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			said := c.warnings.take()
			if !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, "use ray.io/v1 "+kind) }) {
				t.Errorf("no warning that names ray.io/v1 %s, only %q", kind, said)
			}
			current := created.DeepCopy()
			current.SetAPIVersion("ray.io/v1")
			resource, err := c.resource(current.GroupVersionKind(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := resource.Get(t.Context(), created.GetName(), metav1.GetOptions{}); err != nil {
				t.Errorf("reading it as ray.io/v1: %v", err)
			}
			if said := c.warnings.take(); len(said) != 0 {
				t.Errorf("reading it as ray.io/v1 warns: %q", said)
			}
		})
	}
}

// Given an object that came into being before our rules, with a name that they refuse, when its status, labels and
// finalizers are written, then that works: nobody is locked out of what exists.
func (c *cluster) letsOlderObjectsBeChangedAndDeleted(t *testing.T) {
	for _, kind := range []string{rayv1.KindRayCluster, rayv1.KindRayJob, rayv1.KindRayService} {
		t.Run(kind, func(t *testing.T) {
			namespace := c.newNamespace(t)
			// The old version has no such rules, so that it lets us make such an object.
			old := oldVersion(t, kind)
			old.SetName(strings.Repeat("a", 60))
			old.SetFinalizers([]string{"test.example/hold"})
			created, err := c.create(t.Context(), old, namespace)
			if err != nil {
				t.Fatalf("creating: %v", err)
			}
			created.SetAPIVersion("ray.io/v1")
			resource, err := c.resource(created.GroupVersionKind(), namespace)
			if err != nil {
				t.Fatal(err)
			}
			status := []byte(`{"status": {"observedGeneration": 1}}`)
			if _, err := resource.Patch(t.Context(), created.GetName(), types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
				t.Errorf("writing the status: %v", err)
			}
			for _, patch := range []string{`{"metadata": {"labels": {"a": "b"}}}`, `{"metadata": {"finalizers": null}}`} {
				if _, err := resource.Patch(t.Context(), created.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
					t.Errorf("patching %s: %v", patch, err)
				}
			}
			if err := resource.Delete(t.Context(), created.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Errorf("deleting: %v", err)
			}
		})
	}
}

// oldVersion returns the smallest object of the kind in version v1alpha1, which asks for start parameters.
func oldVersion(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	head := map[string]string{
		rayv1.KindRayCluster: "spec.headGroupSpec.rayStartParams",
		rayv1.KindRayJob:     "spec.rayClusterSpec.headGroupSpec.rayStartParams",
		rayv1.KindRayService: "spec.rayClusterConfig.headGroupSpec.rayStartParams",
	}
	object := build(t, kind, head[kind], "{}")
	if kind == rayv1.KindRayCluster {
		change(t, object.Object, strings.Split("spec.workerGroupSpecs.0.rayStartParams", "."), "{}")
	}
	object.SetAPIVersion("ray.io/v1alpha1")
	return object
}

func (c *cluster) update(t *testing.T, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	resource, err := c.resource(object.GroupVersionKind(), object.GetNamespace())
	if err != nil {
		t.Fatal(err)
	}
	return resource.Update(t.Context(), object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
}
