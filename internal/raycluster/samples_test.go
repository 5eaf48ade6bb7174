package raycluster

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Every cluster in the manifests that KubeRay users start from is accepted and yields Pods and Services.
func TestClustersOfSamplesAreAcceptedAndBuilt(t *testing.T) {
	shared := os.Getenv("HELIOSTAT_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	samples := filepath.Join(shared, "conformance", "kuberay-samples")
	if _, err := os.Stat(samples); err != nil {
		t.Skipf("no samples in %s; set HELIOSTAT_SHARED to the folder that holds conformance/kuberay-samples", samples)
	}
	clusters := 0
	err := filepath.WalkDir(samples, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return err
		}
		for _, cluster := range clustersIn(t, path) {
			clusters++
			t.Run(strings.TrimPrefix(path, samples+"/"), func(t *testing.T) { buildSample(t, cluster) })
		}
		return nil
	})
	if err != nil {
		t.Fatalf("reading the samples: %v", err)
	}
	t.Logf("built %d clusters", clusters)
	if clusters == 0 {
		t.Errorf("no cluster in %s", samples)
	}
}

func buildSample(t *testing.T, cluster *rayv1.RayCluster) {
	settings := DefaultSettings()
	settings.EmbeddedStorage = true
	if errs := Validate(cluster, settings); len(errs) > 0 {
		t.Errorf("the cluster is refused: %v", errs)
	}
	head := HeadPod(cluster, DefaultSettings(), 1)
	if problems := validation.IsDNS1123Subdomain(head.Name); len(problems) > 0 {
		t.Errorf("the head is called %q: %v", head.Name, problems)
	}
	for i := range cluster.Spec.WorkerGroupSpecs {
		group := &cluster.Spec.WorkerGroupSpecs[i]
		worker := WorkerPod(cluster, group, DefaultSettings(), PodSlot{Group: group.GroupName, Incarnation: 1})
		if envOf(worker.Spec.Containers[0])["FQ_RAY_IP"] == "" {
			t.Errorf("group %s does not know the head", group.GroupName)
		}
	}
	if service := HeadService(cluster, DefaultSettings()); len(service.Spec.Ports) == 0 {
		t.Error("the head Service has no ports")
	}
	if _, err := ServeService(cluster, DefaultSettings()); err != nil {
		t.Errorf("no Service for Ray Serve: %v", err)
	}
}

// clustersIn returns the clusters in a file of manifests: RayClusters, and those which RayJobs and RayServices make.
func clustersIn(t *testing.T, path string) []*rayv1.RayCluster {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading a sample: %v", err)
	}
	var clusters []*rayv1.RayCluster
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var manifest struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				rayv1.RayClusterSpec `json:",inline"`
				Job                  *rayv1.RayClusterSpec `json:"rayClusterSpec"`
				Service              *rayv1.RayClusterSpec `json:"rayClusterConfig"`
			} `json:"spec"`
		}
		if err := decoder.Decode(&manifest); errors.Is(err, io.EOF) {
			return clusters
		} else if err != nil {
			// Kinds of others may hold other types under these names.
			continue
		}
		spec := map[string]*rayv1.RayClusterSpec{
			rayv1.KindRayCluster: &manifest.Spec.RayClusterSpec, rayv1.KindRayJob: manifest.Spec.Job, rayv1.KindRayService: manifest.Spec.Service,
		}[manifest.Kind]
		if spec == nil || !strings.HasPrefix(manifest.APIVersion, rayv1.GroupName+"/") {
			continue
		}
		defaultBounds(spec)
		if manifest.Name == "" {
			manifest.Name = manifest.GenerateName + "x"
		}
		clusters = append(clusters, &rayv1.RayCluster{ObjectMeta: manifest.ObjectMeta, Spec: *spec})
	}
}

// defaultBounds does what the API server does.
func defaultBounds(spec *rayv1.RayClusterSpec) {
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		if group.MinReplicas == nil {
			group.MinReplicas = ptr.To[int32](0)
		}
		if group.MaxReplicas == nil {
			group.MaxReplicas = ptr.To[int32](math.MaxInt32)
		}
	}
}
