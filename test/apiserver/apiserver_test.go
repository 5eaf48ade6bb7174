package apiserver_test

import (
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/heliostat-io/heliostat/test/apiserver"
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m))
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.test.example
spec:
  group: test.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-a-definition}
`

func TestInstalledKindsAreServedAtOnce(t *testing.T) {
	config := apiserver.Start(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "widgets.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	// The second time it is there already.
	for range 2 {
		if err := apiserver.InstallCRDs(t.Context(), config, dir); err != nil {
			t.Fatal(err)
		}
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	widgets := client.Resource(schema.GroupVersionResource{Group: "test.example", Version: "v1", Resource: "widgets"}).Namespace("default")
	tests := map[string]struct {
		size    int64
		wantErr bool
	}{
		"a-good-widget": {size: 1},
		"a-bad-widget":  {size: 0, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			widget := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "test.example/v1", "kind": "Widget",
				"metadata": map[string]any{"name": name}, "spec": map[string]any{"size": test.size},
			}}
			if _, err := widgets.Create(t.Context(), widget, metav1.CreateOptions{}); (err != nil) != test.wantErr {
				t.Errorf("got error %v, want one: %t", err, test.wantErr)
			}
		})
	}
}

func TestAFolderWithoutDefinitionsIsAnError(t *testing.T) {
	if err := apiserver.InstallCRDs(t.Context(), apiserver.Start(t), t.TempDir()); err == nil {
		t.Error("got no error for an empty folder")
	}
}

func TestAServerOfItsOwnSharesNothing(t *testing.T) {
	first, err := kubernetes.NewForConfig(apiserver.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := kubernetes.NewForConfig(apiserver.New(t, "--v=1"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, client := range []kubernetes.Interface{first, second} {
		namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids[string(namespace.UID)] = true
	}
	if len(ids) != 2 {
		t.Error("both servers show the same kube-system namespace")
	}
}
