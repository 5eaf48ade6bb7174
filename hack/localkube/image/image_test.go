package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// makeRoot returns a directory with one entry of every kind that a layer holds
// and of the kinds that it leaves out.
func makeRoot(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	steps := []error{
		os.MkdirAll(filepath.Join(root, "bin"), 0o755),
		os.MkdirAll(filepath.Join(root, "tmp"), 0o755),
		os.Chmod(filepath.Join(root, "tmp"), 0o777|fs.ModeSticky),
		os.WriteFile(filepath.Join(root, "bin", "tool"), []byte("#!/bin/sh\n"), 0o755),
		os.Link(filepath.Join(root, "bin", "tool"), filepath.Join(root, "bin", "tool-alias")),
		os.Symlink("tool", filepath.Join(root, "bin", "tool-link")),
		syscall.Mkfifo(filepath.Join(root, "tmp", "pipe"), 0o600),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatalf("making the root directory: %v", err)
	}
	return root
}

func pack(t *testing.T, spec Spec) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := Pack(context.Background(), spec, out); err != nil {
		t.Fatalf("Pack: %v", err)
	}
	return out
}

// readArchive returns the content of every entry of a tar file by name.
func readArchive(t *testing.T, file string) map[string][]byte {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	entries := map[string][]byte{}
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("reading %s in %s: %v", header.Name, file, err)
		}
		entries[header.Name] = content
	}
}

func decode[T any](t *testing.T, encoded []byte) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(encoded, &value); err != nil {
		t.Fatalf("decoding %s: %v", encoded, err)
	}
	return value
}

func TestPackedImageCanBeFollowedFromItsNamesToItsFiles(t *testing.T) {
	names := []string{"docker.io/library/tool:1", "docker.io/library/tool:latest", "localhost/tool:1"}
	entries := readArchive(t, pack(t, Spec{
		Names: names, Root: makeRoot(t), RootOwned: true, User: "1000:100",
		Entrypoint: []string{"/bin/tool"}, Cmd: []string{"run"}, Env: []string{"HOME=/tmp"}, WorkingDir: "/tmp",
	}))
	for name, content := range entries {
		if digest, isBlob := strings.CutPrefix(name, "blobs/sha256/"); isBlob {
			sum := sha256.Sum256(content)
			if got := hex.EncodeToString(sum[:]); got != digest {
				t.Errorf("blob %s has content of digest %s", digest, got)
			}
		}
	}

	var gotNames []string
	var gotManifest manifest
	for _, entry := range decode[index](t, entries["index.json"]).Manifests {
		gotNames = append(gotNames, entry.Annotations[annotationName])
		gotManifest = decode[manifest](t, entries[blobPath(entry.Digest)])
	}
	if diff := cmp.Diff(names, gotNames); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}

	config := decode[imageConfig](t, entries[blobPath(gotManifest.Config.Digest)])
	wantConfig := containerConfig{
		User: "1000:100", Env: []string{DefaultPath, "HOME=/tmp"},
		Entrypoint: []string{"/bin/tool"}, Cmd: []string{"run"}, WorkingDir: "/tmp",
	}
	if diff := cmp.Diff(wantConfig, config.Config); diff != "" {
		t.Errorf("container configuration (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{gotManifest.Layers[0].Digest}, config.RootFS.DiffIDs); diff != "" {
		t.Errorf("diff IDs (-want +got):\n%s", diff)
	}

	type file struct {
		Type     byte
		Mode     int64
		Linkname string
		Content  string
	}
	got := map[string]file{}
	for r := tar.NewReader(bytes.NewReader(entries[blobPath(gotManifest.Layers[0].Digest)])); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("reading the layer: %v", err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("reading %s of the layer: %v", header.Name, err)
		}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s belongs to %d:%d %q, want 0:0", header.Name, header.Uid, header.Gid, header.Uname)
		}
		got[header.Name] = file{Type: header.Typeflag, Mode: header.Mode, Linkname: header.Linkname, Content: string(content)}
	}
	want := map[string]file{
		"bin/":           {Type: tar.TypeDir, Mode: 0o755},
		"bin/tool":       {Type: tar.TypeReg, Mode: 0o755, Content: "#!/bin/sh\n"},
		"bin/tool-alias": {Type: tar.TypeLink, Mode: 0o755, Linkname: "bin/tool"},
		"bin/tool-link":  {Type: tar.TypeSymlink, Mode: 0o777, Linkname: "tool"},
		"tmp/":           {Type: tar.TypeDir, Mode: 0o1777},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestPackGivesTheSameBytesForTheSameFiles(t *testing.T) {
	root := makeRoot(t)
	spec := Spec{Names: []string{"docker.io/library/tool:1"}, Root: root, RootOwned: true}
	first, err := os.ReadFile(pack(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	old := time.Date(1999, time.May, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(root, "bin", "tool"), old, old); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(pack(t, spec))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("archives of the same files differ")
	}
}

func TestPackRefusesWhatContainerdCouldNotUse(t *testing.T) {
	const name = "docker.io/library/tool:1"
	root := makeRoot(t)
	cases := map[string]struct {
		spec Spec
		want string
	}{
		"given no name":                    {Spec{Root: root}, "has no name"},
		"given a name without a registry":  {Spec{Names: []string{"library/tool:1"}, Root: root}, "registry/path:tag"},
		"given a name without a tag":       {Spec{Names: []string{"docker.io/library/tool"}, Root: root}, "registry/path:tag"},
		"given an environment without =":   {Spec{Names: []string{name}, Root: root, Env: []string{"HOME"}}, "KEY=value"},
		"given a root that does not exist": {Spec{Names: []string{name}, Root: root + "/no"}, "no such file"},
		"given a file as root":             {Spec{Names: []string{name}, Root: root + "/bin/tool"}, "not a directory"},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			err := Pack(context.Background(), tc.spec, filepath.Join(t.TempDir(), "image.tar"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestPackLeavesNothingBehindWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	spec := Spec{Names: []string{"docker.io/library/tool:1"}, Root: makeRoot(t)}
	if err := Pack(ctx, spec, filepath.Join(dir, "image.tar")); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("%d files left in the output directory, want none", len(left))
	}
}
