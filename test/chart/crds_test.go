package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestTheChartCarriesTheCRDs(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(chartPath, "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range objectsIn(t, path, string(text)) {
			got[crd.GetKind()+"/"+crd.GetName()] = true
		}
	}
	want := map[string]bool{
		"CustomResourceDefinition/rayclusters.ray.io": true, "CustomResourceDefinition/raycronjobs.ray.io": true,
		"CustomResourceDefinition/holders.heliostat.io": true,
		"CustomResourceDefinition/rayjobs.ray.io":       true, "CustomResourceDefinition/rayservices.ray.io": true,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("crds (-want +got):\n%s", d)
	}
}

// TestTheSchemaKnowsEveryValue keeps values.yaml and values.schema.json together: a value that the schema does not know
// could never be set.
func TestTheSchemaKnowsEveryValue(t *testing.T) {
	var values map[string]any
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	for name, into := range map[string]any{"values.yaml": &values, "values.schema.json": &schema} {
		text, err := os.ReadFile(filepath.Join(chartPath, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for name := range schema.Properties {
		if _, found := values[name]; !found && name != "global" {
			t.Errorf("%s stands in the schema, but values.yaml does not explain it", name)
		}
	}
	for name := range values {
		if _, found := schema.Properties[name]; !found {
			t.Errorf("%s stands in values.yaml, but the schema refuses it", name)
		}
	}
}
