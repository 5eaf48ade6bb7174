package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// notReady says that the head is not ready.
func notReady(s *Snapshot) {
	for i := range headOf(s).Status.Conditions[:2] {
		headOf(s).Status.Conditions[i].Status = corev1.ConditionFalse
	}
	headOf(s).Status.ContainerStatuses[0].Ready = false
}

// noEndpoint takes away the endpoints of the head Service.
func noEndpoint(s *Snapshot) { s.Slices[0].Endpoints[0].Conditions.Ready = ptr.To(false) }

func TestHeads(t *testing.T) {
	testWhole(t, map[string]wholeCase{
		"no head": {func(s *Snapshot) { s.Pods = s.Pods[1:] }, []string{"head-missing RayCluster demo"}},
		"no head, because a quota refuses it": {func(s *Snapshot) {
			s.Pods = s.Pods[1:]
			refusedWith(quotaText)(s)
		}, []string{"quota-exceeded RayCluster demo"}},
		"no head, because the operator is down": {func(s *Snapshot) {
			s.Pods = s.Pods[1:]
			s.Operator.Deployments[0].Status.AvailableReplicas = 0
		}, []string{"operator-unavailable Deployment ray-system/heliostat"}},
		"a head that ends": {func(s *Snapshot) { headOf(s).DeletionTimestamp = ptr.To(ago(-time.Minute)) }, nil},
		"a head that is not ready, and so has no endpoint": {func(s *Snapshot) {
			notReady(s)
			noEndpoint(s)
		}, nil},
		"a head that starts": {func(s *Snapshot) {
			notReady(s)
			headOf(s).Status.ContainerStatuses[0].State = runningSince(2 * time.Minute)
		}, nil},
		"a head that gets its image": {func(s *Snapshot) {
			notReady(s)
			headOf(s).Status.ContainerStatuses[0].State = waiting("ContainerCreating", "")
		}, nil},
		"a head whose submitter has ended": {func(s *Snapshot) {
			notReady(s)
			headOf(s).Status.ContainerStatuses[0].Ready = true
			noEndpoint(s)
		}, nil},
		"a head that is not ready because its application is sick": {func(s *Snapshot) {
			notReady(s)
			s.Service.Status.ActiveServiceStatus.ApplicationStatuses["default"] = rayv1.AppStatus{Status: rayv1.AppStatusDeployFailed}
		}, []string{"serve-app-unhealthy RayService chat"}},
		"a head that is in trouble itself, and workers that wait for it": {func(s *Snapshot) {
			notReady(s)
			noEndpoint(s)
			headOf(s).Status.ContainerStatuses[0].State = waiting("CrashLoopBackOff", "")
			waits(s)
			s.Dashboards["demo"] = Dashboard{Error: "no answer"}
		}, nil},
		"a dashboard that does not answer": {func(s *Snapshot) { s.Dashboards["demo"] = Dashboard{Error: "no answer"} }, []string{"dashboard-silent RayCluster demo"}},
		"a dashboard that the user may not ask": {func(s *Snapshot) {
			s.Dashboards["demo"] = Dashboard{Error: `services "demo-head-svc:dashboard" is forbidden: User "me" cannot get resource`}
		}, nil},
	})
}

