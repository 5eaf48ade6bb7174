package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func tcpPort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP, AppProtocol: ptr.To("tcp")}
}

func usualServicePorts() []corev1.ServicePort {
	return []corev1.ServicePort{
		tcpPort("client", 10001), tcpPort("dashboard", 8265), tcpPort("gcs-server", 6379), tcpPort("metrics", 8080),
		tcpPort("serve", 8000),
	}
}

func fiveLabels() map[string]string {
	return map[string]string{
		"ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/identifier": "demo-head",
		"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
	}
}

func serviceOfDemo(name string, labels map[string]string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", Labels: labels, OwnerReferences: ownedByDemo()},
		Spec:       spec,
	}
}

func TestHeadServiceOfAPlainCluster(t *testing.T) {
	want := serviceOfDemo("demo-head-svc", fiveLabels(), corev1.ServiceSpec{
		Selector: fiveLabels(), ClusterIP: "None", PublishNotReadyAddresses: true, Ports: usualServicePorts(),
	})
	if diff := cmp.Diff(want, HeadService(demoCluster(), DefaultSettings())); diff != "" {
		t.Errorf("head Service (-want +got):\n%s", diff)
	}
}

func TestPortsOfTheHeadService(t *testing.T) {
	tests := map[string]struct {
		declared []corev1.ContainerPort
		custom   []corev1.ServicePort
		want     []corev1.ServicePort
	}{
		"given no ports, Ray's usual ones": {want: usualServicePorts()},
		"given declared ports, those and the one for metrics, sorted by name": {
			declared: []corev1.ContainerPort{{Name: "gcs-server", ContainerPort: 6380}, {Name: "dashboard", ContainerPort: 8300}, {ContainerPort: 9999}},
			want:     []corev1.ServicePort{tcpPort("9999-port", 9999), tcpPort("dashboard", 8300), tcpPort("gcs-server", 6380), tcpPort("metrics", 8080)},
		},
		"given a declared port for metrics, no other one": {
			declared: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9090}},
			want:     []corev1.ServicePort{tcpPort("metrics", 9090)},
		},
		"given two declared ports of one number, the name that clients know": {
			declared: []corev1.ContainerPort{{Name: "web", ContainerPort: 8265}, {Name: "dashboard", ContainerPort: 8265}, {Name: "metrics", ContainerPort: 1}},
			want:     []corev1.ServicePort{tcpPort("dashboard", 8265), tcpPort("metrics", 1)},
		},
		"given another declared port of the number for metrics, only that one": {
			declared: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}},
			want:     []corev1.ServicePort{tcpPort("web", 8080)},
		},
		"given a Service of the user, its ports first and no port twice": {
			custom: []corev1.ServicePort{{Name: "extra", Port: 1234}, {Name: "dashboard", Port: 8265}, {Name: "ui", Port: 8000}},
			want: []corev1.ServicePort{
				{Name: "extra", Port: 1234}, {Name: "dashboard", Port: 8265}, {Name: "ui", Port: 8000},
				tcpPort("client", 10001), tcpPort("gcs-server", 6379), tcpPort("metrics", 8080),
			},
		},
		"given a Service of the user with a nameless port, it gets a name": {
			declared: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 1}},
			custom:   []corev1.ServicePort{{Port: 1234, Protocol: corev1.ProtocolUDP}},
			want:     []corev1.ServicePort{{Name: "1234-port", Port: 1234, Protocol: corev1.ProtocolUDP}, tcpPort("metrics", 1)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(func(c *rayv1.RayCluster) {
				headContainer(c).Ports = test.declared
				if test.custom != nil {
					c.Spec.HeadGroupSpec.HeadService = &corev1.Service{Spec: corev1.ServiceSpec{Ports: test.custom}}
				}
			})
			if diff := cmp.Diff(test.want, HeadService(cluster, DefaultSettings()).Spec.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeadServiceOfTheUser(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		headContainer(c).Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 1}}
		c.Spec.HeadServiceAnnotations = map[string]string{"a": "spec", "b": "spec"}
		c.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeNodePort
		c.Spec.HeadGroupSpec.HeadService = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Name: "mine", Namespace: "other", ResourceVersion: "7",
				Labels:      map[string]string{"ray.io/cluster": "x", "own": "label"},
				Annotations: map[string]string{"a": "own", "c": "own"},
			},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"z": "z"}, Type: corev1.ServiceTypeLoadBalancer},
		}
	})
	want := serviceOfDemo("mine", overlay(fiveLabels(), map[string]string{"own": "label"}), corev1.ServiceSpec{
		Selector: fiveLabels(), Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{tcpPort("metrics", 1)},
	})
	want.Annotations = map[string]string{"a": "spec", "b": "spec", "c": "own"}
	if diff := cmp.Diff(want, HeadService(cluster, DefaultSettings())); diff != "" {
		t.Errorf("head Service (-want +got):\n%s", diff)
	}
	if got := envOf(workerOf(cluster).Spec.Containers[0])["FQ_RAY_IP"]; got != "mine.ml.svc.cluster.local" {
		t.Errorf("workers look for the head at %s", got)
	}
}

