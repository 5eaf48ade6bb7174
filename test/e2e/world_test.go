//go:build e2e

// Package e2e runs the operator as its chart installs it, on real nodes and with real Ray. hack/e2e.sh makes the
// cluster; the tests find it by KUBECONFIG.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/operator"
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// Real Ray on two cores needs these; they are limits, not expectations.
const (
	podPatience = 5 * time.Minute
	jobPatience = 8 * time.Minute
)

// world is the Kubernetes under test and a namespace of the test's own.
type world struct {
	client.Client
	config    *rest.Config
	typed     *kubernetes.Clientset
	namespace string
}

func connect(t *testing.T) *world {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatalf("these tests need KUBECONFIG of a cluster that hack/e2e.sh made: %v", err)
	}
	known, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: known})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Client: api, config: config, typed: typed}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	if err := api.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.namespace = namespace.Name
	t.Cleanup(func() {
		if t.Failed() {
			w.describe(t)
		}
		w.deleteNamespace(t, namespace)
	})
	return w
}

// deleteNamespace waits until it is gone, so that the next test has the nodes for itself.
func (w *world) deleteNamespace(t *testing.T, namespace *corev1.Namespace) {
	ctx := context.Background()
	if err := w.Delete(ctx, namespace); err != nil {
		t.Logf("delete namespace %s: %v", namespace.Name, err)
		return
	}
	NewWithT(t).Eventually(func() bool {
		return apierrors.IsNotFound(w.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
	}, podPatience, time.Second).Should(BeTrue(), "namespace %s must go", namespace.Name)
}

// describe prints what a person would look at after a failure.
func (w *world) describe(t *testing.T) {
	ctx := context.Background()
	pods := &corev1.PodList{}
	if err := w.List(ctx, pods, client.InNamespace(w.namespace)); err == nil {
		for _, pod := range pods.Items {
			t.Logf("Pod %s %s: %+v", pod.Name, pod.Status.Phase, pod.Status.ContainerStatuses)
			for _, container := range pod.Spec.Containers {
				t.Logf("last lines of %s/%s:\n%s", pod.Name, container.Name, w.logs(pod.Name, container.Name, 30))
			}
		}
	}
	clusters := &rayv1.RayClusterList{}
	if err := w.List(ctx, clusters, client.InNamespace(w.namespace)); err == nil {
		for _, cluster := range clusters.Items {
			t.Logf("RayCluster %s: %+v", cluster.Name, cluster.Status)
		}
	}
	jobs := &rayv1.RayJobList{}
	if err := w.List(ctx, jobs, client.InNamespace(w.namespace)); err == nil {
		for _, job := range jobs.Items {
			t.Logf("RayJob %s: %s %s %s %s", job.Name, job.Status.JobDeploymentStatus, job.Status.JobStatus, job.Status.Reason, job.Status.Message)
		}
	}
}

// apply creates every object of a manifest, unedited but for the namespace, with strict validation of fields.
func (w *world) apply(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if err == io.EOF {
			return objects
		}
		if err != nil {
			t.Fatalf("read %s: %v", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		object.SetNamespace(w.namespace)
		if err := w.Create(t.Context(), object, client.FieldValidation("Strict")); err != nil {
			t.Fatalf("create %s %s of %s: %v", object.GetKind(), object.GetName(), path, err)
		}
		objects = append(objects, object)
	}
}

// sample is the path of an upstream sample, or of our own example where ../shared is absent.
func sample(t *testing.T, upstream, own string) string {
	t.Helper()
	shared := os.Getenv("HELIOSTAT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	path := filepath.Join(shared, "conformance", "kuberay-samples", upstream)
	if _, err := os.Stat(path); err != nil {
		t.Logf("the upstream samples are not here; using docs/examples/%s instead of %s", own, upstream)
		return filepath.Join("..", "..", "docs", "examples", own)
	}
	return path
}

func (w *world) get(t *testing.T, g Gomega, name string, into client.Object) {
	t.Helper()
	g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, into)).To(Succeed())
}

// ready waits until a RayCluster is ready.
func (w *world) ready(t *testing.T, g Gomega, name string) *rayv1.RayCluster {
	t.Helper()
	cluster := &rayv1.RayCluster{}
	g.Eventually(func() rayv1.ClusterState {
		w.get(t, g, name, cluster)
		return cluster.Status.State
	}, podPatience, time.Second).Should(Equal(rayv1.ClusterStateReady), "RayCluster %s", name)
	return cluster
}

// ended waits until a RayJob is complete or failed.
func (w *world) ended(t *testing.T, g Gomega, name string) *rayv1.RayJob {
	t.Helper()
	job := &rayv1.RayJob{}
	g.Eventually(func() bool {
		w.get(t, g, name, job)
		return rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus)
	}, jobPatience, time.Second).Should(BeTrue(), "RayJob %s", name)
	return job
}

func (w *world) pods(t *testing.T, labels client.MatchingLabels) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := w.List(t.Context(), pods, client.InNamespace(w.namespace), labels); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// logs returns the last lines of a container, or why there are none.
func (w *world) logs(pod, container string, lines int64) string {
	stream, err := w.typed.CoreV1().Pods(w.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, TailLines: &lines}).Stream(context.Background())
	if err != nil {
		return err.Error()
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// submitterLog is what the submitter of a RayJob printed.
func (w *world) submitterLog(t *testing.T, job string) string {
	t.Helper()
	var log strings.Builder
	for _, pod := range w.pods(t, client.MatchingLabels{"job-name": job}) {
		log.WriteString(w.logs(pod.Name, pod.Spec.Containers[0].Name, 500))
	}
	return log.String()
}

// exec runs a command in the Ray container of a Pod and returns what it printed.
func (w *world) exec(ctx context.Context, pod *corev1.Pod, command ...string) (string, error) {
	return w.execIn(ctx, pod, pod.Spec.Containers[0].Name, command...)
}

// execIn runs a command in a container of a Pod and returns what it printed.
func (w *world) execIn(ctx context.Context, pod *corev1.Pod, container string, command ...string) (string, error) {
	request := w.typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(w.config, "POST", request.URL())
	if err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		return out.String(), fmt.Errorf("%v in Pod %s: %w: %s", command, pod.Name, err, errOut.String())
	}
	return out.String(), nil
}

func (w *world) head(t *testing.T, g Gomega, cluster string) *corev1.Pod {
	t.Helper()
	pods := w.pods(t, client.MatchingLabels{rayv1.LabelCluster: cluster, rayv1.LabelNodeType: rayv1.NodeTypeHead})
	g.Expect(pods).To(HaveLen(1))
	return &pods[0]
}

// activeNodes asks Ray, inside the head, how many nodes are alive.
func (w *world) activeNodes(t *testing.T, g Gomega, cluster string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := w.exec(ctx, w.head(t, g, cluster), "python", "-c",
		"import ray; ray.init(address='auto', log_to_driver=False, logging_level='ERROR'); print('alive', sum(n['Alive'] for n in ray.nodes()))")
	if err != nil {
		return err.Error()
	}
	return out
}
