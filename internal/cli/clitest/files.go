package clitest

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

//go:embed testdata
var worlds embed.FS

// update tells the tests to write what they got instead of comparing it.
var update = flag.Bool("update", false, "write the golden files anew")

// Update is the flag for tests that compare files in their own way.
func Update() *bool { return update }

// crds is where the API that the chart installs stands, seen from a command's package.
const crds = "../../../charts/heliostat/crds"

// installed are the CustomResourceDefinitions of the chart.
func installed(t testing.TB) []client.Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files in %s: %v", crds, err)
	}
	var objects []client.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &crd.Object); err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		objects = append(objects, crd)
	}
	return objects
}

// Load returns the objects of one of the worlds in testdata, and the API that the chart installs.
func Load(t testing.TB, world string) []client.Object {
	t.Helper()
	text, err := worlds.ReadFile("testdata/" + world + ".yaml")
	if err != nil {
		t.Fatalf("read the world %s: %v", world, err)
	}
	decoder := serializer.NewCodecFactory(kube.Scheme()).UniversalDeserializer()
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []client.Object
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return append(objects, installed(t)...)
		}
		if err != nil {
			t.Fatalf("read the world %s: %v", world, err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("decode an object of the world %s: %v\n%s", world, err, document)
		}
		objects = append(objects, object.(client.Object))
	}
}

// Golden compares what a command wrote with testdata/NAME of the package under test.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}
