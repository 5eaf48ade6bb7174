package log

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
)

// archive is a tar archive.
func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, entry := range entries {
		content := []byte("content of " + entry.Name)
		entry.Mode = 0o644
		if entry.Typeflag == 0 || entry.Typeflag == tar.TypeReg {
			entry.Typeflag, entry.Size = tar.TypeReg, int64(len(content))
		}
		if err := w.WriteHeader(&entry); err != nil {
			t.Fatal(err)
		}
		if entry.Size > 0 {
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// written are the files below a directory.
func written(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func rayPod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{
			rayv1.LabelCluster: "demo", rayv1.LabelIsRayNode: rayv1.IsRayNodeYes, rayv1.LabelNodeType: node,
		}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "ray"}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// newWorld is a cluster with a head and a worker that answer, and a worker that has failed.
func newWorld(t *testing.T, code int) *clitest.Kube {
	t.Helper()
	server := podtest.New(t, podtest.WebSocket)
	k := clitest.New(
		&rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}},
		rayPod("demo-head", rayv1.NodeTypeHead, corev1.PodRunning), rayPod("demo-worker", rayv1.NodeTypeWorker, corev1.PodRunning))
	for _, name := range []string{"demo-head", "demo-worker"} {
		server.Set(types.NamespacedName{Namespace: "default", Name: name}, podtest.Pod{
			Log: func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "printed by "+name+"/"+r.URL.Query().Get("container"))
			},
			Exec: func(command []string) ([]byte, int) {
				if !slices.Equal(command, []string{"tar", "-C", "/tmp/ray/session_latest/logs", "-cf", "-", "."}) {
					t.Errorf("ran %q", command)
				}
				return archive(t, tar.Header{Name: "./", Typeflag: tar.TypeDir}, tar.Header{Name: "./raylet.out"}, tar.Header{Name: "./old/gcs.log"}), code
			},
		})
	}
	k.Env.Config = func() (*rest.Config, error) { return server.Config(), nil }
	k.Env.Clientset = func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(server.Config()) }
	return k
}

// files are those that a Pod gives.
func files(pod string) map[string]string {
	return map[string]string{
		pod + "/stdout.log":  "printed by " + pod + "/ray",
		pod + "/raylet.out":  "content of ./raylet.out",
		pod + "/old/gcs.log": "content of ./old/gcs.log",
	}
}

