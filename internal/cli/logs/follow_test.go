package logs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
)

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
	screen.Await(t, "RayCluster default/demo was deleted.\n")
	close(last)
	<-screen.done // by itself
	if got := screen.String(); screen.err != nil || !strings.HasPrefix(got, "[head] running\n") || !strings.HasSuffix(got, "[head] stopping\n") {
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
