// Package integration runs the operator against a real etcd and kube-apiserver. There are no nodes: the tests set the
// status of Pods and Jobs themselves, and Ray dashboards are scripted.
package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/operator"
	"github.com/heliostat-io/heliostat/test/apiserver"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// patience is how long a condition may take on a busy machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m)) }

// cluster is a real API server with the CRDs, and a client that reads from it directly.
type cluster struct {
	client.Client
	config *rest.Config
	Rays   *fakedashboard.Network
}

// connect returns the API server of this test process, with the CRDs installed and a fresh namespace.
func connect(t *testing.T) (cluster, string) {
	t.Helper()
	config := apiserver.Start(t)
	if err := apiserver.InstallCRDs(t.Context(), config, filepath.Join("..", "..", "charts", "heliostat", "crds")); err != nil {
		t.Fatal(err)
	}
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := api.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	c := cluster{Client: api, config: config, Rays: fakedashboard.NewNetwork()}
	c.Rays.OnUnknown(func(string) *fakedashboard.Dashboard { return fakedashboard.NewInProcess() })
	return c, namespace.Name
}

// counting counts the requests of one operator to the API server, renewals of the lease left out.
type counting struct {
	next   http.RoundTripper
	reads  *atomic.Int64
	writes *atomic.Int64
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case strings.Contains(request.URL.Path, "/leases"):
	case request.Method == http.MethodGet:
		c.reads.Add(1)
	default:
		c.writes.Add(1)
	}
	return c.next.RoundTrip(request)
}

// replica is one running operator.
type replica struct {
	stop   context.CancelFunc
	ended  chan struct{}
	reads  atomic.Int64
	writes atomic.Int64
}

// run starts an operator that watches one namespace and has its lease there.
func (c cluster) run(t *testing.T, namespace, identity string) *replica {
	t.Helper()
	cfg, err := config.Parse([]string{"--metrics-addr=0", "--health-probe-bind-address=0", "--watch-namespace=" + namespace,
		"--leader-election-namespace=" + namespace}, func(string) string { return "" }, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &replica{stop: stop, ended: make(chan struct{})}
	connection := rest.CopyConfig(c.config)
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counting{next: next, reads: &r.reads, writes: &r.writes}
	})
	go func() {
		defer close(r.ended)
		err := operator.Run(ctx, cfg, operator.Options{REST: connection, Identity: identity, Namespace: namespace, Version: "test",
			HTTP: c.Rays.Client(), Registerer: prometheus.NewRegistry(), Log: testr.New(t).V(1)})
		if err != nil {
			t.Errorf("operator %s: %v", identity, err)
		}
	}()
	t.Cleanup(r.shutdown)
	return r
}

// shutdown stops the operator and waits until it has let everything go.
func (r *replica) shutdown() {
	r.stop()
	<-r.ended
}

func (c cluster) pods(t *testing.T, namespace string, selector client.MatchingLabels) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace), selector); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// kubelet makes all Pods of the namespace run and be ready, and removes those that terminate.
func (c cluster) kubelet(t *testing.T, namespace string) {
	t.Helper()
	for _, pod := range c.pods(t, namespace, nil) {
		if pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Status.Phase == corev1.PodRunning {
			continue
		}
		pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, "10.1.2.3"
		pod.Status.PodIPs = []corev1.PodIP{{IP: "10.1.2.3"}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if err := c.Status().Update(t.Context(), &pod); client.IgnoreNotFound(err) != nil {
			t.Logf("set the status of Pod %s: %v", pod.Name, err)
		}
	}
}

// kill deletes a Pod and has it gone at once.
func (c cluster) kill(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if err := c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) readyCluster(t *testing.T, g Gomega, cluster *rayv1.RayCluster) {
	t.Helper()
	g.Eventually(func() rayv1.ClusterState {
		c.kubelet(t, cluster.Namespace)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return rayv1.ClusterState(err.Error())
		}
		return cluster.Status.State
	}, patience, 100*time.Millisecond).Should(Equal(rayv1.ClusterStateReady))
}

// eventReasons returns the reasons of the events about an object.
func (c cluster) eventReasons(t *testing.T, object client.Object) []string {
	t.Helper()
	events := &eventsv1.EventList{}
	if err := c.List(t.Context(), events, client.InNamespace(object.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, event := range events.Items {
		if event.Regarding.UID == object.GetUID() {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

func podTemplate(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "img:1"}}}}
}

// clusterSpec is one head and two workers of group "a".
func clusterSpec() rayv1.RayClusterSpec {
	return rayv1.RayClusterSpec{
		RayVersion:    "2.60.0",
		HeadGroupSpec: rayv1.HeadGroupSpec{Template: podTemplate("ray-head")},
		WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{GroupName: "a", Replicas: ptr.To[int32](2), MinReplicas: ptr.To[int32](0),
			MaxReplicas: ptr.To[int32](4), NumOfHosts: 1, Template: podTemplate("ray-worker")}},
	}
}

func newCluster(namespace, name string) *rayv1.RayCluster {
	return &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: clusterSpec()}
}

func newJob(namespace string, mode rayv1.JobSubmissionMode) *rayv1.RayJob {
	spec := clusterSpec()
	return &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"},
		Spec: rayv1.RayJobSpec{Entrypoint: "python main.py", SubmissionMode: mode, RayClusterSpec: &spec}}
}

func names(pods []corev1.Pod) string {
	list := make([]string, 0, len(pods))
	for _, pod := range pods {
		list = append(list, pod.Name)
	}
	return fmt.Sprint(list)
}
