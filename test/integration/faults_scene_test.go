package integration

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// scene is where one fault is injected: a namespace, and what stands for its nodes.
type scene struct {
	harness.Cluster
	t     *testing.T
	g     *WithT
	ns    string
	serve *harness.ServeNodes
	user  func() (client.WithWatch, error)
	// logs are what the containers of that name have written.
	logs map[string]string
	// turn plays Kubernetes once: nodes, and the controllers that are not here.
	turn func()
}

func newScene(t *testing.T, c harness.Cluster, ns string) *scene {
	s := &scene{Cluster: c, t: t, g: NewWithT(t), ns: ns, serve: c.NewServeNodes(ns), logs: map[string]string{"autoscaler": "looks at the cluster"}}
	s.user = userOf(s)
	s.turn = func() {
		s.Kubelet(t, ns)
		s.EndpointSlices(t, ns)
	}
	return s
}

// ask runs a command of the plugin at a later time.
func (s *scene) ask(later time.Duration, args ...string) said {
	return pluginIn(s.t, s.ns, func(env *kube.Env) {
		env.Now = func() time.Time { return time.Now().Add(later) }
		env.Client = func() (client.WithWatch, error) { return s.user() }
		env.Clientset = func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(s.connection()) }
	})(args...)
}

func (s *scene) connection() *rest.Config {
	config := rest.CopyConfig(s.REST)
	config.Wrap(s.nodes)
	return config
}

// userOf returns a function that returns the client of the user. To find out again and again what the API server serves takes most of
// the time.
func userOf(s *scene) func() (client.WithWatch, error) {
	return sync.OnceValues(func() (client.WithWatch, error) {
		return client.NewWithWatch(s.connection(), client.Options{Scheme: kube.Scheme()})
	})
}

// What the API server would ask a node for.
var (
	logOf       = regexp.MustCompile(`/pods/[^/]+/log$`)
	dashboardOf = regexp.MustCompile(`/services/http:([^/]+):dashboard/proxy(/.*)$`)
)

// nodes answers for the nodes, which are not here: with the logs of containers, and with the dashboards of heads.
func (s *scene) nodes(next http.RoundTripper) http.RoundTripper {
	return carrier(func(request *http.Request) (*http.Response, error) {
		if logOf.MatchString(request.URL.Path) {
			text := s.logs[request.URL.Query().Get("container")]
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text)), Request: request}, nil
		}
		m := dashboardOf.FindStringSubmatch(request.URL.Path)
		if m == nil {
			return next.RoundTrip(request)
		}
		answer, err := s.Rays.Client().Get("http://" + m[1] + "." + s.ns + ".svc.cluster.local:8265" + m[2])
		if err != nil {
			// These are the words of the API server when nobody answers.
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"error trying to reach service: dial tcp: connect: connection refused","reason":"ServiceUnavailable","code":503}`
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
		}
		return answer, nil
	})
}

type carrier func(*http.Request) (*http.Response, error)

// RoundTrip carries one request.
func (c carrier) RoundTrip(request *http.Request) (*http.Response, error) { return c(request) }

// placed plays the scheduler, which has spoken of each Pod that runs.
func (s *scene) placed() {
	s.t.Helper()
	for _, pod := range s.Pods(s.t, s.ns, nil) {
		told := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
		if pod.Status.Phase == corev1.PodRunning && !told {
			s.SetPod(s.t, &pod, func(pod *corev1.Pod) {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
			})
		}
	}
}

// make creates objects in the namespace. Those that stand in none go when the fault is over.
func (s *scene) make(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		s.g.Expect(s.Create(s.t.Context(), object)).To(Succeed())
	}
}

// cluster makes RayCluster demo: a head and two workers of group "a".
func (s *scene) cluster(edits ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	s.t.Helper()
	cluster := harness.NewCluster(s.ns, "demo", edits...)
	s.make(cluster)
	return cluster
}

// ready makes RayCluster demo and waits until it is ready.
func (s *scene) ready(edits ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	s.t.Helper()
	cluster := s.cluster(edits...)
	s.BecomesReady(s.t, cluster)
	s.turn()
	return cluster
}

// head waits for the head Pod of RayCluster demo.
func (s *scene) head() *corev1.Pod { return s.pods(harness.HeadOf("demo"), 1)[0] }

// workers waits for the two workers of RayCluster demo.
func (s *scene) workers() []*corev1.Pod { return s.pods(harness.WorkersOf("demo"), 2) }

func (s *scene) pods(selector client.MatchingLabels, count int) []*corev1.Pod {
	s.t.Helper()
	var pods []*corev1.Pod
	s.g.Eventually(func() int {
		pods = nil
		for _, pod := range harness.Alive(s.Pods(s.t, s.ns, selector)) {
			pods = append(pods, &pod)
		}
		return len(pods)
	}).Should(Equal(count))
	return pods
}

// until plays Kubernetes until an object is as wanted.
func (s *scene) until(what string, object client.Object, is func() bool) {
	s.t.Helper()
	s.g.Eventually(func() bool {
		s.turn()
		return client.IgnoreNotFound(s.Get(s.t.Context(), client.ObjectKeyFromObject(object), object)) == nil && is()
	}).Should(BeTrue(), "never %s", what)
}

// patch changes an object.
func (s *scene) patch(object client.Object, change func()) {
	s.t.Helper()
	base := object.DeepCopyObject().(client.Object)
	change()
	s.g.Expect(s.Patch(s.t.Context(), object, client.MergeFrom(base))).To(Succeed())
}

// patchStatus changes the status of an object.
func (s *scene) patchStatus(object client.Object, change func()) {
	s.t.Helper()
	base := object.DeepCopyObject().(client.Object)
	change()
	s.g.Expect(s.Status().Patch(s.t.Context(), object, client.MergeFrom(base))).To(Succeed())
}

// held deletes an object that a finalizer holds. The finalizer goes with the test.
func (s *scene) held(object client.Object) {
	s.t.Helper()
	s.patch(object, func() { object.SetFinalizers([]string{"example.com/hold"}) })
	s.g.Expect(s.Delete(s.t.Context(), object)).To(Succeed())
}

// dashboard is that of a RayCluster.
func (s *scene) dashboard(cluster string) *fakedashboard.Dashboard {
	host := harness.DashboardHost(s.ns, cluster)
	if ray := s.Rays.Dashboard(host); ray != nil {
		return ray
	}
	ray := fakedashboard.NewInProcess()
	s.Rays.Add(host, ray)
	return ray
}

// after is the context of what is cleaned up when the test is over.
func (s *scene) after() context.Context { return context.WithoutCancel(s.t.Context()) }

// event records what somebody says about an object.
func (s *scene) event(about client.Object, kind, reason, message string) {
	s.t.Helper()
	now := metav1.Now()
	s.make(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, GenerateName: about.GetName() + "."},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: s.ns, Name: about.GetName(), UID: about.GetUID()},
		Reason:         reason, Message: message, Type: corev1.EventTypeWarning, FirstTimestamp: now, LastTimestamp: now, Count: 1})
}

// meta is that of an object of the namespace.
func (s *scene) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.ns, Name: name}
}
