package logs

import (
	"context"
	"errors"
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// running is a command that runs beside the test.
type running struct {
	*podtest.Screen
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start begins the command.
func (w *world) start(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Screen: podtest.NewScreen(), cancel: cancel, done: make(chan struct{})}
	w.Env.Out, w.Env.ErrOut = r, r
	command := fastLogs(w.Env)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	go func() {
		defer close(r.done)
		r.err = command.ExecuteContext(ctx)
	}()
	t.Cleanup(func() { _ = r.end() })
	return r
}

// end ends the command as Ctrl-C does.
func (r *running) end() error {
	r.cancel()
	<-r.done
	return r.err
}

// flows answers with lines and keeps the log open.
func flows(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func TestLogsGoOnWhenAPodIsReplaced(t *testing.T) {
	w := newWorld(t)
	old := w.pod(t, "w-old", node("worker", "cpu", "0"), flows(at(1, "old")))
	screen := w.start(t, "demo", "-f", "--tail", "7")
	screen.Await(t, "[w-old] old\n")
	if err := w.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.pod(t, "w-new", node("worker", "cpu", "0"), flows(at(2, "new")))
	screen.Await(t, "[w-new] new\n")
	if got := w.questions("w-old"); len(got) != 1 || !strings.Contains(got[0], "tailLines=7") {
		t.Errorf("of the Pod that was there, asked %q", got)
	}
	if got := w.questions("w-new"); len(got) != 1 || strings.Contains(got[0], "tailLines") {
		t.Errorf("of the Pod that came, asked %q", got)
	}
	if err := screen.end(); err != nil {
		t.Error(err)
	}
}

func TestLogsGoOnWhenAContainerIsRestarted(t *testing.T) {
	w := newWorld(t)
	lives := make(chan http.HandlerFunc, 2)
	lives <- says(at(1, "first life"))
	pod := w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), func(out http.ResponseWriter, r *http.Request) { (<-lives)(out, r) })
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	screen := w.start(t, "demo", "-f")
	screen.Await(t, "[head] first life\n")
	lives <- flows(at(2, "second life"))
	pod.Status.ContainerStatuses[0].RestartCount = 1
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	screen.Await(t, "[head] second life\n")
	if err := screen.end(); err != nil || screen.String() != "[head] first life\n[head] second life\n" {
		t.Errorf("printed %q and ended with %v", screen, err)
	}
}

func TestABrokenConnectionIsMadeAgainWithoutRepeating(t *testing.T) {
	w := newWorld(t)
	streams := make(chan http.HandlerFunc, 2)
	streams <- says(at(1, "one") + at(2, "two"))
	streams <- flows(at(2, "two") + at(3, "three"))
	w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), func(out http.ResponseWriter, r *http.Request) { (<-streams)(out, r) })
	screen := w.start(t, "demo", "-f", "--tail", "2")
	screen.Await(t, "[head] three\n")
	if err := screen.end(); err != nil || screen.String() != "[head] one\n[head] two\n[head] three\n" {
		t.Errorf("printed %q and ended with %v", screen, err)
	}
	if got := w.questions("head"); len(got) != 2 || !strings.Contains(got[1], "sinceTime=2026-11-30T12%3A00%3A02Z") || strings.Contains(got[1], "tailLines") {
		t.Errorf("asked %q", got)
	}
}

func TestTheLogOfASubmitterEndsWithItsJob(t *testing.T) {
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"}, Spec: rayv1.RayJobSpec{SubmissionMode: rayv1.K8sJobMode}}
	w := newWorld(t, job)
	streaming := make(chan struct{})
	pod := w.pod(t, "train-1", map[string]string{"job-name": "train"}, func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, at(1, "epoch 1"))
		out.(http.Flusher).Flush()
		<-streaming
		_, _ = io.WriteString(out, at(2, "epoch 2"))
	})
	screen := w.start(t, "rayjob/train", "--source", "submitter", "-f")
	screen.Await(t, "[train-1] epoch 1\n")
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	job.Status.JobDeploymentStatus = rayv1.JobDeploymentStatusComplete
	for _, object := range []client.Object{pod, job} {
		if err := w.Status().Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	close(streaming)
	<-screen.done // by itself
	if got := screen.String(); screen.err != nil || got != "[train-1] epoch 1\n[train-1] epoch 2\n" {
		t.Errorf("printed %q and ended with %v", got, screen.err)
	}
}

