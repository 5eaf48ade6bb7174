package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Stamp returns a copy of a wanted object with a hash of all that it asks for as an annotation. By it UpToDate sees that
// something is not asked for any more, which the live object alone does not tell.
func Stamp(wanted client.Object) client.Object {
	stamped := copyOf(wanted)
	annotations := maps.Clone(stamped.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[rayv1.AnnotationApplied] = hashOf(wanted)
	stamped.SetAnnotations(annotations)
	return stamped
}

func hashOf(object client.Object) string {
	text, err := json.Marshal(object)
	if err != nil {
		// Objects of the API consist of strings, numbers, lists and maps; none of their values cannot be written.
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// UpToDate tells whether a live object is what an apply of the stamped one would make of it: it was last applied with the
// same content, and nothing of that was changed since. What the API server fills in and what others add makes no
// difference.
func UpToDate(live, stamped client.Object) bool {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stamped)
	if err != nil {
		return false
	}
	for key, value := range want {
		typeMeta := key == "kind" || key == "apiVersion" // objects from a cache have none
		if !typeMeta && !holds(have[key], value) {
			return false
		}
	}
	return true
}

// holds tells whether a value has all that another one asks for. What is empty asks for nothing.
func holds(have, want any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		have, _ := have.(map[string]any)
		for key, value := range want {
			if !holds(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		return len(want) == 0 || holdsList(have, want)
	default:
		return reflect.ValueOf(want).IsZero() || reflect.DeepEqual(have, want)
	}
}

// holdsList compares elements that have a name by it, because server-side apply neither keeps their order nor removes
// what others have added, and all others by their place.
func holdsList(have any, want []any) bool {
	elements, _ := have.([]any)
	for i, element := range want {
		var other any
		switch name := nameOf(element); {
		case name != "":
			other = named(elements, name)
		case len(elements) == len(want):
			other = elements[i]
		}
		if other == nil || !holds(other, element) {
			return false
		}
	}
	return true
}

func named(elements []any, name string) any {
	for _, element := range elements {
		if nameOf(element) == name {
			return element
		}
	}
	return nil
}

func nameOf(element any) string {
	fields, _ := element.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}
