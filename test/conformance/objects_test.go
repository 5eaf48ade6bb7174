package conformance

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// The smallest objects of each kind. Tests change one thing in a copy.
const (
	minimalRayCluster = `
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: demo
spec:
  headGroupSpec:
    template:
      spec:
        containers:
        - {name: ray-head, image: ray}
  workerGroupSpecs:
  - groupName: small
    template:
      spec:
        containers:
        - {name: ray-worker, image: ray}
`
	minimalRayJob = `
apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: demo
spec:
  entrypoint: python -c 'print(1)'
  rayClusterSpec:
    headGroupSpec:
      template:
        spec:
          containers:
          - {name: ray-head, image: ray}
`
	minimalRayService = `
apiVersion: ray.io/v1
kind: RayService
metadata:
  name: demo
spec:
  rayClusterConfig:
    headGroupSpec:
      template:
        spec:
          containers:
          - {name: ray-head, image: ray}
`
	minimalRayCronJob = `
apiVersion: ray.io/v1
kind: RayCronJob
metadata:
  name: demo
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    entrypoint: python -c 'print(1)'
    rayClusterSpec:
      headGroupSpec:
        template:
          spec:
            containers:
            - {name: ray-head, image: ray}
`
)

func minimal(kind string) string {
	return map[string]string{
		rayv1.KindRayCluster: minimalRayCluster,
		rayv1.KindRayJob:     minimalRayJob,
		rayv1.KindRayService: minimalRayService,
		rayv1.KindRayCronJob: minimalRayCronJob,
	}[kind]
}

// build returns the smallest object of a kind with one value set, or removed if the value is "-". The path has dots
// between names; a number is the index of a list. The value is YAML. An empty path changes nothing.
func build(t *testing.T, kind, path, value string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(minimal(kind)), &object.Object); err != nil {
		t.Fatalf("reading the smallest %s: %v", kind, err)
	}
	if path != "" {
		change(t, object.Object, strings.Split(path, "."), value)
	}
	return object
}

func change(t *testing.T, in any, path []string, value string) {
	t.Helper()
	if list, isList := in.([]any); isList {
		index := int(path[0][0] - '0')
		if len(path) == 1 {
			list[index] = parse(t, value)
			return
		}
		change(t, list[index], path[1:], value)
		return
	}
	object, isMap := in.(map[string]any)
	if !isMap {
		t.Fatalf("nothing to change at %v", path)
	}
	if len(path) == 1 && value == "-" {
		delete(object, path[0])
		return
	}
	if len(path) == 1 {
		object[path[0]] = parse(t, value)
		return
	}
	if object[path[0]] == nil {
		object[path[0]] = map[string]any{}
	}
	change(t, object[path[0]], path[1:], value)
}

func parse(t *testing.T, value string) any {
	t.Helper()
	var parsed any
	if err := yaml.Unmarshal([]byte(value), &parsed); err != nil {
		t.Fatalf("reading the value %q: %v", value, err)
	}
	return parsed
}
