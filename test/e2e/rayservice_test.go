//go:build e2e

package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// servePatience is for what takes a second cluster on the same two cores, and longer than the ten minutes for which Ray remembers that a
// runtime environment failed, as it does when a name cannot be resolved for a moment. It is a limit, not an expectation.
const servePatience = 15 * time.Minute

// serving is a namespace for one test of RayServices.
type serving struct {
	*world
	t *testing.T
	g Gomega
}

func serve(t *testing.T) serving {
	t.Helper()
	s := serving{world: connect(t), t: t, g: NewWithT(t)}
	t.Cleanup(func() {
		if t.Failed() {
			s.explain()
		}
	})
	return s
}

// explain prints what is known about the RayServices, and what the leader has logged.
func (s serving) explain() {
	ctx := context.Background()
	services := &rayv1.RayServiceList{}
	if err := s.List(ctx, services, client.InNamespace(s.namespace)); err != nil {
		s.t.Log(err)
	}
	for _, service := range services.Items {
		s.t.Logf("RayService %s, generation %d: %+v", service.Name, service.Generation, service.Status)
	}
	events := &corev1.EventList{}
	if err := s.List(ctx, events, client.InNamespace(s.namespace)); err != nil {
		s.t.Log(err)
	}
	for _, event := range events.Items {
		s.t.Logf("%s %s: %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
	}
}

func (s serving) service(name string) *rayv1.RayService {
	s.t.Helper()
	service := &rayv1.RayService{}
	s.get(s.t, s.g, name, service)
	return service
}

// change edits a RayService as a user does.
func (s serving) change(name string, change func(*rayv1.RayService)) {
	s.t.Helper()
	service := s.service(name)
	base := service.DeepCopy()
	change(service)
	s.g.Expect(s.Patch(s.t.Context(), service, client.MergeFrom(base))).To(Succeed())
}

// serves waits until a RayService is ready as its spec is now, with nothing under way, and at least that many Pods
// take requests.
func (s serving) serves(name string, endpoints int) *rayv1.RayService {
	s.t.Helper()
	service := &rayv1.RayService{}
	s.g.Eventually(func(g Gomega) {
		s.get(s.t, g, name, service)
		status := service.Status
		g.Expect(status.ObservedGeneration).To(Equal(service.Generation), "RayService %s", name)
		for condition, want := range map[string]bool{
			rayv1.ConditionRayServiceReady:     true,
			rayv1.ConditionConfigApplied:       true,
			rayv1.ConditionApplicationsHealthy: true,
			rayv1.ConditionEndpointsReady:      true,
			rayv1.ConditionUpgradeInProgress:   false,
			rayv1.ConditionReconciling:         false,
			rayv1.ConditionStalled:             false,
		} {
			g.Expect(meta.IsStatusConditionTrue(status.Conditions, condition)).To(Equal(want), "%s of %+v", condition, status.Conditions)
		}
		g.Expect(status.NumServeEndpoints).To(BeNumerically(">=", endpoints), "endpoints of RayService %s", name)
		g.Expect(status.ServiceStatus).To(Equal(rayv1.ServiceStatusRunning))
		g.Expect(status.PendingServiceStatus.RayClusterName).To(BeEmpty(), "pending cluster of RayService %s", name)
	}, servePatience, time.Second).Should(Succeed())
	return service
}

// ask sends a request from inside a Pod, by DNS and kube-proxy, and returns the answer or why there is none. Empty data
// means a GET.
func (s serving) ask(from *corev1.Pod, url, data string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	const script = `import sys, urllib.request as r; print(r.urlopen(sys.argv[1], sys.argv[2].encode() or None, 30).read().decode(), end="")`
	out, err := s.exec(ctx, from, "python", "-c", script, url, data)
	if err != nil {
		return err.Error()
	}
	return out
}

// answers waits until a request from inside a Pod is answered as wanted: kube-proxy learns of a ready endpoint a moment
// after the operator does.
func (s serving) answers(from *corev1.Pod, url, data, want string) {
	s.t.Helper()
	s.g.Eventually(func() string { return s.ask(from, url, data) }, servePatience, time.Second).Should(Equal(want), "%s of %s", data, url)
}

// TestSmokeRayService: an application on real Ray gets ready, and a request through the Service is answered.
func TestSmokeRayService(t *testing.T) {
	s := serve(t)
	s.apply(t, "testdata/rayservice-echo.yaml")
	service := s.serves("echo", 2)
	head := s.head(t, s.g, service.Status.ActiveServiceStatus.RayClusterName)
	s.answers(head, "http://echo-serve-svc:8000/", "", "v1 hello")
}

// TestRayService: upstream samples are ready with all applications and answer. Their manifests are as they are but for the
// host that the applications are downloaded from, and for a whole machine that one of them wants for its head.
func TestRayService(t *testing.T) {
	for _, test := range []struct {
		sample    string
		port      int
		endpoints int
		answers   map[string]string
	}{
		{"ray-service.sample.yaml", 8000, 2, map[string]string{
			`fruit/ ["MANGO", 2]`: "6", `fruit/ ["PEAR", 12]`: "12", `calc/ ["MUL", 3]`: "15 pizzas please!",
		}},
		{"ray-service.different-port.yaml", 9000, 1, map[string]string{`fruit/ ["ORANGE", 4]`: "8"}},
	} {
		t.Run(test.sample, func(t *testing.T) {
			s := serve(t)
			s.offerFiles()
			name := s.apply(t, s.withOwnFiles(servingSample(t, test.sample)))[0].GetName()
			service := s.serves(name, test.endpoints)
			for name, application := range service.Status.ActiveServiceStatus.ApplicationStatuses {
				s.g.Expect(application.Status).To(Equal(rayv1.AppStatusRunning), "application %s: %s", name, application.Message)
			}
			files := &corev1.Pod{}
			s.get(t, s.g, "files", files)
			for question, want := range test.answers {
				path, data, _ := strings.Cut(question, " ")
				url := fmt.Sprintf("http://%s-serve-svc:%d/%s", name, test.port, path)
				s.answers(files, url, data, want)
			}
		})
	}
}

// servingSample is the path of an upstream sample, or of a manifest of ours with the same applications where ../shared is
// absent.
func servingSample(t *testing.T, upstream string) string {
	t.Helper()
	path := filepath.Join("testdata", "rayservice-fruit", strings.TrimPrefix(upstream, "ray-service."))
	return sample(t, upstream, filepath.Join("..", "..", "test", "e2e", path))
}

// withOwnFiles copies a sample with the changes that a machine without the internet needs, and returns the copy's path.
func (s serving) withOwnFiles(path string) string {
	s.t.Helper()
	text, err := os.ReadFile(path)
	s.g.Expect(err).ToNot(HaveOccurred())
	archive := regexp.MustCompile(`https://github\.com/\S+\.zip`)
	s.g.Expect(archive.Match(text)).To(BeTrue(), "%s names an archive", path)
	text = archive.ReplaceAll(text, fmt.Appendf(nil, "http://files.%s.svc/applications.zip", s.namespace))
	// A node of two cores has no room for a Pod that asks for both.
	text = regexp.MustCompile(`(requests:\n +cpu: )"2"`).ReplaceAll(text, []byte(`$1"1"`))
	changed := filepath.Join(s.t.TempDir(), filepath.Base(path))
	s.g.Expect(os.WriteFile(changed, text, 0o600)).To(Succeed())
	return changed
}

// offerFiles makes the archive of the applications that samples name, under a folder as GitHub's archives have it, and a
// Pod that it can be downloaded from.
func (s serving) offerFiles() {
	s.t.Helper()
	var archive bytes.Buffer
	files := zip.NewWriter(&archive)
	for _, name := range []string{"fruit.py", "conditional_dag.py"} {
		text, err := os.ReadFile(filepath.Join("testdata", "rayservice-fruit", name))
		s.g.Expect(err).ToNot(HaveOccurred())
		file, err := files.Create("applications/" + name)
		s.g.Expect(err).ToNot(HaveOccurred())
		_, err = file.Write(text)
		s.g.Expect(err).ToNot(HaveOccurred())
	}
	s.g.Expect(files.Close()).To(Succeed())
	s.g.Expect(s.Create(s.t.Context(), &corev1.ConfigMap{
		ObjectMeta: objectMeta(s.namespace, "files"),
		BinaryData: map[string][]byte{"applications.zip": archive.Bytes()},
	})).To(Succeed())
	s.apply(s.t, "testdata/rayservice-files.yaml")
	pod := &corev1.Pod{}
	s.g.Eventually(func() bool {
		s.get(s.t, s.g, "files", pod)
		return podReady(pod)
	}, servePatience, time.Second).Should(BeTrue(), "Pod files is ready")
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TestRayServiceOutlivesItsHead: a head without fault tolerance takes all applications with it. They are sent to the next
// one, on the same cluster.
func TestRayServiceOutlivesItsHead(t *testing.T) {
	s := serve(t)
	s.apply(t, "testdata/rayservice-echo.yaml")
	cluster := s.serves("echo", 2).Status.ActiveServiceStatus.RayClusterName
	lost := s.head(t, s.g, cluster)
	s.g.Expect(s.Delete(t.Context(), lost, client.GracePeriodSeconds(0))).To(Succeed())
	since := time.Now()
	s.newHead(t, s.g, cluster, lost.Name)
	service := s.serves("echo", 2)
	t.Logf("all serves again %s after the head was killed", time.Since(since).Round(time.Second))
	s.g.Expect(service.Status.ActiveServiceStatus.RayClusterName).To(Equal(cluster), "no second cluster was made")
	s.answers(s.head(t, s.g, cluster), "http://echo-serve-svc:8000/", "", "v1 hello")
}
