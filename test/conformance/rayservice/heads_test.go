package rayservice

import (
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func podCases() []Case {
	return []Case{
		{Row: 27, Kind: same, Given: "the head's Serve proxy is healthy", When: "it is asked", Then: "label ray.io/serve of the head is true, one event", Run: func(e *env) {
			service := e.ready()
			head := e.head(e.active(service).Name)
			e.haveLabel(head, "true")
			e.healthAsked(head, 3)
			e.rest()
			e.Expect(e.times(service, "UpdatedHeadPodServeLabel")).To(Equal(1))
		}},
		{Row: 28, Kind: same, Given: "a ready service", When: "the head's Serve proxy fails", Then: "its label is false, until the proxy is healthy again",
			How: "after two failures in a row", Run: func(e *env) {
				service := e.ready()
				head := e.head(e.active(service).Name)
				e.nodes.Proxy(head).SetHealthy(false)
				e.haveLabel(head, "false")
				e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.NumServeEndpoints }).Should(Equal(int32(1)))
				e.nodes.Proxy(head).SetHealthy(true)
				e.haveLabel(head, "true")
			}},
		{Row: 29, Kind: same, Given: "excludeHeadPodFromServeSvc", When: "the service serves", Then: "the head's label is false all the time, and its proxy is not asked", Run: func(e *env) {
			service := e.ready(func(s *rayv1.RayService) { s.Spec.ExcludeHeadPodFromServeSvc = true })
			head := e.head(e.active(service).Name)
			e.asked(e.ray(e.active(service).Name), 3)
			e.rest()
			e.refresh(service)
			e.Expect(service.Status.NumServeEndpoints).To(Equal(int32(1)))
			e.Expect(e.nodes.Proxy(head).Checks()).To(BeZero())
			e.Expect(e.head(e.active(service).Name).Labels).To(HaveKeyWithValue("ray.io/serve", "false"))
			e.Expect(e.times(service, "UpdatedHeadPodServeLabel")).To(BeZero())
		}},
		{Row: 30, Kind: same, When: "a worker is made", Then: "label ray.io/serve true, a readiness probe that asks raylet and Serve proxy and fails at once, three variables for Ray", Run: func(e *env) {
			e.noKubelet = true
			service := e.given()
			workers := harness.WorkersOf(e.pending(service).Name)
			e.soon(func() any { return e.Pods(e.t, e.ns, workers) }).Should(HaveLen(1))
			worker := e.Pods(e.t, e.ns, workers)[0]
			e.Expect(worker.Labels).To(HaveKeyWithValue("ray.io/serve", "true"))
			container := worker.Spec.Containers[0]
			probe := container.ReadinessProbe
			command := strings.Join(probe.Exec.Command, " ")
			e.Expect(command).To(And(ContainSubstring("52365/api/local_raylet_healthz"), ContainSubstring("8000/-/healthz")))
			e.Expect([]int32{probe.InitialDelaySeconds, probe.PeriodSeconds, probe.TimeoutSeconds, probe.FailureThreshold}).To(Equal([]int32{10, 5, 2, 1}))
			e.Expect(container.Env).To(ContainElements(
				corev1.EnvVar{Name: "RAY_timeout_ms_task_wait_for_death_info", Value: "0"},
				corev1.EnvVar{Name: "RAY_gcs_server_request_timeout_seconds", Value: "5"},
				corev1.EnvVar{Name: "RAY_SERVE_KV_TIMEOUT_S", Value: "5"}))
		}},
	}
}

// healthAsked waits until the Serve proxy of a Pod was asked for its health so many times more.
func (e *env) healthAsked(pod *corev1.Pod, times int) {
	e.t.Helper()
	proxy := e.nodes.Proxy(pod)
	before := proxy.Checks()
	e.soon(func() any { return proxy.Checks() - before }).Should(BeNumerically(">=", times), "the proxy is not asked any more")
}

// haveLabel waits until the label of a head by which Services find it has a value.
func (e *env) haveLabel(head *corev1.Pod, value string) {
	e.t.Helper()
	e.soon(func() any {
		now := &corev1.Pod{}
		e.Expect(e.read(now, head.Name)).To(Succeed())
		return now.Labels[rayv1.LabelServe]
	}).Should(Equal(value))
}

