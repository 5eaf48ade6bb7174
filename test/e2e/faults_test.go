//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/faults"
)

// faultPatience covers the longest wait of a rule, two minutes, and a busy machine.
const faultPatience = 6 * time.Minute

// TestFaultCatalogue injects each fault of the catalogue into a cluster of its own and asks the plugin what is wrong. Most
// of them keep Ray from starting, so many fit beside each other.
func TestFaultCatalogue(t *testing.T) {
	catalogue := faults.OnNodes()
	verdicts := make([]faults.Verdict, len(catalogue))
	// What starts a container and fails again and again takes processor time, so not all faults are there at once.
	slots := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i, f := range catalogue {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			verdicts[i] = faults.Verdict{Name: f.Name, Want: f.Want, Also: f.Also}
			t.Run(f.Want+"/"+f.Name, func(t *testing.T) { inject(t, f, &verdicts[i]) })
		})
	}
	all.Wait()
	faults.Report(t, verdicts)
}

// inject makes one broken cluster, looks until the finding is there, and looks once more when rules that wait have waited.
func inject(t *testing.T, f faults.Fault, v *faults.Verdict) {
	w := connect(t)
	if f.With != nil {
		for _, object := range f.With(w.namespace) {
			if err := w.Create(t.Context(), object); err != nil {
				t.Fatalf("create %T %s: %v", object, object.GetName(), err)
			}
			t.Cleanup(func() { w.cleanUp(t, object) })
		}
	}
	if f.Refuses {
		w.refusesPods(t)
	}
	cluster := faults.PlainCluster(w.namespace, "demo")
	if f.Edit != nil {
		f.Edit(cluster)
	}
	if err := w.Create(t.Context(), cluster); err != nil {
		t.Fatalf("create the RayCluster: %v", err)
	}
	if f.Then != nil {
		f.Then(t, w.Client, cluster)
	}
	// A miss does not end the test here: the catalogue tells of it with what was found instead.
	waits := NewGomega(func(string, ...int) {})
	waits.Eventually(func() bool {
		v.Judge(w.diagnose(t, cluster.Name))
		return v.Found
	}, faultPatience, 2*time.Second).Should(BeTrue())
	waits.Eventually(func() time.Duration { return time.Since(cluster.CreationTimestamp.Time) }, 2*secondLook, time.Second).
		Should(BeNumerically(">=", secondLook))
	v.Judge(w.diagnose(t, cluster.Name))
}

// secondLook is the age of a cluster at which all rules that wait for a minute have had their chance of a false alarm.
const secondLook = 80 * time.Second

// refusesPods waits until the API server refuses Pods in the namespace, since it learns of policies, webhooks and quotas with a
// delay.
func (w *world) refusesPods(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "try"}, Spec: faults.PlainCluster(w.namespace, "try").Spec.HeadGroupSpec.Template.Spec}
	NewWithT(t).Eventually(func() error {
		return w.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
	}, podPatience, time.Second).ShouldNot(Succeed())
}

// cleanUp removes an object that stands in no namespace; the others go with theirs.
func (w *world) cleanUp(t *testing.T, object client.Object) {
	if object.GetNamespace() != "" {
		return
	}
	if err := w.Delete(context.Background(), object); err != nil {
		t.Logf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// TestHealthyClustersHaveNoFindings makes clusters of many kinds and asks the plugin as soon as each is ready.
func TestHealthyClustersHaveNoFindings(t *testing.T) {
	w := connect(t)
	g := NewWithT(t)
	kinds := healthyKinds()
	for first := 0; first < len(kinds); first += 4 {
		batch := kinds[first:min(first+4, len(kinds))]
		for i, edit := range batch {
			cluster := faults.PlainCluster(w.namespace, fmt.Sprintf("healthy-%d", first+i))
			edit(cluster)
			g.Expect(w.Create(t.Context(), cluster)).To(Succeed())
		}
		for i := range batch {
			name := fmt.Sprintf("healthy-%d", first+i)
			w.ready(t, g, name)
			g.Expect(w.diagnose(t, name)).To(BeEmpty(), "%s is healthy", name)
		}
		for i := range batch {
			g.Expect(w.Delete(t.Context(), faults.PlainCluster(w.namespace, fmt.Sprintf("healthy-%d", first+i)))).To(Succeed())
		}
	}
}

// healthyKinds are twenty ways to ask for a cluster that works.
func healthyKinds() []func(*rayv1.RayCluster) {
	head := func(c *rayv1.RayCluster) *corev1.Container { return &c.Spec.HeadGroupSpec.Template.Spec.Containers[0] }
	plain := func(*rayv1.RayCluster) {}
	return []func(*rayv1.RayCluster){
		plain,
		func(c *rayv1.RayCluster) { c.Labels = map[string]string{"team": "a"} },
		func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.RayStartParams["dashboard-host"] = "0.0.0.0" },
		func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.ServiceType = corev1.ServiceTypeClusterIP },
		func(c *rayv1.RayCluster) { c.Spec.HeadServiceAnnotations = map[string]string{"a": "b"} },
		func(c *rayv1.RayCluster) { c.Spec.RayVersion = "" },
		func(c *rayv1.RayCluster) { c.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken} },
		func(c *rayv1.RayCluster) {
			c.Annotations = map[string]string{rayv1.AnnotationProtectHead: rayv1.ProtectHeadAlways}
		},
		func(c *rayv1.RayCluster) { head(c).Env = []corev1.EnvVar{{Name: "A", Value: "b"}} },
		func(c *rayv1.RayCluster) {
			head(c).Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("3Gi")}
		},
		func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Labels = map[string]string{"app": "x"} },
		func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "default" },
		func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Template.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			head(c).VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
		},
		func(c *rayv1.RayCluster) {
			head(c).EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "nobody"}, Optional: ptr.To(true)}}}
		},
		func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		},
		func(c *rayv1.RayCluster) {
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{faults.SmallGroup("w", 1)}
		},
		func(c *rayv1.RayCluster) {
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{faults.SmallGroup("w", 0)}
		},
		func(c *rayv1.RayCluster) {
			c.Spec.EnableInTreeAutoscaling = ptr.To(true)
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{faults.SmallGroup("w", 0)}
		},
		func(c *rayv1.RayCluster) {
			c.Annotations = map[string]string{rayv1.AnnotationMaxUnavailableWorkers: "1"}
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{faults.SmallGroup("w", 1)}
		},
		func(c *rayv1.RayCluster) {
			group := faults.SmallGroup("w", 1)
			group.NumOfHosts = 2
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{group}
		},
	}
}
