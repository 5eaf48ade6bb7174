package raycluster

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestGroupReplicas(t *testing.T) {
	tests := map[string]struct {
		group rayv1.WorkerGroupSpec
		want  int32
	}{
		"given a number within bounds, that number": {
			group: rayv1.WorkerGroupSpec{Replicas: ptr.To[int32](3), MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](4)}, want: 3,
		},
		"given a number above, the greatest": {
			group: rayv1.WorkerGroupSpec{Replicas: ptr.To[int32](5), MinReplicas: ptr.To[int32](0), MaxReplicas: ptr.To[int32](4)}, want: 4,
		},
		"given a number below, the least": {
			group: rayv1.WorkerGroupSpec{Replicas: ptr.To[int32](0), MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](4)}, want: 1,
		},
		"given no number, the least": {group: rayv1.WorkerGroupSpec{MinReplicas: ptr.To[int32](2)}, want: 2},
		"given nothing, none":        {},
		"given no upper bound, any number": {
			group: rayv1.WorkerGroupSpec{Replicas: ptr.To[int32](math.MaxInt32)}, want: math.MaxInt32,
		},
		"given suspension, none": {
			group: rayv1.WorkerGroupSpec{Replicas: ptr.To[int32](3), MinReplicas: ptr.To[int32](1), Suspend: ptr.To(true)},
		},
		"given negative numbers, none": {
			group: rayv1.WorkerGroupSpec{Replicas: ptr.To[int32](-3), MinReplicas: ptr.To[int32](-5), MaxReplicas: ptr.To[int32](-1)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := GroupReplicas(&test.group); got != test.want {
				t.Errorf("replicas are %d, want %d", got, test.want)
			}
		})
	}
}

func TestNumbersOfWorkers(t *testing.T) {
	spec := demoCluster(func(c *rayv1.RayCluster) {
		a := groupA(c)
		a.Replicas, a.MinReplicas, a.MaxReplicas, a.NumOfHosts = ptr.To[int32](2), ptr.To[int32](1), ptr.To[int32](4), 4
		b := *a.DeepCopy()
		b.NumOfHosts, b.MaxReplicas = 0, ptr.To[int32](1)
		suspended := *a.DeepCopy()
		suspended.Suspend = ptr.To(true)
		c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, b, suspended)
	}).Spec
	got := [3]int32{DesiredWorkers(&spec), MinWorkers(&spec), MaxWorkers(&spec)}
	if want := [3]int32{9, 5, 17}; got != want {
		t.Errorf("desired, least and greatest number are %v, want %v", got, want)
	}
}

func TestNumbersOfWorkersNeverOverflow(t *testing.T) {
	number := rapid.SampledFrom([]int32{0, 1, 2, 1000, math.MaxInt32 / 2, math.MaxInt32 - 1, math.MaxInt32})
	rapid.Check(t, func(t *rapid.T) {
		var spec rayv1.RayClusterSpec
		var exact float64
		for range rapid.IntRange(0, 5).Draw(t, "groups") {
			replicas, hosts := number.Draw(t, "replicas"), number.Draw(t, "hosts")
			spec.WorkerGroupSpecs = append(spec.WorkerGroupSpecs, rayv1.WorkerGroupSpec{
				Replicas: &replicas, MinReplicas: &replicas, MaxReplicas: &replicas, NumOfHosts: hosts,
			})
			exact += float64(replicas) * float64(max(hosts, 1))
		}
		want := int32(min(exact, math.MaxInt32))
		for _, got := range []int32{DesiredWorkers(&spec), MinWorkers(&spec), MaxWorkers(&spec)} {
			if got != want {
				t.Errorf("number is %d, want %d", got, want)
			}
		}
	})
}