func TestAddressOfTheHeadService(t *testing.T) {
	tests := map[string]struct {
		serviceType corev1.ServiceType
		clusterIP   bool
		headless    bool
	}{
		"given no type, it is headless":                      {headless: true},
		"given ClusterIP, it is headless":                    {serviceType: corev1.ServiceTypeClusterIP, headless: true},
		"given NodePort, it has an address":                  {serviceType: corev1.ServiceTypeNodePort},
		"given the operator's setting, it has an address":    {clusterIP: true},
		"given ClusterIP and the setting, it has an address": {serviceType: corev1.ServiceTypeClusterIP, clusterIP: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.ServiceType = test.serviceType })
			settings := DefaultSettings()
			settings.HeadClusterIPService = test.clusterIP
			spec := HeadService(cluster, settings).Spec
			if got := spec.ClusterIP == "None"; got != test.headless || spec.PublishNotReadyAddresses != test.headless || spec.Type != test.serviceType {
				t.Errorf("spec is %+v, want headless: %v", spec, test.headless)
			}
		})
	}
}

// When the submitter beside the head has ended, the head Pod is not ready any more, but Ray has yet to be asked.
func TestHeadOfASidecarJobIsFoundWhenItIsNotReady(t *testing.T) {
	for name, change := range map[string]func(*rayv1.RayCluster, *Settings){
		"given no type":                func(*rayv1.RayCluster, *Settings) {},
		"given the operator's setting": func(_ *rayv1.RayCluster, s *Settings) { s.HeadClusterIPService = true },
		"given a Service of the user": func(c *rayv1.RayCluster, _ *Settings) {
			c.Spec.HeadGroupSpec.HeadService = &corev1.Service{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := DefaultSettings()
			cluster := demoCluster(func(c *rayv1.RayCluster) {
				c.Labels = map[string]string{rayv1.LabelJobSubmissionMode: string(rayv1.SidecarMode)}
				change(c, &settings)
			})
			if !HeadService(cluster, settings).Spec.PublishNotReadyAddresses {
				t.Error("the Service does not lead to a head that is not ready")
			}
		})
	}
}

func TestHeadServiceSelectsTheHead(t *testing.T) {
	overrides := map[string]string{
		"app.kubernetes.io/name": "my", "ray.io/identifier": "x", "app.kubernetes.io/created-by": "x", "ray.io/cluster": "x",
	}
	tests := map[string]func(*rayv1.RayCluster){
		"given labels in the template": func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Labels = overrides },
		"given labels of the group":    func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Labels = overrides },
		"given a Service with a selector": func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.HeadService = &corev1.Service{Spec: corev1.ServiceSpec{Selector: overrides}}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(change)
			head, service := headOf(cluster), HeadService(cluster, DefaultSettings())
			if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(head.Labels)) {
				t.Errorf("selector %v does not select a Pod with the labels %v", service.Spec.Selector, head.Labels)
			}
			if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(workerOf(cluster).Labels)) {
				t.Errorf("selector %v selects a worker", service.Spec.Selector)
			}
			if len(service.Spec.Selector) != 5 || service.Spec.Selector["app.kubernetes.io/name"] != head.Labels["app.kubernetes.io/name"] {
				t.Errorf("selector is %v, want five labels with the application's name", service.Spec.Selector)
			}
		})
	}
}

