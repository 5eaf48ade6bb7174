package session

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
)

// world is a cluster with a head whose dashboard says the name of its Pod.
type world struct {
	*clitest.Kube
	pods   *podtest.Server
	screen *podtest.Screen
	port   [3]int32
}

func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{pods: podtest.New(t, podtest.WebSocket), screen: podtest.NewScreen(), port: [3]int32{freePort(t), freePort(t), freePort(t)}}
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}
	cluster.Status.Head.ServiceName = "the-service"
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "the-service"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"is": "head"}, Ports: []corev1.ServicePort{
			{Name: "dashboard", Port: w.port[0], TargetPort: intstr.FromInt32(8265)},
			{Name: "client", Port: w.port[1], TargetPort: intstr.FromInt32(10001)},
			{Name: "serve", Port: w.port[2], TargetPort: intstr.FromInt32(8000)},
		}},
	}
	w.Kube = clitest.New(append(objects, cluster, service)...)
	w.Env.Out, w.Env.ErrOut = w.screen, w.screen
	w.Env.Config = func() (*rest.Config, error) { return w.pods.Config(), nil }
	return w
}

// head makes a head Pod.
func (w *world) head(t *testing.T, name string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, name) }))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	w.pods.Set(types.NamespacedName{Namespace: "default", Name: name}, podtest.Pod{Ports: map[int32]string{8265: address, 10001: address, 8000: address}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"is": "head"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if err := w.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// lose deletes a head Pod.
func (w *world) lose(t *testing.T, name string) {
	t.Helper()
	if err := w.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// running is a session that runs beside the test.
type running struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

// start begins a session.
func (w *world) start(t *testing.T, argument string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, done: make(chan struct{})}
	command := newSession(w.Env, time.Millisecond)
	command.SetArgs([]string{argument})
	command.SilenceErrors, command.SilenceUsage = true, true
	go func() {
		defer close(r.done)
		r.err = command.ExecuteContext(ctx)
	}()
	t.Cleanup(func() { _ = r.end() })
	return r
}

// end ends the session as Ctrl-C does.
func (r *running) end() error {
	r.cancel()
	<-r.done
	return r.err
}

// ask asks a local port.
func ask(t *testing.T, port int32) string {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("http://127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestWhatASessionOffers(t *testing.T) {
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"}}
	job.Status.RayClusterName = "demo"
	service := &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	service.Status.ActiveServiceStatus.RayClusterName = "demo"
	cases := map[string]struct {
		argument string
		titles   []string
		ports    []int
	}{
		"given a RayCluster, then the dashboard and the client": {"demo", []string{"Ray dashboard: http", "Ray client:    ray"}, []int{0, 1}},
		"given a RayJob, then the dashboard":                    {"rayjob/train", []string{"Ray dashboard: http"}, []int{0}},
		"given a RayService, then the dashboard and Serve":      {"rayservice/shop", []string{"Ray dashboard: http", "Ray Serve:     http"}, []int{0, 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job.DeepCopy(), service.DeepCopy())
			w.head(t, "the-head")
			session := w.start(t, tc.argument)
			var want strings.Builder
			for i, title := range tc.titles {
				fmt.Fprintf(&want, "%s://localhost:%d\n", title, w.port[tc.ports[i]])
			}
			w.screen.Await(t, want.String())
			for _, i := range tc.ports {
				if got := ask(t, w.port[i]); got != "the-head" {
					t.Errorf("port %d answers %q", w.port[i], got)
				}
			}
			if err := session.end(); err != nil || w.screen.String() != want.String() {
				t.Errorf("said %q and ended with %v", w.screen, err)
			}
		})
	}
}

func TestASessionOutlivesItsHead(t *testing.T) {
	cases := map[string]func(*world, *testing.T){
		"given the connection breaks and the head is replaced": func(w *world, t *testing.T) {
			w.lose(t, "old")
			w.pods.Remove(types.NamespacedName{Namespace: "default", Name: "old"})
			w.screen.Await(t, "the connection to Pod old is lost; trying again\n")
			w.head(t, "new")
		},
		"given the head is replaced and the old one still answers": func(w *world, t *testing.T) {
			w.lose(t, "old")
			w.head(t, "new")
			w.screen.Await(t, "the head was replaced: Pod old by Pod new; trying again\n")
		},
	}
	for name, happens := range cases {
		t.Run(name+", then the new one is reached", func(t *testing.T) {
			w := newWorld(t)
			w.head(t, "old")
			session := w.start(t, "demo")
			w.screen.Await(t, "Ray client")
			happens(w, t)
			w.screen.Await(t, "Connected again, to Pod new.\n")
			if got := ask(t, w.port[0]); got != "new" {
				t.Errorf("the dashboard is that of %q", got)
			}
			if err := session.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASessionThatCannotBeginSaysWhy(t *testing.T) {
	waiting := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "waiting"}}
	cases := map[string]struct {
		argument string
		want     string
	}{
		"given no such object":        {"raycluster/gone", `no RayCluster "gone" in namespace "default"`},
		"given a RayJob without one":  {"rayjob/waiting", "has no RayCluster"},
		"given a head that is not up": {"demo", "default/the-service has no Pod"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waiting.DeepCopy())
			command := func(env *kube.Env) *cobra.Command { return newSession(env, time.Millisecond) }
			if code := w.Run(t, command, tc.argument); code != 1 || !strings.Contains(w.ErrOut.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, w.ErrOut)
			}
		})
	}
}

func TestASessionNamesThePortThatIsTaken(t *testing.T) {
	w := newWorld(t)
	w.head(t, "the-head")
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", w.port[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if code := w.Run(t, New, "demo"); code != 1 || !strings.Contains(w.ErrOut.String(), fmt.Sprintf("local port %d cannot be used", w.port[1])) {
		t.Errorf("exit code %d: %s", code, w.ErrOut)
	}
}

func TestASessionEndsWithItsObject(t *testing.T) {
	w := newWorld(t)
	w.head(t, "the-head")
	session := w.start(t, "demo")
	w.screen.Await(t, "Ray client")
	if err := w.Delete(t.Context(), &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}}); err != nil {
		t.Fatal(err)
	}
	w.pods.Remove(types.NamespacedName{Namespace: "default", Name: "the-head"})
	<-session.done
	if session.err == nil || !strings.Contains(session.err.Error(), "RayCluster default/demo: it was deleted") {
		t.Errorf("the session ended with %v", session.err)
	}
}
