package integration

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/test/harness"
)

// longWait is longer than a worker may wait for a head that is ready.
var longWait = after(3 * time.Minute)

// waits makes RayCluster demo with a head that is ready and workers that wait for it, as behind a network that is not open.
func (s *scene) waits(edits ...func(*rayv1.RayCluster)) {
	s.t.Helper()
	s.cluster(edits...)
	s.SetPod(s.t, s.head(), harness.Ready)
	for _, worker := range s.workers() {
		s.SetPod(s.t, worker, waitsForGCS)
	}
	s.turn()
}

// waitsForGCS is a worker whose init container runs and does not end.
func waitsForGCS(pod *corev1.Pod) {
	harness.Waiting("ray-worker", "PodInitializing", "")(pod)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: ray.WaitForGCSContainer,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
}

// policy makes a NetworkPolicy for all Pods of the namespace.
func (s *scene) policy(spec networkingv1.NetworkPolicySpec) {
	s.make(&networkingv1.NetworkPolicy{ObjectMeta: s.meta("closed"), Spec: spec})
}

func beside(name string) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		pod := &c.Spec.HeadGroupSpec.Template.Spec
		pod.Containers = append(pod.Containers, corev1.Container{Name: name, Image: "proxy:1"})
	}
}

func connectionFaults() []fault {
	return []fault{
		{name: "a policy that lets nobody in", want: "policy-blocks-gcs", later: longWait, inject: func(s *scene) {
			s.policy(networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}})
			s.waits()
		}},
		{name: "a policy that lets workers reach only Ray", want: "policy-blocks-dns", later: longWait, inject: func(s *scene) {
			own := &metav1.LabelSelector{MatchLabels: map[string]string{rayv1.LabelCluster: "demo"}}
			s.policy(networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
				Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{PodSelector: own}}}}})
			s.waits()
		}},
		{name: "a mesh on one side only", want: "mesh-blocks", later: longWait, inject: func(s *scene) { s.waits(beside("istio-proxy")) }},
		{name: "a name server that does not answer", want: "name-not-resolved", later: longWait, inject: func(s *scene) {
			s.logs[ray.WaitForGCSContainer] = "getaddrinfo: Name or service not known"
			s.waits()
		}},
		{name: "a network that swallows packets", want: "worker-not-connected", later: longWait, inject: func(s *scene) { s.waits() }},
		{name: "a worker with an old token", want: "token-mismatch", inject: func(s *scene) {
			s.logs["ray-worker"] = "InvalidAuthToken: the token is not that of the cluster"
			s.ready(tokened)
			s.SetPod(s.t, s.workers()[0], crashes("ray-worker", 1))
		}},
		{name: "a certificate that nobody trusts", want: "tls-mismatch", inject: func(s *scene) {
			s.logs["ray-worker"] = "ssl_transport_security.cc: CERTIFICATE_VERIFY_FAILED"
			s.ready(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RAY_USE_TLS", Value: "1"}}
			})
			s.SetPod(s.t, s.workers()[0], crashes("ray-worker", 1))
		}, also: []string{"container-exits"}},
		{name: "a dashboard that does not answer", want: "dashboard-silent", later: longWait, inject: func(s *scene) {
			s.ready()
			s.dashboard("demo").Down()
		}},
		{name: "a declared port on which Ray does not listen", want: "head-service-port", later: longWait, inject: func(s *scene) {
			s.ready(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"dashboard-port": "9265"}
				c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: ray.PortNameDashboard, ContainerPort: 8265}}
			})
		}, also: []string{"spec-partly-served", "dashboard-silent"}},
		{name: "a controller of endpoints that does not run", want: "service-no-endpoints", later: longWait, inject: func(s *scene) {
			s.turn = func() { s.Kubelet(s.t, s.ns) }
			s.ready()
		}},
	}
}

// crashes is a container that ends again and again.
func crashes(container string, code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		harness.Waiting(container, "CrashLoopBackOff", "back-off 40s restarting failed container")(pod)
		for i := range pod.Status.ContainerStatuses {
			if c := &pod.Status.ContainerStatuses[i]; c.Name == container {
				c.RestartCount = 3
				c.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}
			}
		}
	}
}

func scalingFaults() []fault {
	autoscaler := func(change func(*corev1.ContainerStatus)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			for i := range pod.Status.ContainerStatuses {
				if pod.Status.ContainerStatuses[i].Name == ray.AutoscalerContainer {
					change(&pod.Status.ContainerStatuses[i])
				}
			}
		}
	}
	return []fault{
		{name: "autoscaling that came after the head", want: "autoscaler-missing", later: longWait, inject: func(s *scene) {
			cluster := s.ready()
			s.Edit(s.t, cluster, autoscaled)
			s.BecomesReady(s.t, cluster)
		}},
		{name: "a demand that no group fulfils", want: "autoscaler-cannot-fulfil", later: longWait, inject: func(s *scene) {
			s.logs[ray.AutoscalerContainer] = "Error: No available node types can fulfill resource request {'GPU': 8.0}"
			s.ready(autoscaled)
		}},
		{name: "an autoscaler that hangs", want: "autoscaler-silent", later: longWait, inject: func(s *scene) {
			s.logs[ray.AutoscalerContainer] = ""
			s.ready(autoscaled)
		}},
		{name: "an autoscaler that does not run", want: "autoscaler-not-ready", also: []string{"probe-failing"}, later: longWait, inject: func(s *scene) {
			s.ready(autoscaled)
			s.SetPod(s.t, s.head(), autoscaler(func(c *corev1.ContainerStatus) { c.Ready = false }))
		}},
		{name: "more replicas than the limit", want: "replicas-outside-limits", inject: func(s *scene) {
			s.ready(replicas(9))
		}},
		{name: "a tool that sets replicas back", want: "replicas-overwritten", later: longWait, inject: func(s *scene) {
			cluster := s.ready(autoscaled)
			// The API server's record is dated by hand, as nobody waits for minutes here.
			cluster.ManagedFields = append(cluster.ManagedFields, metav1.ManagedFieldsEntry{Manager: "argocd-controller", Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: "ray.io/v1", Time: &metav1.Time{Time: time.Now().Add(3 * time.Minute)}, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:workerGroupSpecs":{}}}`)})
			s.g.Expect(s.Update(s.t.Context(), cluster)).To(Succeed())
		}},
	}
}
