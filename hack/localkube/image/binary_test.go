package image

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// buildProgram returns a program that was built from source without cgo.
func buildProgram(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", "program", "main.go")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, output)
	}
	return filepath.Join(dir, "program")
}

func TestBinaryImageHoldsTheProgramForANonRootUser(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	err := PackBinary(context.Background(), Binary{
		Names:      []string{"docker.io/heliostat/operator:dev"},
		File:       buildProgram(t, "package main\n\nfunc main() {}\n"),
		Entrypoint: []string{"/manager", "--verbose"},
		Writable:   []string{"/data"},
	}, out)
	if err != nil {
		t.Fatalf("PackBinary: %v", err)
	}
	entries := readArchive(t, out)
	names := decode[index](t, entries["index.json"])
	packed := decode[manifest](t, entries[blobPath(names.Manifests[0].Digest)])

	config := decode[imageConfig](t, entries[blobPath(packed.Config.Digest)])
	wantConfig := containerConfig{
		User: NonRoot, Env: []string{DefaultPath}, Entrypoint: []string{"/manager", "--verbose"}, WorkingDir: "/",
	}
	if diff := cmp.Diff(wantConfig, config.Config); diff != "" {
		t.Errorf("container configuration (-want +got):\n%s", diff)
	}

	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(layer, entries[blobPath(packed.Layers[0].Digest)], 0o644); err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range readArchive(t, layer) {
		got = append(got, name)
	}
	want := []string{"data/", "etc/", "etc/group", "etc/passwd", "manager", "tmp/"}
	if diff := cmp.Diff(want, got, sorted()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestBinaryImageRefusesWhatCouldNotRunInIt(t *testing.T) {
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	dynamic, err := exec.LookPath("ls")
	if err != nil {
		t.Fatalf("finding a program that is linked dynamically: %v", err)
	}
	cases := map[string]struct {
		file       string
		entrypoint []string
		want       string
	}{
		"given a script":                        {text, []string{"/manager"}, "reading it as a program"},
		"given a program that needs libraries":  {dynamic, []string{"/manager"}, "linked dynamically"},
		"given no path for the program":         {dynamic, nil, "absolute path"},
		"given a relative path for the program": {dynamic, []string{"manager"}, "absolute path"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			err := PackBinary(context.Background(), Binary{
				Names: []string{"docker.io/heliostat/operator:dev"}, File: tc.file, Entrypoint: tc.entrypoint,
			}, filepath.Join(t.TempDir(), "image.tar"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that says %q", err, tc.want)
			}
		})
	}
}

// sorted compares lists of strings without regard to their order.
func sorted() cmp.Option {
	return cmp.Transformer("sorted", func(list []string) map[string]int {
		counts := map[string]int{}
		for _, item := range list {
			counts[item]++
		}
		return counts
	})
}
