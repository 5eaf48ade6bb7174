package conformance

import (
	"os"
	"path/filepath"
	"testing"
)

// Given the manifests of our own guide, when they are created on a real API server with strict validation of fields, then
// every document is taken.
func (c *cluster) takesOurExamples(t *testing.T) {
	paths := yamlFiles(t, filepath.Join(repositoryRoot, "docs/examples"))
	if len(paths) == 0 {
		t.Fatal("docs/examples holds no manifests")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("reading an example: %v", err)
		}
		objects, err := documents(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		namespace := c.newNamespace(t)
		for _, object := range objects {
			if _, err := c.create(t.Context(), object, namespace); err != nil {
				t.Errorf("%s: %s %s is refused: %v", path, object.GetKind(), object.GetName(), err)
			}
		}
	}
}
