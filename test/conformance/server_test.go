package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/test/apiserver"
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m))
}

// cluster is an API server that carries our CRDs, seen by a client that asks for strict validation of fields.
type cluster struct {
	client   dynamic.Interface
	mapper   meta.RESTMapper
	warnings *warnings
}

// What only a real API server can show. It is started, and the CRDs are installed, once for all of it; each part works
// in namespaces of its own.
func TestAPIServerWithOurCRDs(t *testing.T) {
	c := startCluster(t)
	t.Run("sample manifests are taken", c.takesSampleManifests)
	t.Run("the manifests of our guide are taken", c.takesOurExamples)
	t.Run("bad input is refused when it is applied", c.refusesBadInput)
	t.Run("unusual input that works is taken", c.takesUnusualInput)
	t.Run("fields that cannot be changed are kept", c.refusesChangesOfFixedFields)
	t.Run("the old version is served with a warning", c.servesTheOldVersionWithAWarning)
	t.Run("objects older than the rules can be changed and deleted", c.letsOlderObjectsBeChangedAndDeleted)
}

// startCluster starts an API server and installs our CRDs.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	config := rest.CopyConfig(apiserver.Start(t))
	if err := apiserver.InstallCRDs(t.Context(), config, filepath.Join(repositoryRoot, "charts/heliostat/crds")); err != nil {
		t.Fatalf("installing the CRDs: %v", err)
	}
	said := &warnings{}
	config.WarningHandler = said
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("making a discovery client: %v", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	return &cluster{client: client, mapper: mapper, warnings: said}
}

// resource returns where objects of this kind are created. Its error is a meta.NoKindMatchError for a kind that the API
// server does not serve.
func (c *cluster) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("finding the resource of %s: %w", gvk, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return c.client.Resource(mapping.Resource), nil
	}
	return c.client.Resource(mapping.Resource).Namespace(namespace), nil
}

// create creates the object with strict validation of fields.
func (c *cluster) create(ctx context.Context, object *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	resource, err := c.resource(object.GroupVersionKind(), namespace)
	if err != nil {
		return nil, err
	}
	return resource.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// delete deletes the object.
func (c *cluster) delete(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	resource, err := c.resource(object.GroupVersionKind(), object.GetNamespace())
	if err == nil {
		err = resource.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{})
	}
	if err != nil {
		t.Errorf("deleting %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

// newNamespace creates a namespace for one test.
func (c *cluster) newNamespace(t *testing.T) string {
	t.Helper()
	created, err := c.create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "conformance-"},
	}}, "")
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return created.GetName()
}

// warnings collects what the API server warns of.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeader is called by the client for each warning.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since it was last called.
func (w *warnings) take() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// documents returns the objects of a YAML file.
func documents(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(newBufferedReader(data))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting into documents: %w", err)
		}
		asJSON, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("reading document %d: %w", len(objects)+1, err)
		}
		if bytes.Equal(asJSON, []byte("null")) {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(asJSON); err != nil {
			return nil, fmt.Errorf("reading document %d: %w", len(objects)+1, err)
		}
		objects = append(objects, object)
	}
}
