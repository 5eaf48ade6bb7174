package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const ourModule = "github.com/heliostat-io/heliostat/"

func writeCRDs(crds []crd, types typeIndex, dir string) error {
	for _, c := range crds {
		for i := range c.Spec.Versions {
			version := &c.Spec.Versions[i]
			t, err := types.typeOf(c, version.Name)
			if err != nil {
				return err
			}
			trim(version.Schema.OpenAPIV3Schema, t)
		}
		data, err := yaml.Marshal(c)
		if err != nil {
			return fmt.Errorf("encoding CRD %s: %w", c.Metadata.Name, err)
		}
		header := "# Generated from api/ by `make generate`. Do not edit.\n"
		if err := os.WriteFile(filepath.Join(dir, c.file), append([]byte(header), data...), 0o644); err != nil {
			return fmt.Errorf("writing CRD %s: %w", c.Metadata.Name, err)
		}
	}
	return nil
}

// trim removes the descriptions of everything below a field whose type is not ours. The description of the field itself
// stays: it is ours.
func trim(s *apiextensionsv1.JSONSchemaProps, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		trim(s, t.Elem())
	case reflect.Slice:
		if s.Items != nil && s.Items.Schema != nil {
			trimElement(s.Items.Schema, t.Elem())
		}
	case reflect.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			trimElement(s.AdditionalProperties.Schema, t.Elem())
		}
	case reflect.Struct:
		if !isOurs(t) {
			trimAllBelow(s)
			return
		}
		trimFields(s, t)
	}
}

// trimElement treats an element of a list or map: its description is that of its type, which is ours or not.
func trimElement(s *apiextensionsv1.JSONSchemaProps, t reflect.Type) {
	if !isOurs(t) {
		s.Description = ""
	}
	trim(s, t)
}

func trimFields(s *apiextensionsv1.JSONSchemaProps, t reflect.Type) {
	for _, field := range reflect.VisibleFields(t) {
		name := jsonName(field)
		if name == "" {
			continue
		}
		property, found := s.Properties[name]
		if !found {
			continue
		}
		if !isDescribedByUs(t, field) {
			property.Description = ""
		}
		trim(&property, field.Type)
		s.Properties[name] = property
	}
}

// isDescribedByUs tells our own fields from those that come with an inlined or embedded Kubernetes type.
func isDescribedByUs(t reflect.Type, field reflect.StructField) bool {
	if field.Anonymous {
		return false
	}
	owner := t
	for _, i := range field.Index[:len(field.Index)-1] {
		owner = owner.Field(i).Type
	}
	return isOurs(owner)
}

func trimAllBelow(s *apiextensionsv1.JSONSchemaProps) {
	for name, property := range s.Properties {
		property.Description = ""
		trimAllBelow(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		s.Items.Schema.Description = ""
		trimAllBelow(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		s.AdditionalProperties.Schema.Description = ""
		trimAllBelow(s.AdditionalProperties.Schema)
	}
}

func isOurs(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasPrefix(t.PkgPath(), ourModule)
}

// jsonName returns the name of a field on the wire, or nothing if the field is not on the wire under a name of its own.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "-" || !field.IsExported() {
		return ""
	}
	return name
}
