package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func withIngress(options *rayv1.IngressOptions) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.EnableIngress, c.Spec.HeadGroupSpec.IngressOptions = ptr.To(true), options
	}
}

func TestHeadIngress(t *testing.T) {
	annotations := func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{
			"kubernetes.io/ingress.class": "nginx", "nginx.ingress.kubernetes.io/rewrite-target": "/$1", "cert-manager.io/issuer": "i",
			"kubectl.kubernetes.io/last-applied-configuration": "{}", "ray.io/ft-enabled": "false", "heliostat.io/applied": "x",
			"argocd.argoproj.io/tracking-id": "t", "meta.helm.sh/release-name": "r",
		}
	}
	tls := []networkingv1.IngressTLS{{Hosts: []string{"ray.example"}, SecretName: "s"}}
	for name, tc := range map[string]struct {
		cluster *rayv1.RayCluster
		// want is host, path, path type, Service, port and class.
		want        []any
		tls         []networkingv1.IngressTLS
		annotations map[string]string
	}{
		"given no options, it leads from / to the dashboard": {cluster: demoCluster(withIngress(nil)),
			want: []any{"", "/", "Prefix", "demo-head-svc", int32(8265), ""}},
		"given options, they count": {
			cluster: demoCluster(withIngress(&rayv1.IngressOptions{Host: ptr.To("ray.example"), Path: ptr.To("/x"),
				PathType: ptr.To(rayv1.IngressPathType("Exact")), TLS: tls})),
			want: []any{"ray.example", "/x", "Exact", "demo-head-svc", int32(8265), ""}, tls: tls},
		"given a port and a Service of the user, it leads there": {
			cluster: demoCluster(withIngress(nil), func(c *rayv1.RayCluster) {
				headContainer(c).Ports = []corev1.ContainerPort{{Name: "dashboard", ContainerPort: 9000}}
				c.Spec.HeadGroupSpec.HeadService = &corev1.Service{}
				c.Spec.HeadGroupSpec.HeadService.Name = "mine"
			}), want: []any{"", "/", "Prefix", "mine", int32(9000), ""}},
		"given annotations, the class is a field and those for others stay away": {cluster: demoCluster(withIngress(nil), annotations),
			want:        []any{"", "/", "Prefix", "demo-head-svc", int32(8265), "nginx"},
			annotations: map[string]string{"nginx.ingress.kubernetes.io/rewrite-target": "/$1", "cert-manager.io/issuer": "i"}},
	} {
		t.Run(name, func(t *testing.T) {
			ingress := entrance(tc.cluster, DefaultSettings()).(*networkingv1.Ingress)
			rule := ingress.Spec.Rules[0]
			path := rule.HTTP.Paths[0]
			got := []any{rule.Host, path.Path, string(*path.PathType), path.Backend.Service.Name, path.Backend.Service.Port.Number,
				ptr.Deref(ingress.Spec.IngressClassName, "")}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("ingress (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.tls, ingress.Spec.TLS); d != "" {
				t.Errorf("TLS (-want +got):\n%s", d)
			}
			if len(tc.annotations)+len(ingress.Annotations) > 0 {
				if d := cmp.Diff(tc.annotations, ingress.Annotations); d != "" {
					t.Errorf("annotations (-want +got):\n%s", d)
				}
			}
			if ingress.Name != "demo-head-ingress" || ingress.Labels["ray.io/identifier"] != "demo-head" {
				t.Errorf("name %s, labels %v", ingress.Name, ingress.Labels)
			}
		})
	}
}

func TestRouteOnOpenShift(t *testing.T) {
	settings := DefaultSettings()
	settings.Routes = true
	if entrance(demoCluster(), settings) != nil {
		t.Error("a cluster that does not ask for it gets a Route")
	}
	route := entrance(demoCluster(withIngress(nil)), settings).(*unstructured.Unstructured)
	want := map[string]any{
		"to":             map[string]any{"kind": "Service", "name": "demo-head-svc", "weight": int64(100)},
		"port":           map[string]any{"targetPort": int64(8265)},
		"wildcardPolicy": "None",
	}
	if d := cmp.Diff(want, route.Object["spec"]); d != "" {
		t.Errorf("route (-want +got):\n%s", d)
	}
	if route.GetName() != "demo-head-route" || route.GetKind() != "Route" || route.GetAPIVersion() != "route.openshift.io/v1" {
		t.Errorf("it is %s %s %s", route.GetAPIVersion(), route.GetKind(), route.GetName())
	}
	long := headRoute(demoCluster(func(c *rayv1.RayCluster) {
		c.Name, c.Namespace = strings.Repeat("c", 53), strings.Repeat("n", 30)
	}))
	if label := long.GetName() + "-" + long.GetNamespace(); len(label) > 63 {
		t.Errorf("OpenShift would make the label %s of %d characters", label, len(label))
	}
}

func TestAnEntranceThatLeadsNowhereIsTold(t *testing.T) {
	w := demo(func(w *world) {
		withIngress(nil)(w.Cluster)
		headContainer(w.Cluster).Ports = []corev1.ContainerPort{{Name: "gcs-server", ContainerPort: 6379}}
	})
	w.pass(planNow)
	if says := w.message(rayv1.ConditionValid); !strings.Contains(says, "enableIngress leads to port 8265") {
		t.Errorf("condition Valid says %q", says)
	}
}
