package logs

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
)

// fastLogs is the command under test.
func fastLogs(env *kube.Env) *cobra.Command { return newLogs(env, time.Millisecond) }

// at is a line that was logged in that second.
func at(second int, text string) string {
	return fmt.Sprintf("2026-11-30T12:00:%02dZ %s\n", second, text)
}

// world is a cluster whose Pods answer.
type world struct {
	*clitest.Kube
	server *podtest.Server

	mu sync.Mutex
	// asked are the queries for logs, by Pod.
	asked map[string][]string
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{server: podtest.New(t, podtest.WebSocket), asked: map[string][]string{}}
	w.Kube = clitest.New(append(objects, &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}})...)
	w.Env.Config = func() (*rest.Config, error) { return w.server.Config(), nil }
	w.Env.Clientset = func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(w.server.Config()) }
	return w
}

// pod makes a running Pod with these labels, whose log is written by log.
func (w *world) pod(t *testing.T, name string, labels map[string]string, log http.HandlerFunc) *corev1.Pod {
	t.Helper()
	w.server.Set(key(name), podtest.Pod{Log: func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked[name] = append(w.asked[name], r.URL.RawQuery)
		w.mu.Unlock()
		log(out, r)
	}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "ray"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "ray", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
	if err := w.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}

// questions are the queries for the log of a Pod.
func (w *world) questions(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked[name])
}

// node are the labels of a Ray node.
func node(kind, group, replica string) map[string]string {
	labels := map[string]string{rayv1.LabelCluster: "demo", rayv1.LabelIsRayNode: "yes", rayv1.LabelNodeType: kind, rayv1.LabelGroup: group}
	if replica != "" {
		labels[rayv1.LabelWorkerGroupReplicaIndex] = replica
	}
	return labels
}

// says answers with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestLinesAreMerged(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"given no choice, then all are in the order of time": {nil,
			"[head] a\n[w-0] b\n[head]  cause\n[head] d\n[w-1] e\n"},
		"given a group, then its Pods":        {[]string{"--group", "gpu"}, "[w-1] e\n"},
		"given the head, then that":           {[]string{"--group", "head"}, "[head] a\n[head]  cause\n[head] d\n"},
		"given a number, then that replica":   {[]string{"--worker", "1"}, "[w-1] e\n"},
		"given a name, then that Pod":         {[]string{"--worker", "w-0"}, "[w-0] b\n"},
		"given a group and a number, then it": {[]string{"--group", "cpu", "--worker", "0"}, "[w-0] b\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), says(at(1, "a")+at(3, " cause")+at(4, "d")))
			w.pod(t, "w-0", node("worker", "cpu", "0"), says(at(2, "b")))
			w.pod(t, "w-1", node("worker", "gpu", "1"), says(at(5, "e")))
			if code := w.Run(t, fastLogs, append([]string{"demo"}, tc.args...)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, w.ErrOut)
			}
			if diff := cmp.Diff(tc.want, w.Out.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWorkersWithoutNumbersAreCounted(t *testing.T) {
	w := newWorld(t)
	w.pod(t, "w-b", node("worker", "cpu", ""), says(at(1, "second")))
	w.pod(t, "w-a", node("worker", "cpu", ""), says(at(1, "first")))
	if code := w.Run(t, fastLogs, "demo", "--worker", "1"); code != 0 || w.Out.String() != "[w-b] second\n" {
		t.Errorf("exit code %d: %s%s", code, w.Out, w.ErrOut)
	}
	if code := w.Run(t, fastLogs, "demo", "--worker", "2"); code != 1 || !strings.Contains(w.ErrOut.String(), "no worker 2 among the 2 workers") {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestHowFarBackLogsGo(t *testing.T) {
	w := newWorld(t)
	w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), says(""))
	if code := w.Run(t, fastLogs, "demo", "--since", "10m", "--tail", "5"); code != 0 {
		t.Fatalf("exit code %d: %s", code, w.ErrOut)
	}
	want := []string{"container=ray&sinceSeconds=600&tailLines=5&timestamps=true"}
	if diff := cmp.Diff(want, w.questions("head")); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAPodWithoutALogDoesNotHideTheOthers(t *testing.T) {
	w := newWorld(t)
	w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), says(at(1, "a")))
	w.pod(t, "w-0", node("worker", "cpu", "0"), func(out http.ResponseWriter, _ *http.Request) {
		http.Error(out, "container is waiting to start", http.StatusBadRequest)
	})
	if code := w.Run(t, fastLogs, "demo"); code != 1 || w.Out.String() != "[head] a\n" || !strings.Contains(w.ErrOut.String(), "Pod default/w-0") {
		t.Errorf("exit code %d: %s%s", code, w.Out, w.ErrOut)
	}
}

func TestTheFilesOfRay(t *testing.T) {
	w := newWorld(t)
	w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), says(""))
	var ran []string
	w.server.Set(key("head"), podtest.Pod{Exec: func(command []string) ([]byte, int) {
		ran = command
		return []byte("==> gcs.out <==\none\n\n\ntwo\n\n==> raylet.err <==\nthree"), 0
	}})
	if code := w.Run(t, fastLogs, "demo", "--source", "ray", "--tail", "3"); code != 0 {
		t.Fatalf("exit code %d: %s", code, w.ErrOut)
	}
	want := "[head gcs.out] one\n[head gcs.out] \n[head gcs.out] \n[head gcs.out] two\n[head raylet.err] three\n"
	if diff := cmp.Diff(want, w.Out.String()); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if want := printFilesCommand(logsOfRay, 3); !slices.Equal(ran, want) {
		t.Errorf("ran %q", ran)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	interactive := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}, Spec: rayv1.RayJobSpec{SubmissionMode: rayv1.InteractiveMode}}
	cases := map[string]struct {
		args []string
		want string
	}{
		"given no Pods":                        {[]string{"demo"}, "no Pod of RayCluster default/demo"},
		"given an unknown source":              {[]string{"demo", "--source", "disk"}, `"disk" is unknown`},
		"given a time for files without times": {[]string{"demo", "--source", "ray", "--since", "1m"}, "--since"},
		"given the submitter of a cluster":     {[]string{"demo", "--source", "submitter"}, "has no submitter"},
		"given that of a job without one":      {[]string{"rayjob/own", "--source", "submitter"}, "--source ray --group head"},
		"given a group of the submitter":       {[]string{"rayjob/own", "--source", "submitter", "--group", "a"}, "--group and --worker"},
		"given a negative number of lines":     {[]string{"demo", "--tail", "-2"}, "--tail"},
		"given no such object":                 {[]string{"gone"}, `"gone" in namespace "default"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, interactive.DeepCopy())
			if code := w.Run(t, fastLogs, tc.args...); code != 1 || !strings.Contains(w.ErrOut.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, w.ErrOut)
			}
		})
	}
}

func TestTheFlagsOfLogDownload(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"--link":      {[]string{"demo", "--link", "gke"}, "https://console.cloud.google.com/"},
		"--out-dir":   {[]string{"demo", "--out-dir", "/gone/away"}, "/gone/away does not exist"},
		"--node-type": {[]string{"demo", "--node-type", "tail"}, "all, head or worker"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), says(""))
			w.Run(t, fastLogs, tc.args...)
			if told := w.Out.String() + w.ErrOut.String(); !strings.Contains(told, tc.want) {
				t.Errorf("said %q", told)
			}
		})
	}
}
