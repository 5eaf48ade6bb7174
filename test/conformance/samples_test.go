package conformance

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Given the sample manifests that users of the API know, when they are created on a real API server with strict
// validation of fields, then every document is taken, save those of kinds that belong to other projects.
func (c *cluster) takesSampleManifests(t *testing.T) {
	root := sharedFile(t, "conformance/kuberay-samples")
	taken, all := 0, 0
	foreign := map[string]int{}
	for _, path := range yamlFiles(t, root) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("reading a sample: %v", err)
		}
		objects, err := documents(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		namespace := c.newNamespace(t)
		var clusterScoped []*unstructured.Unstructured
		for _, object := range objects {
			if c.isForeign(t, object) {
				foreign[object.GroupVersionKind().String()]++
				continue
			}
			all++
			name, _ := filepath.Rel(root, path)
			created, err := c.create(t.Context(), object, namespace)
			if err != nil {
				t.Errorf("%s: %s %s%s is refused: %v", name, object.GetKind(), object.GetName(), object.GetGenerateName(), err)
				continue
			}
			taken++
			if created.GetNamespace() == "" {
				clusterScoped = append(clusterScoped, created)
			}
		}
		// The next file may bring objects of the same names, and only those in a namespace are kept apart.
		for _, object := range clusterScoped {
			c.delete(t, object)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(foreign)) {
		t.Logf("left out: %d of the third-party kind %s", foreign[kind], kind)
	}
	if all == 0 {
		t.Errorf("no documents below %s", root)
	}
	t.Logf("samples: %d of %d", taken, all)
}

// isForeign tells whether the kind belongs to another project, so that the API server does not know it. A kind of the
// ray.io group never does: that one must be served.
func (c *cluster) isForeign(t *testing.T, object *unstructured.Unstructured) bool {
	t.Helper()
	gvk := object.GroupVersionKind()
	_, err := c.resource(gvk, "any")
	if err == nil || gvk.Group == rayv1.GroupName {
		return false
	}
	if !meta.IsNoMatchError(err) {
		t.Fatalf("looking for %s: %v", gvk, err)
	}
	return true
}

func yamlFiles(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".yaml") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("listing samples: %v", err)
	}
	return paths
}
