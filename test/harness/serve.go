package harness

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// SampleServeConfig has one application with one deployment.
const SampleServeConfig = `applications:
- name: app
  import_path: app.main:graph
  route_prefix: /
  deployments:
  - name: Main
    num_replicas: 1
`

// NewService is a RayService of one application, on a cluster of a head and one worker of group "a".
func NewService(namespace, name string) *rayv1.RayService {
	spec := ClusterSpec()
	spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{WorkerGroup("a", 1)}
	return &rayv1.RayService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: rayv1.RayServiceSpec{RayClusterConfig: spec, ServeConfigV2: SampleServeConfig}}
}

// DashboardHost is where the dashboard of a RayCluster is reached, unless the cluster gives it another port or Service.
func DashboardHost(namespace, cluster string) string {
	return cluster + "-head-svc." + namespace + ".svc.cluster.local:8265"
}

// ServeNodes plays the kubelet and Ray Serve on the Pods of RayServices in one namespace. As soon as Serve on a cluster has an
// application, each of its running Pods has a proxy, and Serve reports it; when it has none, there is no proxy.
type ServeNodes struct {
	cluster   Cluster
	namespace string
	proxies   map[types.UID]*serveNode
}

// serveNode is a Pod with its proxy.
type serveNode struct {
	proxy *fakedashboard.Proxy
	// hosts are the addresses of the proxy and of the metrics; empty while Serve does not run there.
	hosts []string
}

// NewServeNodes returns a stand-in that has not seen any Pod yet.
func (c Cluster) NewServeNodes(namespace string) *ServeNodes {
	return &ServeNodes{cluster: c, namespace: namespace, proxies: map[types.UID]*serveNode{}}
}

// Proxy is the Serve proxy of a Pod. It answers only while Serve runs there, and is healthy until told otherwise.
func (s *ServeNodes) Proxy(pod *corev1.Pod) *fakedashboard.Proxy { return s.node(pod.UID).proxy }

func (s *ServeNodes) node(uid types.UID) *serveNode {
	if s.proxies[uid] == nil {
		s.proxies[uid] = &serveNode{proxy: fakedashboard.NewProxyInProcess()}
	}
	return s.proxies[uid]
}

// Turn brings all Pods forward once. New ones run. A head is ready at once; a worker is ready while its proxy is healthy, as
// its readiness probe finds out. Pods that a test has put into a state of their own are left alone: those that have ended or
// are pending with a condition.
func (s *ServeNodes) Turn(t testing.TB) {
	t.Helper()
	byCluster, there := map[string][]corev1.Pod{}, map[types.UID]bool{}
	for _, pod := range s.cluster.Pods(t, s.namespace, nil) {
		there[pod.UID] = true
		cluster := pod.Labels[rayv1.LabelCluster]
		if cluster == "" || pod.DeletionTimestamp != nil {
			continue
		}
		if pod.Status.Phase == corev1.PodPending && len(pod.Status.Conditions) == 0 {
			s.cluster.SetPod(t, &pod, map[bool]func(*corev1.Pod){true: Ready, false: Unready}[isHead(&pod)])
		}
		if pod.Status.Phase == corev1.PodRunning {
			byCluster[cluster] = append(byCluster[cluster], pod)
		}
	}
	for uid, node := range s.proxies {
		if !there[uid] {
			s.stop(node)
			delete(s.proxies, uid)
		}
	}
	for cluster, pods := range byCluster {
		s.turnCluster(t, cluster, pods)
	}
}

// turnCluster starts or stops the proxies of one cluster, and probes its workers.
func (s *ServeNodes) turnCluster(t testing.TB, cluster string, pods []corev1.Pod) {
	t.Helper()
	ray := s.cluster.Rays.Dashboard(DashboardHost(s.namespace, cluster))
	serves := ray != nil && len(ray.ServeApplications()) > 0
	var reported []fakedashboard.ServeProxy
	for i := range pods {
		pod := &pods[i]
		node := s.node(pod.UID)
		switch {
		case serves && len(node.hosts) == 0:
			s.run(pod, node)
		case !serves:
			s.stop(node)
		}
		if serves {
			reported = append(reported, fakedashboard.ServeProxy{NodeID: string(pod.UID), NodeIP: pod.Status.PodIP, NodeInstanceID: pod.Name, Status: "HEALTHY"})
		}
		if !isHead(pod) {
			s.probe(t, pod)
		}
	}
	if ray != nil {
		ray.SetServeProxies(reported...)
	}
}

func (s *ServeNodes) run(pod *corev1.Pod, node *serveNode) {
	node.hosts = []string{hostOf(pod, "serve", 8000), hostOf(pod, "metrics", 8080)}
	for _, host := range node.hosts {
		s.cluster.Rays.AddProxy(host, node.proxy)
	}
}

func (s *ServeNodes) stop(node *serveNode) {
	for _, host := range node.hosts {
		s.cluster.Rays.RemoveProxy(host)
	}
	node.hosts = nil
}

// probe plays the readiness probe of a worker: it asks the proxy for its health.
func (s *ServeNodes) probe(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	healthy := false
	answer, err := s.cluster.Rays.Client().Get("http://" + hostOf(pod, "serve", 8000) + "/-/healthz")
	if err == nil {
		healthy = answer.StatusCode == http.StatusOK
		answer.Body.Close()
	}
	if healthy != podIsReady(pod) {
		s.cluster.SetPod(t, pod, map[bool]func(*corev1.Pod){true: Ready, false: Unready}[healthy])
	}
}

func isHead(pod *corev1.Pod) bool { return pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead }

func podIsReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// hostOf is the address of a Pod with the port of that name, or else the usual one.
func hostOf(pod *corev1.Pod, name string, usual int32) string {
	for _, port := range pod.Spec.Containers[0].Ports {
		if port.Name == name {
			usual = port.ContainerPort
		}
	}
	return fmt.Sprintf("%s:%d", pod.Status.PodIP, usual)
}
