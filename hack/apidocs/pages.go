package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// writePages writes one page for each kind, with every field of our own. It describes the version that is stored; older
// ones are frozen and deprecated.
func writePages(crds []crd, types typeIndex, dir string) error {
	for _, c := range crds {
		i := slices.IndexFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
		if i < 0 {
			return fmt.Errorf("CRD %s stores no version", c.Metadata.Name)
		}
		t, err := types.typeOf(c, c.Spec.Versions[i].Name)
		if err != nil {
			return err
		}
		p := &page{kind: c.Spec.Names.Kind, group: c.Spec.Group}
		p.write(c.Spec.Versions[i], t)
		name := filepath.Join(dir, "api-"+strings.ToLower(p.kind)+".md")
		if err := os.WriteFile(name, p.text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the page of %s: %w", p.kind, err)
		}
	}
	return nil
}

// page is the page of one kind in the making.
type page struct {
	kind, group string
	text        bytes.Buffer
}

func (p *page) write(version apiextensionsv1.CustomResourceDefinitionVersion, t reflect.Type) {
	schema := version.Schema.OpenAPIV3Schema
	fmt.Fprintf(&p.text, "<!-- Generated from api/ by `make generate`. Do not edit. -->\n# %s (%s/%s)\n\n%s\n", p.kind, p.group, version.Name, schema.Description)
	p.writeRules("Rules when an object is created", schema.XValidations)
	for _, part := range []string{"spec", "status"} {
		field, found := t.FieldByName(strings.ToUpper(part[:1]) + part[1:])
		if !found {
			continue
		}
		partSchema := schema.Properties[part]
		fmt.Fprintf(&p.text, "\n## %s\n", part)
		p.writeRules("Rules", partSchema.XValidations)
		fmt.Fprint(&p.text, "\n| field | type | default | rules | meaning |\n|---|---|---|---|---|\n")
		p.writeFields(&partSchema, field.Type, "")
	}
}

func (p *page) writeRules(title string, rules apiextensionsv1.ValidationRules) {
	if len(rules) == 0 {
		return
	}
	fmt.Fprintf(&p.text, "\n%s:\n\n", title)
	for _, rule := range rules {
		fmt.Fprintf(&p.text, "* %s\n", rule.Message)
	}
}

// writeFields writes one row for each field, and for the fields below it that are ours.
func (p *page) writeFields(schema *apiextensionsv1.JSONSchemaProps, t reflect.Type, prefix string) {
	for _, field := range reflect.VisibleFields(t) {
		name := jsonName(field)
		property, found := schema.Properties[name]
		if name == "" || !found {
			continue
		}
		path := prefix + name
		p.writeRow(path, &property, field.Type, slices.Contains(schema.Required, name))
		elements, t, suffix := element(&property, field.Type)
		// A spec or status that has a page of its own is described there alone.
		if t.Kind() == reflect.Struct && isOurs(t) && p.pageOf(t) == "" {
			p.writeFields(elements, t, path+suffix+".")
		}
	}
}

func (p *page) writeRow(path string, schema *apiextensionsv1.JSONSchemaProps, t reflect.Type, required bool) {
	defaultValue := ""
	if schema.Default != nil {
		defaultValue = "`" + string(schema.Default.Raw) + "`"
	}
	fmt.Fprintf(&p.text, "| `%s` | %s | %s | %s | %s |\n", path, p.typeText(t), defaultValue,
		cell(strings.Join(rulesOf(schema, required), "; ")), cell(schema.Description))
}

// element follows lists, maps and pointers down to what they hold; suffix is how a path says so.
func element(schema *apiextensionsv1.JSONSchemaProps, t reflect.Type) (*apiextensionsv1.JSONSchemaProps, reflect.Type, string) {
	suffix := ""
	for {
		switch {
		case t.Kind() == reflect.Pointer:
			t = t.Elem()
		case t.Kind() == reflect.Slice && schema.Items != nil:
			schema, t, suffix = schema.Items.Schema, t.Elem(), suffix+"[]"
		case t.Kind() == reflect.Map && schema.AdditionalProperties != nil:
			schema, t, suffix = schema.AdditionalProperties.Schema, t.Elem(), suffix+"{}"
		default:
			return schema, t, suffix
		}
	}
}

// pageOf returns the page that describes the type, if it is not this one.
func (p *page) pageOf(t reflect.Type) string {
	kind := map[string]string{"RayClusterSpec": "RayCluster", "RayClusterStatus": "RayCluster", "RayJobSpec": "RayJob"}[t.Name()]
	if kind == "" || kind == p.kind {
		return ""
	}
	return fmt.Sprintf("[%s](api-%s.md)", t.Name(), strings.ToLower(kind))
}

func (p *page) typeText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return p.typeText(t.Elem())
	case reflect.Slice:
		return "list of " + p.typeText(t.Elem())
	case reflect.Map:
		return "map of " + p.typeText(t.Elem())
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float32:
		return t.Kind().String()
	case reflect.String:
		return "string"
	}
	if other := p.pageOf(t); other != "" {
		return other
	}
	if isOurs(t) {
		return "object"
	}
	// k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1 both end in what Kubernetes calls the type by.
	parts := strings.Split(t.PkgPath(), "/")
	return strings.Join(parts[max(len(parts)-2, 0):], "/") + "." + t.Name()
}

func rulesOf(schema *apiextensionsv1.JSONSchemaProps, required bool) []string {
	var rules []string
	if required && schema.Default == nil {
		rules = append(rules, "required")
	}
	if len(schema.Enum) > 0 {
		var values []string
		for _, value := range schema.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		rules = append(rules, "one of "+strings.Join(values, ", "))
	}
	if schema.Minimum != nil {
		rules = append(rules, fmt.Sprintf("at least %v", *schema.Minimum))
	}
	if schema.MinLength != nil {
		rules = append(rules, fmt.Sprintf("%d or more characters", *schema.MinLength))
	}
	if schema.MaxLength != nil {
		rules = append(rules, fmt.Sprintf("up to %d characters", *schema.MaxLength))
	}
	if schema.Pattern != "" && !schema.XIntOrString {
		rules = append(rules, "matches `"+schema.Pattern+"`")
	}
	if schema.MinItems != nil {
		rules = append(rules, fmt.Sprintf("%d or more items", *schema.MinItems))
	}
	if schema.MaxItems != nil {
		rules = append(rules, fmt.Sprintf("up to %d items", *schema.MaxItems))
	}
	for _, rule := range schema.XValidations {
		rules = append(rules, rule.Message)
	}
	// Rules about the elements of a list stand with the list: the elements have no row of their own.
	if schema.Items != nil && schema.Items.Schema != nil {
		for _, rule := range schema.Items.Schema.XValidations {
			rules = append(rules, "each: "+rule.Message)
		}
	}
	return rules
}

// cell makes a text fit into a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
