package raycluster

import (
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func serviceCases() []Case {
	return []Case{
		{Row: 36, Kind: same, Given: "a head template with its own app.kubernetes.io/name", When: "the cluster is ready", Then: "Pod and Service carry it, and the Service finds the head", Run: func(e *env) {
			cluster := e.ready(headLabel("app.kubernetes.io/name", "my"))
			service := e.service("demo-head-svc")
			e.Expect(service.Spec.Selector).To(HaveKeyWithValue("app.kubernetes.io/name", "my"))
			selects(e, service, e.head())
			e.Expect(e.status(cluster).Head.ServiceName).To(Equal("demo-head-svc"))
		}},
		{Row: 37, Kind: better, Weak: []string{"W38"}, Theirs: "the Service selects nothing", Given: "a head template with its own ray.io/identifier", When: "the cluster is created", Then: "the Service still finds the head",
			How: "the selector is made from the labels that the head gets", Run: func(e *env) {
				e.given(headLabel("ray.io/identifier", "x"), headLabel("app.kubernetes.io/created-by", "me"))
				selects(e, e.service("demo-head-svc"), e.head())
			}},
		{Row: 39, Kind: same, Given: "serviceType NodePort", When: "the cluster is ready", Then: "such a Service; endpoints are its node ports", Run: func(e *env) {
			cluster := e.ready(serviceType(corev1.ServiceTypeNodePort))
			service := e.service("demo-head-svc")
			e.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
			e.Expect(service.Spec.ClusterIP).ToNot(Equal(corev1.ClusterIPNone))
			want := map[string]string{}
			for _, port := range service.Spec.Ports {
				want[port.Name] = strconv.Itoa(int(port.NodePort))
			}
			e.Eventually(func() map[string]string { return e.status(cluster).Endpoints }).Should(Equal(want))
		}},
		{Row: 40, Kind: same, Given: "operator with ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", When: "the cluster is ready", Then: "the head Service has an address, and the status tells it", Run: func(e *env) {
			e.start(harness.Env("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "true"))
			e.hasClusterIP(e.ready())
		}},
		{Row: 41, Kind: same, Given: "headService with a name, a selector and a port", When: "the cluster is created", Then: "a Service of that name with our selector, its port and the usual ones", Run: func(e *env) {
			e.given(headService(corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: corev1.ServiceSpec{
				Selector: map[string]string{"z": "z"}, Ports: []corev1.ServicePort{{Name: "extra", Port: 7777}}}}))
			service := e.service("mine")
			e.Expect(service.Spec.Selector).ToNot(HaveKey("z"))
			selects(e, service, e.head())
			e.Expect(portNames(service)).To(ConsistOf("extra", "client", "dashboard", "gcs-server", "metrics", "serve"))
		}},
		{Row: 42, Kind: better, Weak: []string{"W39"}, Theirs: "the port is there twice, and the API server refuses the Service again and again", Given: "headService with a port that we add too", When: "the cluster is created", Then: "the Service has it once",
			How: "ports are merged by name and number", Run: func(e *env) {
				e.given(headService(corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "dashboard", Port: 8265}}}}))
				e.Expect(portNames(e.service("demo-head-svc"))).To(ConsistOf("client", "dashboard", "gcs-server", "metrics", "serve"))
			}},
		{Row: 43, Kind: better, Weak: []string{"W35"}, Theirs: "the Service stays as it was first made", Given: "a ready cluster", When: "serviceType becomes NodePort", Then: "the Service becomes one",
			How: "what we own is compared with what is wanted on every pass", Run: func(e *env) {
				cluster := e.ready()
				e.change(cluster, serviceType(corev1.ServiceTypeNodePort))
				e.Eventually(func() corev1.ServiceType { return e.service("demo-head-svc").Spec.Type }).Should(Equal(corev1.ServiceTypeNodePort))
			}},
		{Row: 44, Kind: same, Given: "annotation enable-serve-service", When: "the cluster is created", Then: "a Service for Serve that selects by cluster only", Run: func(e *env) {
			e.given(annotated(rayv1.AnnotationEnableServeService, "true"))
			service := e.service("demo-serve-svc")
			e.Expect(service.Spec.Selector).To(Equal(map[string]string{"ray.io/cluster": name}))
			e.Expect(portNames(service)).To(Equal([]string{"serve"}))
		}},
		{Row: 100, Kind: same, Given: "a name of 53 characters, two hosts, Serve", When: "the cluster is created", Then: "three Services with full names, and Pods", Run: func(e *env) {
			long := strings.Repeat("a", 53)
			e.given(named(long), hosts(2), annotated(rayv1.AnnotationEnableServeService, "true"))
			for _, ending := range []string{"-head-svc", "-headless", "-serve-svc"} {
				e.service(long + ending)
			}
			e.Eventually(e.pods).Should(HaveLen(5))
		}},
	}
}

func headService(service corev1.Service) edit {
	return func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.HeadService = &service }
}

// service waits for a Service and returns it.
func (e *env) service(name string) *corev1.Service {
	e.t.Helper()
	service := &corev1.Service{}
	e.Eventually(func() error { return e.read(service, name) }).Should(Succeed())
	return service
}

func (e *env) hasClusterIP(cluster *rayv1.RayCluster) {
	e.t.Helper()
	service := e.service("demo-head-svc")
	e.Expect(service.Spec.ClusterIP).To(MatchRegexp(`^\d+\.\d+\.\d+\.\d+$`))
	e.Eventually(func() string { return e.status(cluster).Head.ServiceIP }).Should(Equal(service.Spec.ClusterIP))
}

func portNames(service *corev1.Service) []string {
	var names []string
	for _, port := range service.Spec.Ports {
		names = append(names, port.Name)
	}
	return names
}
