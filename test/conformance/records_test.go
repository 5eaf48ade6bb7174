package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// attributes are what a schema says about one path, each value in JSON.
type attributes map[string]string

// record is one path of a schema. inside is the embedded Kubernetes type that the path belongs to, if any.
type record struct {
	attributes attributes
	inside     string
}

// versionFacts is all that is compared about one version of a kind.
type versionFacts struct {
	Served                   bool            `json:"served"`
	Storage                  bool            `json:"storage"`
	Deprecated               bool            `json:"deprecated"`
	HasDeprecationWarning    bool            `json:"hasDeprecationWarning"`
	Subresources             json.RawMessage `json:"subresources"`
	AdditionalPrinterColumns json.RawMessage `json:"additionalPrinterColumns"`

	Fields []map[string]json.RawMessage `json:"fields"`
}

// kindFacts is all that is compared about one kind.
type kindFacts struct {
	CRDName    string                                        `json:"crdName"`
	Scope      string                                        `json:"scope"`
	Names      apiextensionsv1.CustomResourceDefinitionNames `json:"names"`
	ShortNames []string                                      `json:"shortNames"`
	Versions   map[string]versionFacts                       `json:"versions"`
}

func readReference(t *testing.T) map[string]kindFacts {
	t.Helper()
	data, err := os.ReadFile(sharedFile(t, "spec/api-fields.json"))
	if err != nil {
		t.Fatalf("reading the reference: %v", err)
	}
	var reference struct {
		Kinds map[string]kindFacts `json:"kinds"`
	}
	if err := json.Unmarshal(data, &reference); err != nil {
		t.Fatalf("parsing the reference: %v", err)
	}
	return reference.Kinds
}

func readCRDs(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repositoryRoot, "charts/heliostat/crds/ray.io_*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs in charts/heliostat/crds (error: %v)", err)
	}
	crds := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("reading a CRD: %v", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			t.Fatalf("parsing %s: %v", path, err)
		}
		crds[crd.Spec.Names.Kind] = crd
	}
	return crds
}

// referenceRecords turns the reference's list of fields into records by path, and collects the paths of embedded types
// that the reference does not list in detail.
func referenceRecords(fields []map[string]json.RawMessage) (records map[string]record, unexpanded map[string]bool) {
	records = map[string]record{"": {attributes: attributes{"type": `"object"`, "required": "false"}}}
	unexpanded = map[string]bool{}
	for _, field := range fields {
		r := record{attributes: attributes{}}
		path := ""
		for key, value := range field {
			switch key {
			case "path":
				path = mustString(value)
			case "inside", "embeddedType":
				r.inside = mustString(value)
			case "expanded":
			case "xValidations":
				r.attributes[key] = strings.Join(rulesOf(value), "\n")
			default:
				r.attributes[key] = canonical(value)
			}
		}
		if string(field["expanded"]) == "false" {
			unexpanded[path] = true
		}
		records[path] = r
	}
	return records, unexpanded
}

// schemaRecords turns a schema into records by path. It does not go below the paths in unexpanded.
func schemaRecords(schema *apiextensionsv1.JSONSchemaProps, unexpanded map[string]bool) (map[string]record, error) {
	records := map[string]record{}
	return records, collect(records, "", schema, false, unexpanded)
}

func collect(to map[string]record, path string, schema *apiextensionsv1.JSONSchemaProps, required bool, unexpanded map[string]bool) error {
	attrs, err := attributesOf(schema)
	if err != nil {
		return fmt.Errorf("reading the schema at %s: %w", path, err)
	}
	attrs["required"] = fmt.Sprint(required)
	to[path] = record{attributes: attrs}
	if unexpanded[path] {
		return nil
	}
	for name, property := range schema.Properties {
		if err := collect(to, path+"."+name, &property, slices.Contains(schema.Required, name), unexpanded); err != nil {
			return err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		if err := collect(to, path+"[]", schema.Items.Schema, true, unexpanded); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		return collect(to, path+"{}", schema.AdditionalProperties.Schema, false, unexpanded)
	}
	return nil
}

// attributesOf returns everything that a schema says about its own path, in the words of the reference.
func attributesOf(schema *apiextensionsv1.JSONSchemaProps) (attributes, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	names := map[string]string{
		"x-kubernetes-int-or-string": "intOrString",
		"x-kubernetes-list-type":     "listType",
		"x-kubernetes-list-map-keys": "listMapKeys",
		"x-kubernetes-map-type":      "mapType",
		"x-kubernetes-validations":   "xValidations",
	}
	attrs := attributes{}
	for key, value := range raw {
		if name, found := names[key]; found {
			key = name
		}
		switch key {
		case "properties", "items", "additionalProperties", "required", "description":
		case "xValidations":
			attrs[key] = strings.Join(rulesOf(value), "\n")
		default:
			attrs[key] = canonical(value)
		}
	}
	return attrs, nil
}

// rulesOf returns the CEL expressions of a list of validations, without messages: those are for each project to word.
func rulesOf(validations json.RawMessage) []string {
	var list []struct {
		Rule string `json:"rule"`
	}
	if err := json.Unmarshal(validations, &list); err != nil {
		return []string{"unreadable: " + err.Error()}
	}
	var rules []string
	for _, validation := range list {
		rules = append(rules, validation.Rule)
	}
	return rules
}

// canonical makes two JSON texts of the same meaning equal.
func canonical(value json.RawMessage) string {
	var any any
	if err := json.Unmarshal(value, &any); err != nil {
		return "unreadable: " + err.Error()
	}
	data, err := json.Marshal(any)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	return string(data)
}

func mustString(value json.RawMessage) string {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "unreadable: " + err.Error()
	}
	return text
}
