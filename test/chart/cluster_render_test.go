package chart

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// renderRelease renders the chart of RayClusters and returns its only object, read strictly, and the notes.
func renderRelease(t *testing.T, release, values string) (rayv1.RayCluster, string) {
	t.Helper()
	r, err := tryRenderChart(t, clusterChartPath, release, values)
	if err != nil {
		t.Fatalf("rendering with values\n%s\n%v", values, err)
	}
	if len(r.objects) != 1 {
		t.Fatalf("objects %v, want one RayCluster", r.names())
	}
	var cluster rayv1.RayCluster
	r.into(t, r.names()[0], &cluster)
	if cluster.APIVersion != rayv1.GroupVersion.String() || cluster.Kind != rayv1.KindRayCluster || cluster.Namespace != releaseNamespace {
		t.Fatalf("object %s %s in namespace %s", cluster.APIVersion, cluster.Kind, cluster.Namespace)
	}
	return cluster, r.notes
}

func renderCluster(t *testing.T, values string) rayv1.RayCluster {
	t.Helper()
	cluster, _ := renderRelease(t, "raycluster", values)
	return cluster
}

// group returns the group of workers with the given name.
func group(t *testing.T, cluster rayv1.RayCluster, name string) rayv1.WorkerGroupSpec {
	t.Helper()
	for _, g := range cluster.Spec.WorkerGroupSpecs {
		if g.GroupName == name {
			return g
		}
	}
	t.Fatalf("there is no group %s; there are %v", name, groupNames(cluster))
	return rayv1.WorkerGroupSpec{}
}

func groupNames(cluster rayv1.RayCluster) []string {
	var names []string
	for _, g := range cluster.Spec.WorkerGroupSpecs {
		names = append(names, g.GroupName)
	}
	return names
}

// rayContainer returns the container that runs Ray.
func rayContainer(template corev1.PodTemplateSpec) corev1.Container {
	return template.Spec.Containers[0]
}

// TestClustersByValues compares whole objects with files in testdata, which a test of the operator reads too: it accepts
// them and builds Pods from them.
func TestClustersByValues(t *testing.T) {
	for name, file := range map[string]string{
		"given nothing":                  "default",
		"given everything that there is": "full",
	} {
		t.Run(name, func(t *testing.T) {
			var values string
			if file != "default" {
				text, err := os.ReadFile(filepath.Join("testdata", "ray-cluster", file+"-values.yaml"))
				if err != nil {
					t.Fatal(err)
				}
				values = string(text)
			}
			got, err := tryRenderChart(t, clusterChartPath, "raycluster", values)
			if err != nil || len(got.objects) != 1 {
				t.Fatalf("objects %v, error %v", got.names(), err)
			}
			path := filepath.Join("testdata", "ray-cluster", file+".yaml")
			if *update {
				text, err := yaml.Marshal(got.objects[0].Object)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var want map[string]any
			readYAML(t, path, &want)
			if d := cmp.Diff(want, got.objects[0].Object); d != "" {
				t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, d)
			}
			renderCluster(t, values)
		})
	}
}
