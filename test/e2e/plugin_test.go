//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/test/faults"
)

// kubectlRay runs a command of the plugin in the namespace of the test and returns what it wrote to stdout and its exit code.
func (w *world) kubectlRay(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out, errOut bytes.Buffer
	root := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, "kubectl ray", "test")
	// The arguments after -- are those of a job.
	root.SetArgs(append([]string{"--namespace", w.namespace}, args...))
	err := root.ExecuteContext(t.Context())
	if err == nil {
		return out.String(), 0
	}
	t.Logf("kubectl ray %s: %s%v", strings.Join(args, " "), errOut.String(), err)
	var exit kube.ExitError
	if !errors.As(err, &exit) {
		return out.String(), kube.ExitFailed
	}
	return out.String(), exit.Code
}

// diagnose returns what the plugin finds.
func (w *world) diagnose(t *testing.T, argument string) []faults.Finding {
	t.Helper()
	out, code := w.kubectlRay(t, "diagnose", argument, "-o", "json")
	if code == kube.ExitCannotLook {
		t.Fatalf("diagnose %s: %s", argument, out)
	}
	answer := struct{ Findings []faults.Finding }{}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("diagnose %s wrote %q: %v", argument, out, err)
	}
	// Other tests have taken leaders away, which is what that finding says for a while. A fault of the operator is none of these tests.
	return slices.DeleteFunc(answer.Findings, func(f faults.Finding) bool { return f.ID == "lease-contested" })
}

// exercise is one broken manifest for a newcomer.
type exercise struct {
	file, cluster string
	// finding is the id of what diagnose has to find; cause and next are what has to stand in its words.
	finding, cause, next string
	// fix does what next says.
	fix func(t *testing.T, g Gomega, w *world)
}

func exercises() []exercise {
	return []exercise{
		{"image.yaml", "wrong-image", "image-name-invalid", `"rayproject/ray:2.60.0:cpu" is not the name of an image`,
			"Correct `image` in spec.headGroupSpec.template.spec.containers", editHead("wrong-image", func(head *corev1.Container) {
				head.Image = "rayproject/ray:2.60.0"
			})},
		{"resources.yaml", "too-large", "insufficient-resources", "it asks for 512 of cpu, and the largest node",
			"Lower `resources.requests` in spec.headGroupSpec.template", editHead("too-large", func(head *corev1.Container) {
				head.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("500m")
			})},
		{"secret.yaml", "no-secret", "secret-missing", "database", "database", func(t *testing.T, g Gomega, w *world) {
			g.Expect(w.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "database", Namespace: w.namespace},
				StringData: map[string]string{"password": "x"}})).To(Succeed())
		}},
		{"claim.yaml", "no-claim", "claim-missing", "training-data", "training-data", func(t *testing.T, g Gomega, w *world) {
			g.Expect(w.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "training-data", Namespace: w.namespace},
				Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("100Mi")}}}})).To(Succeed())
		}},
		{"service.yaml", "wrong-service", "name-collision", "wrong-service-head-svc", "wrong-service-head-svc", func(t *testing.T, g Gomega, w *world) {
			g.Expect(w.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "wrong-service-head-svc", Namespace: w.namespace}})).To(Succeed())
		}},
	}
}

// editHead changes the first container of the head of a cluster.
func editHead(cluster string, edit func(*corev1.Container)) func(*testing.T, Gomega, *world) {
	return func(t *testing.T, g Gomega, w *world) {
		object := &rayv1.RayCluster{}
		g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: cluster}, object)).To(Succeed())
		before := object.DeepCopy()
		edit(&object.Spec.HeadGroupSpec.Template.Spec.Containers[0])
		g.Expect(w.Patch(t.Context(), object, client.MergeFrom(before))).To(Succeed())
		// Without the strategy Recreate the Pods of the earlier spec stay until they end; a newcomer deletes what never ran.
		pods := &corev1.PodList{}
		g.Expect(w.List(t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{rayv1.LabelCluster: cluster})).To(Succeed())
		for i := range pods.Items {
			g.Expect(client.IgnoreNotFound(w.Delete(t.Context(), &pods.Items[i]))).To(Succeed())
		}
	}
}

// TestANewcomerFindsTheFault gives each broken manifest to the plugin alone: it has to name the cause and the remedy, and
// with the remedy the cluster becomes ready.
func TestANewcomerFindsTheFault(t *testing.T) {
	for _, e := range exercises() {
		t.Run(strings.TrimSuffix(e.file, ".yaml"), func(t *testing.T) {
			g := NewWithT(t)
			w := connect(t)
			w.apply(t, filepath.Join("..", "..", "docs", "examples", "broken", e.file))
			g.Eventually(func() []faults.Finding { return w.diagnose(t, e.cluster) }, podPatience, time.Second).Should(ContainElement(And(
				HaveField("ID", e.finding), HaveField("Cause", ContainSubstring(e.cause)), HaveField("Next", ContainSubstring(e.next)))))
			screen, code := w.kubectlRay(t, "diagnose", e.cluster)
			g.Expect(code).To(Equal(1))
			t.Log(screen)

			e.fix(t, g, w)
			// It may still be stalled for a moment, which is no reason to give up: that is what was corrected.
			g.Eventually(func() (string, error) {
				text, code := w.kubectlRay(t, "wait", e.cluster, "--for=condition=Ready", "--timeout=30s")
				if code != 0 {
					return text, fmt.Errorf("wait ended with %d", code)
				}
				return text, nil
			}, podPatience, time.Second).Should(ContainSubstring("is Ready"))
			g.Eventually(func() []faults.Finding { return w.diagnose(t, e.cluster) }, podPatience, time.Second).Should(BeEmpty(), "the cause is gone")
		})
	}
}
