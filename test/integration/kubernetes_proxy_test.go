package integration

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
	"github.com/heliostat-io/heliostat/internal/operator"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// runThroughAPIServer starts an operator that has only the API server to reach dashboards by, and only the rights that the
// chart gives it then.
func runThroughAPIServer(t *testing.T, c harness.Cluster, ns string) {
	t.Helper()
	g := NewWithT(t)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "operator"}}
	text, err := os.ReadFile(filepath.Join("..", "..", "charts", "heliostat", "files", "rules.yaml"))
	g.Expect(err).ToNot(HaveOccurred())
	g.Expect(yaml.Unmarshal(text, &role.Rules)).To(Succeed())
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"create", "get", "update"}})
	g.Expect(c.Create(t.Context(), role)).To(Succeed())
	g.Expect(c.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "proxied-in-" + ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	})).To(Succeed())
	cfg, err := config.Parse([]string{"--metrics-addr=0", "--health-probe-bind-address=0", "--watch-namespace=" + ns,
		"--enable-leader-election=false", "--use-kubernetes-proxy"}, func(string) string { return "" }, os.ReadFile)
	g.Expect(err).ToNot(HaveOccurred())
	connection := rest.CopyConfig(c.REST)
	connection.Wrap(func(next http.RoundTripper) http.RoundTripper { return as{user: "proxied-in-" + ns, next: next} })
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := operator.Run(ctx, cfg, operator.Options{REST: connection, Identity: "only", Namespace: ns, Version: "test",
			Registerer: prometheus.NewRegistry(), Log: log.Log}); err != nil {
			t.Errorf("operator: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// listen serves a dashboard where the API server agrees to proxy to, which the loopback address is not.
func listen(t *testing.T, ray http.Handler) *net.TCPAddr {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		ip := address.(*net.IPNet).IP
		if !ip.IsGlobalUnicast() || ip.To4() == nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: ray}
		go server.Serve(listener)
		t.Cleanup(func() { server.Close() })
		return listener.Addr().(*net.TCPAddr)
	}
	t.Fatalf("this machine has no address but its own: %v", addresses)
	return nil
}

// lead gives a Service an endpoint. The API server proxies to addresses of Pods only, so there is a Pod of that address.
func lead(t *testing.T, c harness.Cluster, ns, service string, to *net.TCPAddr) {
	t.Helper()
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "listener"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "listener", Image: "none"}}}}
	g.Expect(c.Create(t.Context(), pod)).To(Succeed())
	c.SetPod(t, pod, harness.Ready, func(pod *corev1.Pod) {
		pod.Status.PodIP, pod.Status.PodIPs = to.IP.String(), []corev1.PodIP{{IP: to.IP.String()}}
	})
	g.Expect(c.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: ns, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{to.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: pod.Name}}},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("dashboard"), Port: ptr.To(int32(to.Port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	})).To(Succeed())
}

// reaches waits until the job is in the state, with the kubelet at work meanwhile.
func reaches(t *testing.T, g Gomega, c harness.Cluster, job *rayv1.RayJob, want rayv1.JobDeploymentStatus) {
	t.Helper()
	g.Eventually(func() rayv1.JobDeploymentStatus {
		c.Kubelet(t, job.Namespace)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return job.Status.JobDeploymentStatus
	}).Should(Equal(want), "message: %s", job.Status.Message)
}

// The API server proxies to a Service; until that has endpoints its answers are none of Ray's (RJ-073).
func TestRayJobThroughTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	runThroughAPIServer(t, c, ns)
	job := harness.NewJob(ns, rayv1.HTTPMode)
	job.Spec.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
	g.Expect(c.Create(t.Context(), job)).To(Succeed())
	reaches(t, g, c, job, rayv1.JobDeploymentStatusRunning)
	g.Eventually(func() *metav1.Time {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return job.Status.JobStatusCheckFailureStartTime
	}).ShouldNot(BeNil())
	g.Expect(job.Status.JobStatus).To(BeEmpty())
	service := job.Status.RayClusterName + "-head-svc"
	g.Expect(job.Status.DashboardURL).To(Equal(service + "." + ns + ".svc.cluster.local:8265"))

	token := &corev1.Secret{}
	g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: job.Status.RayClusterName}, token)).To(Succeed())
	ray := fakedashboard.NewInProcess()
	ray.RequireToken(string(token.Data["auth_token"]))
	lead(t, c, ns, service, listen(t, ray))
	reaches(t, g, c, job, rayv1.JobDeploymentStatusComplete)
	g.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	g.Expect(ray.Submissions(job.Status.JobId)).To(Equal(1))
}