func TestWhatIsDownloaded(t *testing.T) {
	cases := map[string]struct {
		args []string
		code int
		pods []string
	}{
		"given no node type, then that of all Pods":                     {nil, 0, []string{"demo-head", "demo-worker"}},
		"given the head, then that of the head":                         {[]string{"--node-type", "head"}, 0, []string{"demo-head"}},
		"given workers, then those of the workers":                      {[]string{"--node-type", "worker"}, 0, []string{"demo-worker"}},
		"given files that grew while they were read, then all the same": {nil, 1, []string{"demo-head", "demo-worker"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k, dir := newWorld(t, tc.code), t.TempDir()
			if code := k.Run(t, New, append([]string{"demo", "--out-dir", dir}, tc.args...)...); code != 0 {
				t.Errorf("exit code %d: %s", code, k.ErrOut)
			}
			want := map[string]string{}
			for _, pod := range tc.pods {
				for name, content := range files(pod) {
					want[name] = content
				}
			}
			if diff := cmp.Diff(want, written(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPodThatGivesNothingIsSaidAndTheOthersAreRead(t *testing.T) {
	k, dir := newWorld(t, 0), t.TempDir()
	if err := k.Create(t.Context(), rayPod("demo-broken", rayv1.NodeTypeWorker, corev1.PodFailed)); err != nil {
		t.Fatal(err)
	}
	if code := k.Run(t, New, "demo", "--out-dir", dir); code != 1 || !strings.Contains(k.ErrOut.String(), "default/demo-broken") {
		t.Errorf("exit code %d: %s", code, k.ErrOut)
	}
	if got := written(t, dir); got["demo-worker/raylet.out"] == "" || got["demo-head/stdout.log"] == "" {
		t.Errorf("got only %v", got)
	}
}

func TestTheDirectory(t *testing.T) {
	t.Run("given none, then one is made that is named after the cluster", func(t *testing.T) {
		k := newWorld(t, 0)
		t.Chdir(t.TempDir())
		if code := k.Run(t, New, "demo"); code != 0 {
			t.Fatalf("exit code %d: %s", code, k.ErrOut)
		}
		if got := written(t, "demo"); len(got) != 6 {
			t.Errorf("got %v", got)
		}
		if code := k.Run(t, New, "demo"); code != 1 || !strings.Contains(k.ErrOut.String(), "is there already") {
			t.Errorf("the second download: exit code %d: %s", code, k.ErrOut)
		}
	})
	cases := map[string]struct {
		args []string
		want string
	}{
		"given one that is not there": {[]string{"demo", "--out-dir", "/gone/away"}, "/gone/away does not exist"},
		"given an unknown node type":  {[]string{"demo", "--node-type", "tail"}, `"tail" is unknown`},
		"given an unknown link":       {[]string{"demo", "--link", "aws"}, `"aws" is unknown`},
		"given no such cluster":       {[]string{"raycluster/gone"}, `no RayCluster "gone"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, 0)
			t.Chdir(t.TempDir())
			if code := k.Run(t, New, tc.args...); code != 1 || !strings.Contains(k.ErrOut.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, k.ErrOut)
			}
			if got := written(t, "."); len(got) != 0 {
				t.Errorf("wrote %v", got)
			}
		})
	}
}

func TestAClusterWithoutPodsIsSaid(t *testing.T) {
	k := clitest.New(client.Object(&rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}))
	if code := k.Run(t, New, "demo", "--out-dir", t.TempDir()); code != 1 || !strings.Contains(k.ErrOut.String(), "has no Pods") {
		t.Errorf("exit code %d: %s", code, k.ErrOut)
	}
}

func TestNothingGetsOutOfTheDirectory(t *testing.T) {
	cases := map[string]struct {
		entries []tar.Header
		want    map[string]string
		wantErr bool
	}{
		"given a name that leads up, then it is refused":           {entries: []tar.Header{{Name: "../escaped"}}, wantErr: true},
		"given one that does so in the middle, then it is refused": {entries: []tar.Header{{Name: "./a/../../escaped"}}, wantErr: true},
		"given an absolute name, then it is refused":               {entries: []tar.Header{{Name: "/escaped"}}, wantErr: true},
		"given a link out and a file through it, then it stays inside": {
			entries: []tar.Header{{Name: "out", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "out/escaped"}},
			want:    map[string]string{"out/escaped": "content of out/escaped"},
		},
		"given what is no file, then it is left out": {
			entries: []tar.Header{{Name: "fifo", Typeflag: tar.TypeFifo}, {Name: "hard", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, {Name: "a"}},
			want:    map[string]string{"a": "content of a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outer := t.TempDir()
			inner := filepath.Join(outer, "inner")
			if err := os.Mkdir(inner, 0o750); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(inner)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if err := extract(root, bytes.NewReader(archive(t, tc.entries...))); (err != nil) != tc.wantErr {
				t.Errorf("extract returned %v", err)
			}
			want := map[string]string{}
			for name, content := range tc.want {
				want["inner/"+name] = content
			}
			if diff := cmp.Diff(want, written(t, outer)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatFollowsAnArchiveThatCannotBeUsedIsNotRead(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	reader, writer := io.Pipe()
	stopped, written := false, make(chan error, 1)
	go func() {
		_, err := writer.Write(archive(t, tar.Header{Name: "../escaped"}))
		for err == nil { // An archive without an end.
			_, err = writer.Write(make([]byte, 512))
		}
		written <- err
	}()
	err = unpack(root, reader, func() { stopped = true })
	if err == nil || !stopped {
		t.Errorf("unpack returned %v; the sender was stopped: %v", err, stopped)
	}
	if got := <-written; !errors.Is(err, got) {
		t.Errorf("the sender was told %v, the user %v", got, err)
	}
}

func TestAFileIsNotLargerThanItMayBe(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := save(root, "endless", strings.NewReader("123456"), 5); !errors.Is(err, errTooLarge) {
		t.Errorf("save returned %v", err)
	}
	if err := save(root, "fits", strings.NewReader("12345"), 5); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"endless": "12345", "fits": "12345"}, written(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	huge := archive(t, tar.Header{Name: "big"})
	copy(huge[124:136], "77777777777\x00") // the size in the header, which its checksum must follow
	if err := extract(root, bytes.NewReader(withChecksum(huge))); !errors.Is(err, errTooLarge) {
		t.Errorf("extract returned %v", err)
	}
}

// withChecksum corrects the checksum of the first header.
func withChecksum(block []byte) []byte {
	copy(block[148:156], "        ")
	sum := 0
	for _, b := range block[:512] {
		sum += int(b)
	}
	digits := []byte("000000\x00 ")
	for i := 5; i >= 0; i-- {
		digits[i] = byte('0' + sum%8)
		sum /= 8
	}
	copy(block[148:156], digits)
	return block
}

func TestTheLink(t *testing.T) {
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "demo"}}
	cases := map[string]struct{ nodeType, inGoogle, want string }{
		"given a cluster of Google Cloud, then its logs are asked for": {"head", "gke_proj_europe-west1_prod",
			"https://console.cloud.google.com/logs/query;query=resource.type%3D%22k8s_container%22%0Aresource.labels.location%3D%22europe-west1%22" +
				"%0Aresource.labels.cluster_name%3D%22prod%22%0Aresource.labels.namespace_name%3D%22ml%22%0Alabels.%22k8s-pod%2Fray_io%2Fcluster%22%3D%22demo%22" +
				"%0Alabels.%22k8s-pod%2Fray_io%2Fnode-type%22%3D%22head%22?project=proj"},
		"given another one, then the console asks for the project": {"all", "kind-kind",
			"https://console.cloud.google.com/logs/query;query=resource.type%3D%22k8s_container%22%0Aresource.labels.namespace_name%3D%22ml%22" +
				"%0Alabels.%22k8s-pod%2Fray_io%2Fcluster%22%3D%22demo%22"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := link(cluster, tc.nodeType, tc.inGoogle); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	k := clitest.New(cluster)
	if code := k.Run(t, New, "-n", "ml", "demo", "--link", "gke"); code != 0 || !strings.HasPrefix(k.Out.String(), "https://console.cloud.google.com/") {
		t.Errorf("exit code %d: %s%s", code, k.Out, k.ErrOut)
	}
}
