package cluster

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/hack/localkube/internal/state"
)

func TestParseImages(t *testing.T) {
	const table = `REF                              TYPE                                       DIGEST                                                                  SIZE    PLATFORMS   LABELS
docker.io/library/pause:1        application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.4 MiB linux/amd64 io.cri-containerd.image=managed
sha256:bbbb                      application/vnd.oci.image.manifest.v1+json sha256:aaaa 1.4 MiB linux/amd64 io.cri-containerd.image=managed
`
	want := map[string]string{"docker.io/library/pause:1": "sha256:aaaa", "sha256:bbbb": "sha256:aaaa"}
	if diff := cmp.Diff(want, parseImages(table)); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func writeArchive(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := tar.NewWriter(file)
	for name, content := range files {
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

const twoNames = `{"manifests": [
{"digest": "sha256:aaaa", "annotations": {"io.containerd.image.name": "docker.io/a/ray:1"}},
{"digest": "sha256:aaaa", "annotations": {"io.containerd.image.name": "docker.io/a/ray:2"}}]}`

func TestArchivesAreImportedUnlessAllTheirImagesArePresent(t *testing.T) {
	tests := map[string]struct {
		index   string
		present map[string]string
		want    bool
	}{
		"both names are there":        {index: twoNames, present: map[string]string{"docker.io/a/ray:1": "sha256:aaaa", "docker.io/a/ray:2": "sha256:aaaa"}, want: true},
		"one name is missing":         {index: twoNames, present: map[string]string{"docker.io/a/ray:1": "sha256:aaaa"}},
		"one name is an older image":  {index: twoNames, present: map[string]string{"docker.io/a/ray:1": "sha256:aaaa", "docker.io/a/ray:2": "sha256:bbbb"}},
		"an image without a name":     {index: `{"manifests": [{"digest": "sha256:aaaa"}]}`, present: map[string]string{"": "sha256:aaaa"}},
		"an archive without an image": {index: `{"manifests": []}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			contents, err := readIndex(writeArchive(t, map[string]string{"blobs/sha256/aaaa": "layer", "index.json": test.index}))
			if err != nil {
				t.Fatal(err)
			}
			if got := contents.containedIn(test.present); got != test.want {
				t.Errorf("got contained %t, want %t", got, test.want)
			}
		})
	}
}

func TestReadIndexRefusesOtherFiles(t *testing.T) {
	if _, err := readIndex(writeArchive(t, map[string]string{"manifest.json": "[]"})); err == nil {
		t.Error("got no error for an archive without index.json")
	}
}

func TestUsedUpLeavesVolumesOfOthersAlone(t *testing.T) {
	make := func(name, class, path, phase string) volume {
		one := volume{}
		one.Metadata.Name, one.Spec.StorageClassName, one.Status.Phase = name, class, phase
		if path != "" {
			one.Spec.HostPath = &struct{ Path string }{path}
		}
		return one
	}
	all := []volume{
		make("ours", "localkube", "/c/volumes/localkube-01", "Released"),
		make("bound", "localkube", "/c/volumes/localkube-02", "Bound"),
		make("of another class", "theirs", "/c/volumes/localkube-03", "Released"),
		make("elsewhere", "localkube", "/home/me", "Released"),
		make("no folder", "localkube", "", "Released"),
	}
	var got []string
	for _, one := range usedUp(all, "/c/volumes") {
		got = append(got, one.Metadata.Name)
	}
	if diff := cmp.Diff([]string{"ours"}, got); diff != "" {
		t.Errorf("used volumes (-want +got):\n%s", diff)
	}
}

func TestTracesOfNamesOnlySocketsOfShims(t *testing.T) {
	tasks := t.TempDir()
	for id, address := range map[string]string{
		"a1": "unix:///run/containerd/s/1234", "b2": "unix:///home/me/socket", "c3": "vsock://1",
	} {
		if err := os.Mkdir(filepath.Join(tasks, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tasks, id, "address"), []byte(address), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"/var/lib/cni/results/cni-loopback-a1-lo", "/run/containerd/s/1234",
		"/var/lib/cni/results/cni-loopback-b2-lo", "/var/lib/cni/results/cni-loopback-c3-lo",
	}
	if diff := cmp.Diff(want, tracesOf(tasks)); diff != "" {
		t.Errorf("traces (-want +got):\n%s", diff)
	}
}

func TestDataIsRemovedButImagesAndLogsStay(t *testing.T) {
	manager := Manager{Dirs: state.Dirs{Name: "c", Big: t.TempDir(), Run: t.TempDir()}}
	keep := []string{"log/etcd.log", "n1/containerd/content/blob", "n1/containerd/io.containerd.grpc.v1.cri/other"}
	remove := []string{
		"etcd/member", "pki/ca.key", "volumes/localkube-01/f", "n1/kubelet/pods/x", "n3/config/kubelet.json",
		"n1/containerd/io.containerd.grpc.v1.cri/sandboxes/s",
	}
	for _, file := range append(append([]string{}, keep...), remove...) {
		path := filepath.Join(manager.Dirs.Big, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := manager.removeData(); err != nil {
		t.Fatal(err)
	}
	for _, file := range keep {
		if _, err := os.Stat(filepath.Join(manager.Dirs.Big, file)); err != nil {
			t.Errorf("%s was removed: %v", file, err)
		}
	}
	for _, file := range remove {
		if _, err := os.Stat(filepath.Join(manager.Dirs.Big, file)); !os.IsNotExist(err) {
			t.Errorf("%s is still there", file)
		}
	}
}
