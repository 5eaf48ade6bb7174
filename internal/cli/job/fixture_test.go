package job

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/podtest"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// fast is the pace of tests.
func fast() pace {
	return pace{look: time.Millisecond, follow: time.Millisecond, guard: 5 * time.Millisecond, connect: 10 * time.Second, stall: 10 * time.Second}
}

// fastSubmit is the command under test.
func fastSubmit(env *kube.Env) *cobra.Command { return newSubmit(env, fast()) }

// fakeRay is a dashboard that also keeps packages and logs.
type fakeRay struct {
	*fakedashboard.Dashboard
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	packages map[string][]byte
	// log is that of every job; breaks is how often the growing log breaks off in the middle.
	log    string
	breaks int
	// hangs is how often nothing comes of the growing log, on a connection that stands.
	hangs int
	// hung is set once that has happened.
	hung   bool
	header http.Header
	// keep, if set, answers uploads.
	keep http.HandlerFunc
}

func newFakeRay(t *testing.T, log string) *fakeRay {
	t.Helper()
	f := &fakeRay{Dashboard: fakedashboard.NewInProcess(), t: t, packages: map[string][]byte{}, log: log}
	f.server = httptest.NewServer(f)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fakeRay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.header = r.Header.Clone()
	f.mu.Unlock()
	switch name, isPackage := strings.CutPrefix(r.URL.Path, "/api/packages/gcs/"); {
	case isPackage:
		f.servePackage(w, r, name)
	case strings.HasSuffix(r.URL.Path, "/logs/tail"):
		f.tail(w, r)
	case strings.HasSuffix(r.URL.Path, "/logs"):
		_ = json.NewEncoder(w).Encode(map[string]string{"logs": f.log})
	default:
		f.Dashboard.ServeHTTP(w, r)
	}
}

func (f *fakeRay) servePackage(w http.ResponseWriter, r *http.Request, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keep != nil && r.Method == http.MethodPut {
		f.keep(w, r)
		return
	}
	if r.Method == http.MethodGet {
		if _, ok := f.packages[name]; !ok {
			http.Error(w, "Package gcs://"+name+" does not exist", http.StatusNotFound)
		}
		return
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Error(err)
	}
	f.packages[name] = content
}

func (f *fakeRay) tail(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{}
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer connection.Close()
	f.mu.Lock()
	broken, hanging := f.breaks > 0, f.hangs > 0
	f.breaks--
	f.hangs--
	f.hung = f.hung || hanging
	f.mu.Unlock()
	if hanging {
		_, _, _ = connection.ReadMessage() // until the other side has gone
		return
	}
	text := f.log
	if broken {
		text = text[:len(text)/2]
	}
	_ = connection.WriteMessage(websocket.TextMessage, []byte(text))
	if !broken {
		_ = connection.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{})
	}
}

// hangsNow tells whether a growing log was asked for of which nothing comes.
func (f *fakeRay) hangsNow() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hung
}

// world is a Kubernetes cluster whose operator answers a new RayJob at once.
type world struct {
	*clitest.Kube
	ray *fakeRay
	// operate is what the operator does with a new RayJob.
	operate func(ctx context.Context, c client.Client, job *rayv1.RayJob) error
	// looked, if set, is called before a RayJob is read.
	looked func(ctx context.Context, c client.Client)
	// refuse, if set, may answer with an error when an object is read.
	refuse func(object client.Object) error
	// deleted are the options of all deletions.
	deleted []client.DeleteOptions
	// tried is how the last RayJob that was made was only tried.
	tried []string
}

func newWorld(t *testing.T, ray *fakeRay, objects ...client.Object) *world {
	t.Helper()
	w := &world{Kube: clitest.New(objects...), ray: ray, operate: makeReady}
	c := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if _, ok := object.(*rayv1.RayJob); ok && w.looked != nil {
				w.looked(ctx, c)
			}
			if w.refuse != nil {
				if err := w.refuse(object); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			w.deleted = append(w.deleted, *(&client.DeleteOptions{}).ApplyOptions(options))
			return c.Delete(ctx, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			job, ok := object.(*rayv1.RayJob)
			if !ok {
				return c.Create(ctx, object, options...)
			}
			job.UID = "uid-1"
			w.tried = (&client.CreateOptions{}).ApplyOptions(options).DryRun
			if err := c.Create(ctx, job, options...); err != nil {
				return err
			}
			return w.operate(ctx, c, job.DeepCopy())
		},
	})
	w.Env.Client = func() (client.WithWatch, error) { return c, nil }
	return w
}

// submit runs job submit against the fake Ray by its address.
func (w *world) submit(t *testing.T, args ...string) int {
	t.Helper()
	return w.Run(t, fastSubmit, append([]string{"--address", w.ray.server.URL}, args...)...)
}

// jobs are all RayJobs in the cluster.
func (w *world) jobs(t *testing.T) []rayv1.RayJob {
	t.Helper()
	list := &rayv1.RayJobList{}
	if err := w.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// cluster is that of the RayJob.
func cluster(job *rayv1.RayJob) *rayv1.RayCluster {
	c := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-x2345"}}
	if job.Spec.RayClusterSpec != nil {
		c.Spec = *job.Spec.RayClusterSpec.DeepCopy()
	}
	c.Status.State = rayv1.ClusterStateReady
	c.Status.Head.ServiceName = c.Name + "-head-svc"
	return c
}

// makeReady makes the cluster of a RayJob and has the RayJob wait for its job.
func makeReady(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
	ray := cluster(job)
	if err := c.Create(ctx, ray); err != nil {
		return err
	}
	job.Status.RayClusterName, job.Status.JobDeploymentStatus = ray.Name, rayv1.JobDeploymentStatusWaiting
	return c.Status().Update(ctx, job)
}

// reachable makes the head of the RayJob's cluster reachable through the API server only, which it returns.
func (w *world) reachable(t *testing.T) *podtest.Server {
	t.Helper()
	server := podtest.New(t, podtest.WebSocket)
	server.Set(types.NamespacedName{Namespace: "default", Name: "the-head"},
		podtest.Pod{Ports: map[int32]string{8265: w.ray.server.Listener.Addr().String()}})
	w.Env.Config = func() (*rest.Config, error) { return server.Config(), nil }
	made := w.operate
	w.operate = func(ctx context.Context, c client.Client, job *rayv1.RayJob) error {
		labels := map[string]string{rayv1.LabelIdentifier: "the-head"}
		meta := metav1.ObjectMeta{Namespace: "default", Name: cluster(job).Status.Head.ServiceName}
		service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "dashboard", Port: 8265}}}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "the-head", Labels: labels}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, object := range []client.Object{service, pod} {
			if err := c.Create(ctx, object); err != nil {
				return err
			}
		}
		return made(ctx, c, job)
	}
	return server
}

// write writes a file into a new directory and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sources is a working directory.
func sources(t *testing.T) string {
	t.Helper()
	return filepath.Dir(write(t, "main.py", "print('hello')"))
}
