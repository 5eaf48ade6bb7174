package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// redacted stands in place of what must not leave the cluster.
const redacted = "REDACTED"

// secretive fits the names of fields, parameters and annotations whose values nobody else must see. A name too many costs a
// question, one too few a password.
var secretive = regexp.MustCompile(`(?i)pass|pwd|token|secret|credential|key|private|auth|dsn|cookie|webhook|connection_?string|user_?name`)

// harmless fits the names of variables whose values may be seen: those of Ray and of libraries under it. Users give processes all
// kinds of secrets under all kinds of names, so every other value is left out.
var harmless = regexp.MustCompile(`^(RAY_|PYTHON|NCCL_|CUDA_|OMP_|FQ_RAY_IP$|MEMORY$)`)

// redactor takes secrets out of objects.
type redactor struct {
	// silent takes out what programs of the user wrote as well.
	silent bool
}

// object returns an object as a document without secrets, without what kubectl noted of earlier applies, and without managed
// fields, which only make it long.
func (r redactor) object(object client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert it: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetManagedFields(nil)
	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	for key, value := range annotations {
		if secretive.MatchString(key) {
			value = redacted
		}
		annotations[key] = r.line(value)
	}
	u.SetAnnotations(annotations)
	for part, value := range content {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, part) {
			content[part] = r.walk(part, value)
		}
	}
	return content, nil
}

// walk returns a value without secrets. key is the name under which it stands.
func (r redactor) walk(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		variable(v)
		for k, inner := range v {
			v[k] = r.walk(k, inner)
		}
		return v
	case []any:
		for i := range v {
			v[i] = r.walk(key, v[i])
		}
		return v
	case string:
		return r.text(key, v)
	default:
		return v
	}
}

// variable takes the value out of an environment variable.
func variable(v map[string]any) {
	name, named := v["name"].(string)
	if _, literal := v["value"].(string); named && literal && (!harmless.MatchString(name) || secretive.MatchString(name)) {
		v["value"] = redacted
	}
}

func (r redactor) text(key, value string) string {
	switch key {
	case "runtimeEnvYAML", "serveConfigV2":
		// Documents of Ray's, which may give variables to processes.
		return r.document(value)
	case "name", "key", "secretName", "serviceAccountName", "serviceAccount", "topologyKey":
		// Names of objects, however secret those are.
		return value
	case "message", "log":
		if r.silent && value != "" {
			return redacted
		}
	default:
		if secretive.MatchString(key) && value != "" {
			return redacted
		}
	}
	return r.line(value)
}

// assignments fit what gives a value to something whose name is secretive: --password=x, --token x, API_KEY=x.
var assignments = regexp.MustCompile(`(?i)([\w.-]*(?:pass|pwd|token|secret|credential|key|private|auth|dsn|cookie)[\w.-]*["']?\s*[=: ]\s*)(?:"[^"]*"|'[^']*'|\S+)`)

// addresses fit the user and the password in a URL.
var addresses = regexp.MustCompile(`(://[^/\s:@]*:)[^@/\s]+@`)

// line takes secrets out of a line of text, such as a command. What may carry a whole environment is left out as a whole.
func (r redactor) line(text string) string {
	if strings.Contains(text, "env_vars") || strings.Contains(text, "--runtime-env") {
		return redacted
	}
	return addresses.ReplaceAllString(assignments.ReplaceAllString(text, "${1}"+redacted), "${1}"+redacted+"@")
}

// document redacts a document of Ray's. One that cannot be read is left out, since it cannot be known what stands in it.
func (r redactor) document(value string) string {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(value), &content); err != nil {
		return redacted
	}
	variables(content)
	clean, err := yaml.Marshal(r.walk("", content))
	if err != nil {
		return redacted
	}
	return string(clean)
}

// variables empties every env_vars, whatever the names in it.
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
