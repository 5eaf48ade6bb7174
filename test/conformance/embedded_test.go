package conformance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Given the embedded Pod templates and Services of all kinds and versions, when their schemas are looked at, then
// their metadata keeps exactly what clients can rely on, and containers are merged by name.
func TestEmbeddedObjectsKeepTheirMetadata(t *testing.T) {
	embedded := []string{"template", "submitterPodTemplate", "headService", "serveService"}
	want := []string{"annotations", "finalizers", "labels", "name", "namespace"}
	found := 0
	visit := func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		name := path[strings.LastIndexByte(path, '.')+1:]
		if !slices.Contains(embedded, name) {
			return
		}
		found++
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(schema.Properties["metadata"].Properties))); diff != "" {
			t.Errorf("%s.metadata has other fields (-want +got):\n%s", path, diff)
		}
		if strings.HasSuffix(name, "Service") {
			return
		}
		spec := schema.Properties["spec"]
		containers := spec.Properties["containers"]
		if !slices.Contains(spec.Required, "containers") {
			t.Errorf("%s.spec.containers is not required", path)
		}
		if containers.XListType == nil || *containers.XListType != "map" || !slices.Equal(containers.XListMapKeys, []string{"name"}) {
			t.Errorf("%s.spec.containers are not merged by name", path)
		}
	}
	for kind, crd := range readCRDs(t) {
		for _, version := range crd.Spec.Versions {
			walk(kind+" "+version.Name, version.Schema.OpenAPIV3Schema, visit)
		}
	}
	// Two templates and the head Service wherever a cluster is described (4 kinds in v1, 3 in v1alpha1), and the
	// submitter's template or the serve Service in the kinds that have one.
	if want := 3*7 + 5; found != want {
		t.Errorf("found %d embedded objects, want %d", found, want)
	}
}

// Given our CRDs, when their texts are looked at, then every field of our own says what it is for.
func TestEveryFieldOfOursIsDescribed(t *testing.T) {
	for kind, crd := range readCRDs(t) {
		for _, version := range crd.Spec.Versions {
			for _, part := range []string{"spec", "status"} {
				schema := version.Schema.OpenAPIV3Schema.Properties[part]
				if schema.Description == "" {
					t.Errorf("%s %s %s has no description", kind, version.Name, part)
				}
				for name, field := range schema.Properties {
					if field.Description == "" {
						t.Errorf("%s %s %s.%s has no description", kind, version.Name, part, name)
					}
				}
			}
		}
	}
}

// walk calls visit for the schema and for every schema below it that is not an embedded object's own.
func walk(path string, schema *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	if strings.HasSuffix(path, "emplate") && !strings.HasSuffix(path, "jobTemplate") || strings.HasSuffix(path, "Service") {
		return
	}
	for name, property := range schema.Properties {
		walk(path+"."+name, &property, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", schema.Items.Schema, visit)
	}
}