func TestDesiredResources(t *testing.T) {
	container := func(name string, pairs ...string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: quantities(pairs...)}}
	}
	sidecar := func(name string, pairs ...string) corev1.Container {
		c := container(name, pairs...)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		return c
	}
	tests := map[string]struct {
		cluster  *rayv1.RayCluster
		settings Settings
		// want are CPU, memory, GPU and TPU.
		want [4]string
	}{
		"given no resources, nothing": {cluster: demoCluster(), want: [4]string{"0", "0", "0", "0"}},
		"given init containers, the largest of them is a minimum": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				pod := &c.Spec.HeadGroupSpec.Template.Spec
				pod.Containers[0].Resources.Requests = quantities("cpu", "1", "memory", "4Gi")
				pod.InitContainers = []corev1.Container{container("a", "cpu", "3", "memory", "1Gi"), container("b", "cpu", "2")}
			}),
			want: [4]string{"3", "4Gi", "0", "0"},
		},
		"given init containers that go on running, they count with what runs beside and after them": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				pod := &c.Spec.HeadGroupSpec.Template.Spec
				pod.Containers[0].Resources.Requests = quantities("cpu", "1")
				pod.InitContainers = []corev1.Container{sidecar("proxy", "cpu", "500m"), container("setup", "cpu", "2")}
			}),
			want: [4]string{"2500m", "0", "0", "0"},
		},
		"given an overhead, it counts for each Pod": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Replicas, groupA(c).MaxReplicas = ptr.To[int32](3), ptr.To[int32](3)
				groupA(c).Template.Spec.Overhead = quantities("cpu", "100m", "memory", "50Mi")
			}),
			want: [4]string{"300m", "150Mi", "0", "0"},
		},
		"given resources of the Pod as a whole, they count instead of the containers'": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Resources = &corev1.ResourceRequirements{Requests: quantities("cpu", "4"), Limits: quantities("memory", "8Gi")}
				headContainer(c).Resources.Requests = quantities("cpu", "1", "nvidia.com/gpu", "1")
			}),
			want: [4]string{"4", "8Gi", "1", "0"},
		},
		"given a limit of the Pod and requests of containers, the requests count": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Resources = &corev1.ResourceRequirements{Limits: quantities("cpu", "4", "memory", "8Gi")}
				headContainer(c).Resources.Requests = quantities("cpu", "1")
			}),
			want: [4]string{"1", "8Gi", "0", "0"},
		},
		"given what the operator adds to Pods, it counts": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Replicas, groupA(c).MaxReplicas = ptr.To[int32](2), ptr.To[int32](2)
				workerContainer(c).Resources.Requests = quantities("cpu", "100m", "memory", "1Gi")
			}),
			settings: Settings{InjectInitContainer: true, HeadSidecarContainers: []corev1.Container{container("log", "cpu", "1")},
				WorkerSidecarContainers: []corev1.Container{container("log", "cpu", "10m")}},
			want: [4]string{"1400m", "2Gi", "0", "0"}, // the container that waits for the GCS asks for 200m
		},
		"given GPUs of several makes, all count, and other accelerators do not": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Replicas, groupA(c).MaxReplicas = ptr.To[int32](3), ptr.To[int32](3)
				headContainer(c).Resources.Limits = quantities("amd.com/gpu", "1", "gpu.intel.com/i915", "1", "gpu.intel.com/xe", "1",
					"gpu.intel.com/memory.max", "9", "nvidia.com/gpu.shared", "1", "amd.com/cpx_nps4", "1", "habana.ai/gaudi", "9",
					"aws.amazon.com/neuroncore", "9", "nvidia.com/mig-1g.10gb.me", "1")
				workerContainer(c).Resources.Limits = quantities("nvidia.com/mig-2g.20gb", "2")
			}),
			want: [4]string{"0", "0", "12", "0"},
		},
		"given requests and limits, requests count first": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				headContainer(c).Resources.Requests = quantities("cpu", "500m")
				headContainer(c).Resources.Limits = quantities("cpu", "2", "memory", "1Gi")
			}),
			want: [4]string{"500m", "1Gi", "0", "0"},
		},
		"given several containers, all count": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				pod := &c.Spec.HeadGroupSpec.Template.Spec
				pod.Containers[0].Resources.Requests = quantities("cpu", "1")
				pod.Containers = append(pod.Containers, container("log", "cpu", "1500m"))
			}),
			want: [4]string{"2500m", "0", "0", "0"},
		},
		"given more replicas than allowed, the allowed ones count": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Replicas, groupA(c).MaxReplicas, groupA(c).NumOfHosts = ptr.To[int32](7), ptr.To[int32](2), 3
				workerContainer(c).Resources.Limits = quantities("cpu", "1", "nvidia.com/gpu", "3",
					"nvidia.com/mig-1g.5gb", "1", "google.com/tpu", "4")
			}),
			want: [4]string{"6", "0", "24", "24"},
		},
		"given a suspended group, it does not count": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Suspend = ptr.To(true)
				workerContainer(c).Resources.Limits = quantities("cpu", "1")
			}),
			want: [4]string{"0", "0", "0", "0"},
		},
		"given very many workers, the sum is exact": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Replicas, groupA(c).MaxReplicas = ptr.To[int32](math.MaxInt32), ptr.To[int32](math.MaxInt32)
				workerContainer(c).Resources.Limits = quantities("memory", "1Ti")
			}),
			want: [4]string{"0", "2147483647Ti", "0", "0"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := DesiredResources(test.cluster, test.settings)
			texts := [4]string{got.CPU.String(), got.Memory.String(), got.GPU.String(), got.TPU.String()}
			if diff := cmp.Diff(test.want, texts); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}
