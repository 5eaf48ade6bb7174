//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// rayImage is what hack/cluster.sh puts onto every node.
const rayImage = "rayproject/ray:2.60.0"

// fault is one thing that goes wrong, and what diagnose has to say about it.
type fault struct {
	name string
	// want is the id of the finding.
	want string
	// edit breaks a RayCluster that would work. It may be nil.
	edit func(*rayv1.RayCluster)
	// with are objects that have to be there before the cluster.
	with func(namespace string) []client.Object
	// then breaks what is there already. It may be nil.
	then func(t *testing.T, w *world, cluster string)
	// refuses tells that with makes the API server refuse Pods, which takes a moment.
	refuses bool
	// also are the ids of findings that may stand beside the wanted one because they are true as well.
	also []string
}

// plainCluster is a RayCluster with a head that takes little.
func plainCluster(namespace, name string) *rayv1.RayCluster {
	return &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: rayv1.RayClusterSpec{
			RayVersion: "2.60.0",
			HeadGroupSpec: rayv1.HeadGroupSpec{
				RayStartParams: map[string]string{"num-cpus": "0"},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "ray-head", Image: rayImage,
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("20m"), "memory": resource.MustParse("64Mi")}},
				}}}},
			},
		},
	}
}

// verdict is what diagnose said about one fault.
type verdict struct {
	fault
	found    bool
	evidence string
	// others are the findings that nobody expected.
	others []finding
}

// faultPatience covers the longest wait of a rule, two minutes, and a busy machine.
const faultPatience = 6 * time.Minute

// TestFaultCatalogue injects each fault of the catalogue into a cluster of its own and asks the plugin what is wrong. Most
// of them keep Ray from starting, so many fit beside each other.
func TestFaultCatalogue(t *testing.T) {
	catalogue := faults()
	verdicts := make([]verdict, len(catalogue))
	// What starts a container and fails again and again takes processor time, so not all faults are there at once.
	slots := make(chan struct{}, 8)
	var all sync.WaitGroup
	for i, f := range catalogue {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			verdicts[i].fault = f
			t.Run(f.want+"/"+f.name, func(t *testing.T) { inject(t, &verdicts[i]) })
		})
	}
	all.Wait()
	t.Log(table(verdicts))
	for _, v := range verdicts {
		if !v.found {
			t.Errorf("missed: %s (%s)", v.name, v.want)
		}
		for _, other := range v.others {
			t.Errorf("false alarm beside %s (%s): %s: %s", v.name, v.want, other.ID, other.Evidence)
		}
	}
}

// inject makes one broken cluster, looks until the finding is there, and looks once more when rules that wait have waited.
func inject(t *testing.T, v *verdict) {
	w := connect(t)
	if v.with != nil {
		for _, object := range v.with(w.namespace) {
			if err := w.Create(t.Context(), object); err != nil {
				t.Fatalf("create %T %s: %v", object, object.GetName(), err)
			}
			t.Cleanup(func() { w.cleanUp(t, object) })
		}
	}
	if v.refuses {
		w.refusesPods(t)
	}
	cluster := plainCluster(w.namespace, "demo")
	if v.edit != nil {
		v.edit(cluster)
	}
	if err := w.Create(t.Context(), cluster); err != nil {
		t.Fatalf("create the RayCluster: %v", err)
	}
	if v.then != nil {
		v.then(t, w, cluster.Name)
	}
	// A miss does not end the test here: the catalogue tells of it with what was found instead.
	waits := NewGomega(func(string, ...int) {})
	waits.Eventually(func() bool {
		v.judge(w.diagnose(t, cluster.Name))
		return v.found
	}, faultPatience, 2*time.Second).Should(BeTrue())
	waits.Eventually(func() time.Duration { return time.Since(cluster.CreationTimestamp.Time) }, 2*secondLook, time.Second).
		Should(BeNumerically(">=", secondLook))
	v.judge(w.diagnose(t, cluster.Name))
}

// secondLook is the age of a cluster at which all rules that wait for a minute have had their chance of a false alarm.
const secondLook = 80 * time.Second

