package gather

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSpecFields(t *testing.T) {
	version := func(name string, served bool) any {
		return map[string]any{"name": name, "served": served, "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{
			"spec": map[string]any{"properties": map[string]any{"b": map[string]any{}, "a": map[string]any{}}}}}}}
	}
	for name, tc := range map[string]struct {
		versions []any
		fields   []string
		served   bool
	}{
		"v1 is served":               {[]any{version("v1alpha1", true), version("v1", true)}, []string{"a", "b"}, true},
		"only an older one is":       {[]any{version("v1alpha1", true)}, nil, false},
		"v1 is there and not served": {[]any{version("v1", false), version("v1alpha1", true)}, nil, false},
	} {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"versions": tc.versions}}}
		fields, served := specFields(crd)
		if diff := cmp.Diff(tc.fields, fields); diff != "" || served != tc.served {
			t.Errorf("%s: served is %t (-want +got):\n%s", name, served, diff)
		}
	}
}
