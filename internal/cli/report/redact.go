package report

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
)

// redacted stands in place of what must not leave the cluster.
const redacted = "REDACTED"

// secretive fits the names of variables, fields and parameters whose values nobody else must see. A name too many costs a
// question, one too few a password.
var secretive = regexp.MustCompile(`(?i)pass|token|secret|credential|api_?key|access_?key|private|auth|dsn|connection_?string|user_?name`)

// texts are the fields that hold a document of Ray's, which may give variables to processes.
var texts = []string{"runtimeEnvYAML", "serveConfigV2"}

// redact returns the object as a document without secrets: without the literal values of variables that may be one, without
// what kubectl noted of earlier applies, and without managed fields, which only make it long.
func redact(object client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetManagedFields(nil)
	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	for key := range annotations {
		if secretive.MatchString(key) {
			annotations[key] = redacted
		}
	}
	u.SetAnnotations(annotations)
	for _, part := range []string{"spec", "data", "status"} {
		if value, there := content[part]; there {
			content[part] = walk(part, value)
		}
	}
	return content, nil
}

// walk returns a value without secrets. key is the name under which it stands.
func walk(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if name, isVariable := v["name"].(string); isVariable && secretive.MatchString(name) {
			if _, literal := v["value"].(string); literal {
				v["value"] = redacted
			}
		}
		for k, inner := range v {
			v[k] = walk(k, inner)
		}
		return v
	case []any:
		for i := range v {
			v[i] = walk(key, v[i])
		}
		return v
	case string:
		return text(key, v)
	default:
		return v
	}
}

// references are fields whose values are names of other objects, however secret those are.
var references = []string{"secretName", "serviceAccountName", "name", "key"}

func text(key, value string) string {
	switch {
	case slices.Contains(texts, key):
		return document(value)
	case slices.Contains(references, key):
		return value
	case secretive.MatchString(key) && value != "":
		return redacted
	default:
		return value
	}
}

// document redacts a document of Ray's. One that cannot be read is left out, since it cannot be known what stands in it.
func document(value string) string {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(value), &content); err != nil {
		return redacted
	}
	variables(content)
	clean, err := yaml.Marshal(walk("", content))
	if err != nil {
		return redacted
	}
	return string(clean)
}

// variables empties every env_vars, whatever the names in it: users give processes all kinds of keys there.
func variables(value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, inner := range v {
			if vars, ok := inner.(map[string]any); ok && k == "env_vars" {
				for name := range vars {
					vars[name] = redacted
				}
				continue
			}
			variables(inner)
		}
	case []any:
		for _, inner := range v {
			variables(inner)
		}
	}
}