func TestHeadServices(t *testing.T) {
	service := func(change func(*corev1.Service)) func(*Snapshot) { return func(s *Snapshot) { change(s.Services[0]) } }
	address := func(s *corev1.Service) { s.Spec.ClusterIP = "10.1.1.1" }
	testWhole(t, map[string]wholeCase{
		"none": {func(s *Snapshot) { s.Services = s.Services[1:] }, []string{"head-service-missing Service demo-head-svc"}},
		"one of another name": {func(s *Snapshot) {
			s.Services[0].Name, s.Services[0].Labels[rayv1.LabelNodeType] = "front", rayv1.NodeTypeHead
			s.Slices[0].Labels["kubernetes.io/service-name"] = "front"
		}, nil},
		"none that could be read": {func(s *Snapshot) { s.Services = nil }, nil},
		"that of somebody else":   {service(func(s *corev1.Service) { s.OwnerReferences[0].UID = types.UID("other") }), []string{"head-service-foreign Service demo-head-svc"}},
		"that of somebody else, as the operator says": {func(s *Snapshot) {
			s.Services[0].OwnerReferences[0].UID = types.UID("other")
			set(&demo(s).Status.Conditions, rayv1.ConditionNameCollision, "True", rayv1.ReasonNameCollision, "the cluster needs Service demo-head-svc")
		}, []string{"name-collision RayCluster demo"}},
		"one that nobody owns": {service(func(s *corev1.Service) { s.OwnerReferences = nil }), nil},
		"one that nobody owns and that looks otherwise": {func(s *Snapshot) {
			s.Services[0].OwnerReferences, s.Services[0].Spec.Selector, s.Services[0].Spec.Ports = nil, map[string]string{"a": "b"}, s.Services[0].Spec.Ports[:1]
			noEndpoint(s)
		}, nil},
		"a selector that misses the head, and so no endpoint": {func(s *Snapshot) {
			s.Services[0].Spec.Selector[rayv1.LabelNodeType] = "boss"
			noEndpoint(s)
		}, []string{"head-service-selector Service demo-head-svc"}},
		"no endpoint for a head that is ready": {noEndpoint, []string{"service-no-endpoints Service demo-head-svc"}},
		"no endpoint for a head that is ready just now": {func(s *Snapshot) {
			noEndpoint(s)
			headOf(s).Status.Conditions[0].LastTransitionTime = ago(10 * time.Second)
		}, nil},
		"EndpointSlices that could not be read": {func(s *Snapshot) { s.Slices = nil }, nil},
		"a dashboard on another port": {func(s *Snapshot) {
			demo(s).Spec.HeadGroupSpec.RayStartParams["dashboard-port"] = "9000"
		}, []string{"head-service-port Service demo-head-svc"}},
		"a GCS on another port behind a headless Service": {func(s *Snapshot) { demo(s).Spec.HeadGroupSpec.RayStartParams["port"] = "6380" }, nil},
		"a GCS on another port behind a Service with an address": {func(s *Snapshot) {
			address(s.Services[0])
			demo(s).Spec.HeadGroupSpec.RayStartParams["port"] = "6380"
		}, []string{"head-service-port Service demo-head-svc"}},
		"no port for the GCS on a Service with an address": {service(func(s *corev1.Service) {
			address(s)
			s.Spec.Ports = s.Spec.Ports[1:]
		}), []string{"head-service-port Service demo-head-svc"}},
		"a Service with an address": {service(address), nil},
		"a name that the Pod does not declare": {service(func(s *corev1.Service) {
			s.Spec.Ports[1].TargetPort = intstr.FromString("board")
		}), []string{"head-service-port Service demo-head-svc"}},
		"a command of the user's own": {func(s *Snapshot) {
			demo(s).Spec.HeadGroupSpec.RayStartParams["dashboard-port"] = "9000"
			demo(s).Annotations = map[string]string{rayv1.AnnotationOverwriteContainerCommand: "true"}
		}, nil},
	})
}

