package blueprint_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
)

func TestHead(t *testing.T) {
	pods := blueprint.Pods{Image: blueprint.Image("2.60.0"), ServiceAccount: "trainer"}
	head := pods.Head(blueprint.Node{
		CPU: resource.MustParse("500m"), Memory: resource.MustParse("4Gi"), EphemeralStorage: resource.MustParse("1Gi"), GPU: resource.MustParse("0"),
		RayStartParams: map[string]string{"num-cpus": "0"}, NodeSelector: map[string]string{"pool": "heads"},
	})
	compare(t, head, `rayStartParams:
  num-cpus: "0"
template:
  metadata: {}
  spec:
    containers:
    - image: rayproject/ray:2.60.0
      name: ray-head
      ports:
      - containerPort: 6379
        name: gcs-server
      - containerPort: 8265
        name: dashboard
      - containerPort: 10001
        name: client
      resources:
        limits:
          ephemeral-storage: 1Gi
          memory: 4Gi
        requests:
          cpu: 500m
          ephemeral-storage: 1Gi
          memory: 4Gi
    nodeSelector:
      pool: heads
    serviceAccountName: trainer
`)
}

func TestWorkers(t *testing.T) {
	workers := blueprint.Pods{Image: "mine:1"}.Workers("gpu", blueprint.Node{GPU: resource.MustParse("2"), TPU: resource.MustParse("4"), RayStartParams: map[string]string{}})
	compare(t, workers, `groupName: gpu
maxReplicas: null
minReplicas: null
rayStartParams: {}
scaleStrategy: {}
template:
  metadata: {}
  spec:
    containers:
    - image: mine:1
      name: ray-worker
      resources:
        limits:
          google.com/tpu: "4"
          nvidia.com/gpu: "2"
        requests:
          google.com/tpu: "4"
          nvidia.com/gpu: "2"
`)
}

func compare(t *testing.T, object any, want string) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