// refused answers as an API server does to those who may not.
func refused(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "pods \"head\" is forbidden"}`)
}

func TestWhatMayNotBeReadIsTheEnd(t *testing.T) {
	t.Run("given the log of a Pod must not be read", func(t *testing.T) {
		w := newWorld(t)
		w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), refused)
		screen := w.start(t, "demo", "-f")
		<-screen.done // by itself
		if screen.err == nil || !strings.Contains(screen.err.Error(), "is forbidden") {
			t.Errorf("ended with %v", screen.err)
		}
	})
	t.Run("given Pods must not be watched", func(t *testing.T) {
		w := newWorld(t)
		forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
		c := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
			Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
				return nil, forbidden
			},
		})
		w.Env.Client = func() (client.WithWatch, error) { return c, nil }
		screen := w.start(t, "demo", "-f")
		<-screen.done // by itself
		if !apierrors.IsForbidden(screen.err) {
			t.Errorf("ended with %v", screen.err)
		}
	})
}

func TestTheSameErrorIsSaidOnce(t *testing.T) {
	w := newWorld(t)
	answers := make(chan http.HandlerFunc, 4)
	for _, text := range []string{"first trouble", "first trouble", "second trouble"} {
		answers <- func(out http.ResponseWriter, _ *http.Request) { http.Error(out, text, http.StatusInternalServerError) }
	}
	answers <- flows(at(1, "at last"))
	w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), func(out http.ResponseWriter, r *http.Request) { (<-answers)(out, r) })
	screen := w.start(t, "demo", "-f")
	screen.Await(t, "[head] at last\n")
	if got := screen.String(); strings.Count(got, "first trouble") != 1 || strings.Count(got, "second trouble") != 1 {
		t.Errorf("printed %q", got)
	}
}

func TestTheDeletionOfTheClusterEndsTheLogs(t *testing.T) {
	w := newWorld(t)
	last := make(chan struct{})
	pod := w.pod(t, "head", node("head", rayv1.HeadGroupName, ""), func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, at(1, "running"))
		out.(http.Flusher).Flush()
		<-last
		_, _ = io.WriteString(out, at(2, "stopping"))
	})
	screen := w.start(t, "demo", "-f")
	screen.Await(t, "[head] running\n")
	for _, object := range []client.Object{pod, &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}} {
		if err := w.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	close(last)
	<-screen.done // by itself
	if got := screen.String(); screen.err != nil || got != "[head] running\n[head] stopping\n" {
		t.Errorf("printed %q and ended with %v", got, screen.err)
	}
}

func TestLogsGoOnWithTheClusterToWhichAServiceIsUpgraded(t *testing.T) {
	service := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	service.Status.ActiveServiceStatus.RayClusterName = "demo"
	next := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "next"}}
	w := newWorld(t, service, next)
	w.pod(t, "old", node("head", rayv1.HeadGroupName, ""), flows(at(1, "old")))
	labels := node("head", rayv1.HeadGroupName, "")
	labels[rayv1.LabelCluster] = "next"
	w.pod(t, "new", labels, flows(at(2, "new")))
	screen := w.start(t, "rayservice/shop", "-f")
	screen.Await(t, "[old] old\n")
	service.Status.ActiveServiceStatus.RayClusterName = "next"
	if err := w.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	screen.Await(t, "[new] new\n")
	if err := screen.end(); err != nil || screen.String() != "[old] old\n[new] new\n" {
		t.Errorf("printed %q and ended with %v", screen, err)
	}
}
