// Command apidocs turns the output of controller-gen into what the project ships: CRDs that keep our own descriptions
// and drop those of embedded Kubernetes types (which would make them ten times as large), and reference pages.
//
//	apidocs crds FROM-DIR TO-DIR
//	apidocs pages CRD-DIR TO-DIR
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	rayv1alpha1 "github.com/heliostat-io/heliostat/api/v1alpha1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "apidocs:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: apidocs crds FROM-DIR TO-DIR | apidocs pages CRD-DIR TO-DIR")
	}
	crds, err := readCRDs(args[1])
	if err != nil {
		return err
	}
	types, err := newTypeIndex()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(args[2], 0o755); err != nil {
		return fmt.Errorf("making the output folder: %w", err)
	}
	switch args[0] {
	case "crds":
		return writeCRDs(crds, types, args[2])
	case "pages":
		return writePages(crds, types, args[2])
	default:
		return fmt.Errorf("unknown command %q", args[0])
	}
}

// crd is a CustomResourceDefinition without its status, which does not belong in a file.
type crd struct {
	APIVersion string                                       `json:"apiVersion"`
	Kind       string                                       `json:"kind"`
	Metadata   crdMetadata                                  `json:"metadata"`
	Spec       apiextensionsv1.CustomResourceDefinitionSpec `json:"spec"`

	file string
}

type crdMetadata struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Name        string            `json:"name"`
}

func readCRDs(dir string) ([]crd, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing CRDs in %s: %w", dir, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no CRDs in %s", dir)
	}
	var crds []crd
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a CRD: %w", err)
		}
		c := crd{file: filepath.Base(path)}
		if err := yaml.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", path, err)
		}
		crds = append(crds, c)
	}
	return crds, nil
}

// typeIndex finds the Go type of a kind, so that a schema can be read side by side with the type that it was made from.
type typeIndex struct{ scheme *runtime.Scheme }

func newTypeIndex() (typeIndex, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(rayv1.AddToScheme(scheme), rayv1alpha1.AddToScheme(scheme), heliostatv1alpha1.AddToScheme(scheme)); err != nil {
		return typeIndex{}, fmt.Errorf("registering the API types: %w", err)
	}
	return typeIndex{scheme: scheme}, nil
}

func (x typeIndex) typeOf(c crd, version string) (reflect.Type, error) {
	gvk := schema.GroupVersionKind{Group: c.Spec.Group, Version: version, Kind: c.Spec.Names.Kind}
	object, err := x.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("finding the Go type of %s: %w", gvk, err)
	}
	return reflect.TypeOf(object).Elem(), nil
}