func TestFollowHead(t *testing.T) {
	old := headOf(demoCluster())
	old.Labels["ray.io/identifier"] = "made-by-another-operator"
	service := HeadService(demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Labels = map[string]string{"app.kubernetes.io/name": "new"}
	}), DefaultSettings())
	FollowHead(service, nil)
	if service.Spec.Selector["app.kubernetes.io/name"] != "new" {
		t.Errorf("without a head the selector is %v, want that of the spec", service.Spec.Selector)
	}
	FollowHead(service, old)
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(old.Labels)) {
		t.Errorf("selector %v does not select a Pod with the labels %v", service.Spec.Selector, old.Labels)
	}
}

func TestHeadlessWorkerService(t *testing.T) {
	if got := HeadlessWorkerService(demoCluster()); got != nil {
		t.Errorf("given single hosts, the Service is %v, want none", got)
	}
	cluster := demoCluster(func(c *rayv1.RayCluster) { groupA(c).NumOfHosts = 2 })
	want := serviceOfDemo("demo-headless", map[string]string{"ray.io/headless-worker-svc": "demo"}, corev1.ServiceSpec{
		ClusterIP: "None", PublishNotReadyAddresses: true,
		Selector: map[string]string{"ray.io/cluster": "demo", "ray.io/node-type": "worker"},
	})
	if diff := cmp.Diff(want, HeadlessWorkerService(cluster)); diff != "" {
		t.Errorf("headless Service (-want +got):\n%s", diff)
	}
}

func TestServeService(t *testing.T) {
	annotated := func(c *rayv1.RayCluster) { c.Annotations = map[string]string{"ray.io/enable-serve-service": "true"} }
	port := func(name string, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: number, Protocol: corev1.ProtocolTCP}
	}
	tests := map[string]struct {
		cluster *rayv1.RayCluster
		want    []corev1.ServicePort
		wantErr string
	}{
		"given no annotation, there is none": {cluster: demoCluster()},
		"given another value, there is none": {cluster: demoCluster(func(c *rayv1.RayCluster) {
			c.Annotations = map[string]string{"ray.io/enable-serve-service": "True"}
		})},
		"given a cluster of a RayService, whose controller makes one, there is none (RS-W28)": {cluster: demoCluster(annotated, func(c *rayv1.RayCluster) {
			c.Labels = map[string]string{"ray.io/originated-from-crd": "RayService"}
		})},
		"given no declared ports, it has the usual port": {cluster: demoCluster(annotated), want: []corev1.ServicePort{port("serve", 8000)}},
		"given several ports for Serve, it has all of them": {
			cluster: demoCluster(annotated, func(c *rayv1.RayCluster) {
				headContainer(c).Ports = []corev1.ContainerPort{
					{Name: "serve-grpc", ContainerPort: 9000}, {Name: "server", ContainerPort: 1}, {Name: "serve", ContainerPort: 8000},
				}
			}),
			want: []corev1.ServicePort{port("serve", 8000), port("serve-grpc", 9000)},
		},
		"given no port for Serve, the error says what to add": {
			cluster: demoCluster(annotated, func(c *rayv1.RayCluster) {
				headContainer(c).Ports = []corev1.ContainerPort{{Name: "gcs-server", ContainerPort: 6379}}
			}),
			wantErr: `add a port named "serve" with containerPort 8000`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ServeService(test.cluster, DefaultSettings())
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error is %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
			var want *corev1.Service
			if test.want != nil {
				want = serviceOfDemo("demo-serve-svc", map[string]string{
					"ray.io/originated-from-cr-name": "demo", "ray.io/originated-from-crd": "RayCluster", "ray.io/serve": "demo-serve",
				}, corev1.ServiceSpec{Selector: map[string]string{"ray.io/cluster": "demo"}, Ports: test.want})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Service (-want +got):\n%s", diff)
			}
		})
	}
}