func TestWaitingWorkers(t *testing.T) {
	policy := func(change func(*networkingv1.NetworkPolicySpec)) func(*Snapshot) {
		return func(s *Snapshot) {
			waits(s)
			change(&s.Policies[0].Spec)
		}
	}
	logs := func(text string) func(*Snapshot) {
		return func(s *Snapshot) {
			waits(s)
			s.Logs = map[string]string{LogKey("demo-small-worker", "wait-gcs-ready"): "12:00:01 first\n12:00:02 " + text + "\nlast"}
		}
	}
	proxy := func(pod *corev1.Pod) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "istio-proxy"})
	}
	number := func(port int32) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(port))}}
	}
	unknown := []string{"worker-not-connected Pod demo-small-worker"}
	gcs := []string{"policy-blocks-gcs NetworkPolicy demo-only"}
	testWhole(t, map[string]wholeCase{
		"for nothing that is known": {waits, unknown},
		"not for long": {func(s *Snapshot) {
			waits(s)
			workerOf(s).Status.InitContainerStatuses[0].State = runningSince(time.Minute)
		}, nil},
		"for a head that is ready just now": {func(s *Snapshot) {
			waits(s)
			headOf(s).Status.Conditions[0].LastTransitionTime = ago(time.Minute)
		}, nil},
		"no ingress at all":       {policy(func(p *networkingv1.NetworkPolicySpec) { p.Ingress = nil }), gcs},
		"ingress on another port": {policy(func(p *networkingv1.NetworkPolicySpec) { p.Ingress[0].Ports = number(8265) }), gcs},
		"ingress on a range of ports": {policy(func(p *networkingv1.NetworkPolicySpec) {
			p.Ingress[0].Ports = number(1024)
			p.Ingress[0].Ports[0].EndPort = ptr.To[int32](65535)
		}), unknown},
		"ingress from others": {policy(func(p *networkingv1.NetworkPolicySpec) {
			p.Ingress[0].From[0].PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
		}), gcs},
		"ingress from addresses": {policy(func(p *networkingv1.NetworkPolicySpec) {
			p.Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.168.0.0/16"}}}
		}), gcs},
		"ingress from the worker's address": {policy(func(p *networkingv1.NetworkPolicySpec) {
			p.Ingress[0].From = []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}
		}), unknown},
		"ingress from another namespace": {policy(func(p *networkingv1.NetworkPolicySpec) {
			p.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "other"}}
		}), gcs},
		"no ingress, and another policy that allows it": {func(s *Snapshot) {
			waits(s)
			other := s.Policies[0].DeepCopy()
			other.Name, s.Policies[0].Spec.Ingress = "other", nil
			s.Policies = append(s.Policies, other)
		}, unknown},
		"no egress": {policy(func(p *networkingv1.NetworkPolicySpec) { p.Egress = nil }), gcs},
		"no egress to the name server": {policy(func(p *networkingv1.NetworkPolicySpec) { p.Egress = p.Egress[:1] }),
			[]string{"policy-blocks-dns NetworkPolicy demo-only"}},
		"egress to other namespaces": {policy(func(p *networkingv1.NetworkPolicySpec) {
			p.Egress[1] = networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}}
		}), unknown},
		"policies that nobody waits behind": {func(s *Snapshot) { s.Policies[0].Spec.Ingress = nil }, nil},
		"a name that is not found":          {logs("socket.gaierror: [Errno -2] Name or service not known"), []string{"name-not-resolved Pod demo-small-worker"}},
		"a name server that is silent":      {logs("Temporary failure in name resolution"), []string{"name-not-resolved Pod demo-small-worker"}},
		"another token":                     {logs("grpc status UNAUTHENTICATED: InvalidAuthToken"), []string{"token-mismatch Pod demo-small-worker"}},
		"another token than nobody asks for": {func(s *Snapshot) {
			logs("grpc status UNAUTHENTICATED: InvalidAuthToken")(s)
			demo(s).Spec.AuthOptions, s.Ingresses = nil, nil
		}, unknown},
		"a certificate": {func(s *Snapshot) {
			logs("ssl.SSLError: CERTIFICATE_VERIFY_FAILED")(s)
			workerOf(s).Spec.Containers[0].Env = []corev1.EnvVar{{Name: "RAY_USE_TLS", Value: "1"}}
		}, []string{"tls-mismatch Pod demo-small-worker"}},
		"the certificate of somebody else": {logs("ssl.SSLError: CERTIFICATE_VERIFY_FAILED"), unknown},
		"a name that is not found before the head is ready": {func(s *Snapshot) {
			logs("socket.gaierror: [Errno -2] Name or service not known")(s)
			headOf(s).Status.Conditions[0].LastTransitionTime = ago(time.Minute)
		}, nil},
		"a name that a submitter does not find": {func(s *Snapshot) {
			s.Pods = append(s.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train-x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-job-submitter"}}}})
			s.Logs = map[string]string{LogKey("train-x", "ray-job-submitter"): "Name or service not known"}
		}, nil},
		"a log that says nothing": {logs("waiting; token authentication is disabled"), unknown},
		"a mesh on one side": {func(s *Snapshot) {
			waits(s)
			proxy(headOf(s))
		}, []string{"mesh-blocks Pod demo-small-worker"}},
		"a mesh on both sides that cuts connections": {func(s *Snapshot) {
			logs("recv failure: Connection reset by peer")(s)
			proxy(headOf(s))
			proxy(workerOf(s))
		}, []string{"mesh-blocks Pod demo-small-worker"}},
		"a mesh on both sides": {func(s *Snapshot) {
			waits(s)
			proxy(headOf(s))
			proxy(workerOf(s))
		}, unknown},
		"a mesh and workers that work": {func(s *Snapshot) { proxy(headOf(s)) }, nil},
		"a Service that leads nowhere": {func(s *Snapshot) {
			waits(s)
			noEndpoint(s)
		}, []string{"service-no-endpoints Service demo-head-svc"}},
	})
}

func TestPortsOfPolicies(t *testing.T) {
	tcp, udp := corev1.ProtocolTCP, corev1.ProtocolUDP
	server := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "gcs-server", ContainerPort: 6379}}}}}}
	port := func(p intstr.IntOrString, protocol *corev1.Protocol) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Port: &p, Protocol: protocol}
	}
	for name, tc := range map[string]struct {
		traffic traffic
		port    networkingv1.NetworkPolicyPort
		want    bool
	}{
		"any port":               {traffic{server: server, port: 6379}, networkingv1.NetworkPolicyPort{}, true},
		"any port of a protocol": {traffic{server: server, port: 6379}, networkingv1.NetworkPolicyPort{Protocol: &udp}, false},
		"the number":             {traffic{server: server, port: 6379}, port(intstr.FromInt32(6379), &tcp), true},
		"the name":               {traffic{server: server, port: 6379}, port(intstr.FromString("gcs-server"), nil), true},
		"another name":           {traffic{server: server, port: 6379}, port(intstr.FromString("dashboard"), nil), false},
		"a name of who knows":    {traffic{port: 53}, port(intstr.FromString("dns"), &udp), true},
		"the name server by UDP": {traffic{port: 53}, port(intstr.FromInt32(53), &udp), true},
	} {
		if got := tc.traffic.at(tc.port); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestDirectionsOfPolicies(t *testing.T) {
	ingress := networkingv1.NetworkPolicy{}
	both := networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}}}
	if got := directions(&ingress); len(got) != 1 || got[0] != networkingv1.PolicyTypeIngress {
		t.Errorf("without rules: got %v", got)
	}
	if got := directions(&both); len(got) != 2 {
		t.Errorf("with a rule for egress: got %v", got)
	}
}