func serviceCases() []Case {
	serve := corev1.ContainerPort{Name: "serve", ContainerPort: 9000}
	return []Case{
		{Row: 31, Kind: same, Given: "port serve of the head is 9000", When: "the service serves", Then: "port 9000 in the serve Service, and the proxy is asked there", Run: func(e *env) {
			service := e.ready(noWorkers, headPorts(serve))
			e.Expect(ports("llm-serve-svc", e)).To(Equal(map[string]int32{"serve": 9000}))
			e.Expect(e.nodes.Proxy(e.head(e.active(service).Name)).Checks()).To(BeNumerically(">", 0))
		}},
		{Row: 32, Kind: same, Given: "the head has ports serve and serve-grpc", When: "the service serves", Then: "both in the serve Service", Run: func(e *env) {
			e.ready(noWorkers, headPorts(serve, corev1.ContainerPort{Name: "serve-grpc", ContainerPort: 9001}))
			e.Expect(ports("llm-serve-svc", e)).To(Equal(map[string]int32{"serve": 9000, "serve-grpc": 9001}))
		}},
		{Row: 33, Kind: same, Given: "serveService with a name, labels and a type", When: "the service serves", Then: "a Service of that name, type and labels, with the operator's labels and selector, in the namespace of the RayService", Run: func(e *env) {
			service := e.ready(serveService(func(s *corev1.Service) {
				s.Name, s.Namespace = "mine", "elsewhere"
				s.Labels = map[string]string{"team": "a", "ray.io/serve": "no"}
				s.Annotations = map[string]string{"note": "b"}
				s.Spec.Type, s.Spec.Selector = corev1.ServiceTypeNodePort, map[string]string{"app": "other"}
			}))
			mine := e.service("mine")
			e.Expect(mine.Spec.Type).To(Equal(corev1.ServiceTypeNodePort))
			e.Expect(mine.Labels).To(And(HaveKeyWithValue("team", "a"), HaveKeyWithValue("ray.io/serve", "llm-serve")))
			e.Expect(mine.Annotations).To(HaveKeyWithValue("note", "b"))
			e.Expect(mine.Spec.Selector).To(Equal(map[string]string{"ray.io/cluster": e.active(service).Name, "ray.io/serve": "true"}))
			e.Expect(e.read(&corev1.Service{}, "llm-serve-svc")).ToNot(Succeed())
		}},
		{Row: 34, Kind: same, Given: "serveService has port serve with an appProtocol", When: "the service serves", Then: "the port keeps it", Run: func(e *env) {
			h2c := "kubernetes.io/h2c"
			e.ready(serveService(func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{{Name: "serve", Port: 8000, AppProtocol: &h2c}}
			}))
			all := e.service("llm-serve-svc").Spec.Ports
			e.Expect(all).To(HaveLen(1))
			e.Expect(all[0].AppProtocol).To(HaveValue(Equal(h2c)))
		}},
		{Row: 35, Kind: same, Given: "the head has no port for Serve, there is no serveService", When: "all applications run", Then: "a head Service and no serve Service; the cluster does not become active",
			How: "and condition Stalled says which port is missing", Run: noServePort},
	}
}

// serveService sets the template of the Service that leads to Serve.
func serveService(edit func(*corev1.Service)) edit {
	return func(s *rayv1.RayService) {
		s.Spec.ServeService = &corev1.Service{}
		edit(s.Spec.ServeService)
	}
}

// ports are the numbers of a Service's ports by name.
func ports(service string, e *env) map[string]int32 {
	e.t.Helper()
	found := map[string]int32{}
	for _, port := range e.service(service).Spec.Ports {
		found[port.Name] = port.Port
	}
	return found
}

func noServePort(e *env) {
	service := e.given(noWorkers, headPorts())
	cluster := e.pending(service)
	e.follow(service, func(s *rayv1.RayServiceStatuses) any { return s.PendingServiceStatus.ApplicationStatuses["app"].Status }).
		Should(Equal("RUNNING"))
	e.soon(func() any { return e.leadsTo("llm-head-svc") }).Should(Equal(cluster.Name))
	e.Expect(e.have(service, "Stalled", metav1.ConditionTrue, "ServiceMissing")).To(ContainSubstring("serve"))
	e.asked(e.ray(cluster.Name), 2)
	e.rest()
	e.refresh(service)
	e.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(BeEmpty())
	e.Expect(service.Status.PendingServiceStatus.RayClusterName).To(Equal(cluster.Name))
	e.Expect(e.read(&corev1.Service{}, "llm-serve-svc")).ToNot(Succeed())
}