// judge notes whether the wanted finding is there, and what else is.
func (v *verdict) judge(findings []finding) {
	v.found = false
	for _, f := range findings {
		switch {
		case f.ID == v.want:
			v.found, v.evidence = true, f.Evidence
		case !slices.Contains(v.also, f.ID) && !slices.ContainsFunc(v.others, func(o finding) bool { return o.ID == f.ID }):
			v.others = append(v.others, f)
		}
	}
	if !v.found && len(v.evidence) == 0 {
		// Until the fault shows, what shows before it is no alarm.
		v.others = nil
	}
}

// refusesPods waits until the API server refuses Pods in the namespace, since it learns of policies, webhooks and quotas with a
// delay.
func (w *world) refusesPods(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "try"}, Spec: plainCluster(w.namespace, "try").Spec.HeadGroupSpec.Template.Spec}
	NewWithT(t).Eventually(func() error {
		return w.Create(t.Context(), pod.DeepCopy(), client.DryRunAll)
	}, podPatience, time.Second).ShouldNot(Succeed())
}

// cleanUp removes an object that stands in no namespace; the others go with theirs.
func (w *world) cleanUp(t *testing.T, object client.Object) {
	if object.GetNamespace() != "" {
		return
	}
	if err := w.Delete(background(), object); err != nil {
		t.Logf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// table is the catalogue with what became of each fault.
func table(verdicts []verdict) string {
	var text strings.Builder
	found, alarms := 0, 0
	for _, v := range verdicts {
		outcome := "missed"
		if v.found {
			outcome = "found"
			found++
		}
		alarms += len(v.others)
		fmt.Fprintf(&text, "%-7s %-26s %-45s %.90s\n", outcome, v.want, v.name, v.evidence)
	}
	return fmt.Sprintf("\n%sfound %d of %d, missed %d, false alarms %d\n", text.String(), found, len(verdicts), len(verdicts)-found, alarms)
}

// TestHealthyClustersHaveNoFindings makes clusters of many kinds and asks the plugin as soon as each is ready.
func TestHealthyClustersHaveNoFindings(t *testing.T) {
	w := connect(t)
	g := NewWithT(t)
	kinds := healthyKinds()
	for first := 0; first < len(kinds); first += 4 {
		batch := kinds[first:min(first+4, len(kinds))]
		for i, edit := range batch {
			cluster := plainCluster(w.namespace, fmt.Sprintf("healthy-%d", first+i))
			edit(cluster)
			g.Expect(w.Create(t.Context(), cluster)).To(Succeed())
		}
		for i := range batch {
			name := fmt.Sprintf("healthy-%d", first+i)
			w.ready(t, g, name)
			g.Expect(w.diagnose(t, name)).To(BeEmpty(), "%s is healthy", name)
		}
		for i := range batch {
			g.Expect(w.Delete(t.Context(), plainCluster(w.namespace, fmt.Sprintf("healthy-%d", first+i)))).To(Succeed())
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
			head(c).EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "nobody"}, Optional: yes()}}}
		},
		func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		},
		func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{smallGroup("w", 1)} },
		func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{smallGroup("w", 0)} },
		func(c *rayv1.RayCluster) {
			c.Spec.EnableInTreeAutoscaling = yes()
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{smallGroup("w", 0)}
		},
		func(c *rayv1.RayCluster) {
			c.Annotations = map[string]string{rayv1.AnnotationMaxUnavailableWorkers: "1"}
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{smallGroup("w", 1)}
		},
		func(c *rayv1.RayCluster) {
			group := smallGroup("w", 1)
			group.NumOfHosts = 2
			c.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{group}
		},
	}
}

// smallGroup is a worker group whose Pods take little.
func smallGroup(name string, replicas int32) rayv1.WorkerGroupSpec {
	least, most := int32(0), int32(2)
	return rayv1.WorkerGroupSpec{
		GroupName: name, Replicas: &replicas, MinReplicas: &least, MaxReplicas: &most, RayStartParams: map[string]string{"num-cpus": "1"},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "ray-worker", Image: rayImage,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("20m"), "memory": resource.MustParse("64Mi")}},
		}}}},
	}
}
