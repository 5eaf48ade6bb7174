package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const limit = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "

// example is a RayCluster and what the Ray containers of its head and of group "a" shall run.
type example struct {
	cluster *rayv1.RayCluster
	head    command
	worker  command
}

type command struct {
	Command []string
	// Args are compared with every run of white space as one blank.
	Args []string
}

func inShell(line string) command {
	return command{Command: []string{"/bin/bash", "-c", "--"}, Args: []string{line}}
}

func normalized(container corev1.Container) command {
	c := command{Command: container.Command}
	for _, arg := range container.Args {
		c.Args = append(c.Args, strings.Join(strings.Fields(arg), " "))
	}
	return c
}

const (
	plainHead = "ray start --head --block --dashboard-agent-listen-port=52365 --dashboard-host=0.0.0.0 " +
		"--metrics-export-port=8080"
	plainWorker = "ray start --address=demo-head-svc.ml.svc.cluster.local:6379 --block " +
		"--dashboard-agent-listen-port=52365 --metrics-export-port=8080"
)

// examples are known results of KubeRay. They differ from it in one place: an escaped JSON of custom resources does
// not keep GPUs and other accelerators from being found.
func examples() map[string]example {
	return map[string]example{
		"given containers with name and image only, the defaults are filled in": {
			cluster: demoCluster(),
			head:    inShell(limit + plainHead),
			worker:  inShell(limit + plainWorker),
		},
		"given parameters and limits, both become flags": {
			cluster: demoCluster(exampleB, func(c *rayv1.RayCluster) {
				groupA(c).RayStartParams = map[string]string{"dashboard-agent-listen-port": "53000"}
				workerContainer(c).Resources.Limits = quantities("nvidia.com/gpu", "2", "google.com/tpu", "4", "memory", "4G")
				workerContainer(c).Resources.Requests = quantities("cpu", "2500m")
			}),
			head: inShell(limit + "ray start --head --block --dashboard-agent-listen-port=52365 --dashboard-host=0.0.0.0 " +
				"--dashboard-port=8300 --include-dashboard=false --memory=2147483648 --metrics-export-port=8080 " +
				"--num-cpus=0 --port=6380 --verbose"),
			worker: inShell(limit + "ray start --address=demo-head-svc.ml.svc.cluster.local:6380 --block " +
				"--dashboard-agent-listen-port=53000 --memory=4000000000 --metrics-export-port=8080 --num-cpus=3 " +
				`--num-gpus=2 --resources='{"TPU":4}'`),
		},
		"given escaped JSON as resources, accelerators are added to it": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).RayStartParams = map[string]string{"resources": `"{\"Custom\": 2}"`}
				workerContainer(c).Resources.Limits = quantities("amd.com/gpu", "1", "aws.amazon.com/neuroncore", "4")
			}),
			head:   inShell(limit + plainHead),
			worker: inShell(limit + plainWorker + ` --num-gpus=1 --resources='{"Custom":2,"neuron_cores":4}'`),
		},
		"given escaped JSON as resources and no accelerators, it stays as it is": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).RayStartParams = map[string]string{"resources": `"{\"Custom\": 2}"`}
			}),
			head:   inShell(limit + plainHead),
			worker: inShell(limit + plainWorker + ` --resources="{\"Custom\": 2}"`),
		},
		"given resources and labels of the group, they come before those of the container": {
			cluster: demoCluster(exampleC),
			head:    inShell(limit + plainHead),
			worker: inShell(limit + "ray start --address=demo-head-svc.ml.svc.cluster.local:6379 --block " +
				"--dashboard-agent-listen-port=52365 --labels=tier=gold,zone=z1 --memory=1073741824 " +
				`--metrics-export-port=8080 --num-cpus=4 --num-gpus=2 --resources='{"Custom":1.5,"TPU":4}'`),
		},
		"given a command of the user, it runs before Ray": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				headContainer(c).Command, headContainer(c).Args = []string{"echo"}, []string{"hello", "world"}
			}),
			head:   inShell("echo hello world && " + limit + plainHead),
			worker: inShell(limit + plainWorker),
		},
		"given a command of the user that runs Ray, it is left alone": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				workerContainer(c).Command = []string{"bash", "-c"}
				workerContainer(c).Args = []string{"ray start --address=$RAY_ADDRESS --block"}
			}),
			head: inShell(limit + plainHead),
			worker: command{Command: []string{"bash", "-c"},
				Args: []string{"ray start --address=$RAY_ADDRESS --block"}},
		},
		"given the annotation that leaves commands alone, they are left alone": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Annotations = map[string]string{"ray.io/overwrite-container-cmd": "TRUE"}
				headContainer(c).Args = []string{"$KUBERAY_GEN_RAY_START_CMD"}
			}),
			head:   command{Args: []string{"$KUBERAY_GEN_RAY_START_CMD"}},
			worker: command{},
		},
		"given that annotation on one template, only that group is left alone": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Template.Annotations = map[string]string{"ray.io/overwrite-container-cmd": "true"}
			}),
			head:   inShell(limit + plainHead),
			worker: command{},
		},
		"given block=false, Ray blocks all the same": {
			cluster: demoCluster(exampleJ),
			head:    inShell(limit + plainHead + " --plasma-directory=/data"),
			worker:  inShell(limit + plainWorker),
		},
	}
}

func exampleB(c *rayv1.RayCluster) {
	c.Spec.RayVersion = "2.53.0"
	c.Spec.HeadGroupSpec.RayStartParams = map[string]string{
		"num-cpus": "0", "port": "6380", "dashboard-port": "8300", "include-dashboard": "false", "no-monitor": "false",
		"verbose": "TRUE",
	}
	headContainer(c).Resources.Limits = quantities("cpu", "1500m", "memory", "2Gi")
	headContainer(c).Ports = []corev1.ContainerPort{
		{Name: "gcs-server", ContainerPort: 6380}, {Name: "dashboard", ContainerPort: 8300}, {ContainerPort: 9999},
	}
}

func exampleC(c *rayv1.RayCluster) {
	groupA(c).Resources = map[string]string{
		"CPU": "3.5", "memory": "1Gi", "nvidia.com/gpu": "2", "Custom": "1.5", "TPU": "4",
	}
	groupA(c).Labels = map[string]string{"zone": "z1", "tier": "gold"}
	workerContainer(c).Resources.Limits = quantities("cpu", "8", "memory", "8Gi")
	groupA(c).Template.Labels = map[string]string{"tier": "silver", "ray.io/group": "hacked"}
}

func exampleJ(c *rayv1.RayCluster) {
	c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"block": "false", "plasma-directory": "/data"}
}

func TestCommandsOfExamples(t *testing.T) {
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			head, worker := headOf(test.cluster), workerOf(test.cluster)
			if diff := cmp.Diff(test.head, normalized(head.Spec.Containers[0])); diff != "" {
				t.Errorf("head (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.worker, normalized(worker.Spec.Containers[0])); diff != "" {
				t.Errorf("worker (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStartCommandIsInTheEnvironmentOfEveryExample(t *testing.T) {
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			for _, pod := range []*corev1.Pod{headOf(test.cluster), workerOf(test.cluster)} {
				start := envOf(pod.Spec.Containers[0])["KUBERAY_GEN_RAY_START_CMD"]
				if !strings.HasPrefix(start, "ray start ") || strings.Contains(start, "ulimit") {
					t.Errorf("%s: start command is %q, want the Ray command alone", pod.Name, start)
				}
				if pod.Spec.Containers[0].LivenessProbe == nil || pod.Spec.Containers[0].ReadinessProbe == nil {
					t.Errorf("%s: no probes", pod.Name)
				}
			}
		})
	}
}

func TestOverwriteAnnotationIsCopiedToPods(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Annotations = map[string]string{"ray.io/overwrite-container-cmd": "TRUE"}
	})
	for _, pod := range []*corev1.Pod{headOf(cluster), workerOf(cluster)} {
		if got := pod.Annotations["ray.io/overwrite-container-cmd"]; got != "true" {
			t.Errorf("annotation of %s is %q, want true", pod.Name, got)
		}
	}
}

func TestLabelsOfExampleC(t *testing.T) {
	labels := workerOf(demoCluster(exampleC)).Labels
	want := map[string]string{"tier": "gold", "zone": "z1", "ray.io/group": "a"}
	for key, value := range want {
		if labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, labels[key], value)
		}
	}
}

func TestSharedMemory(t *testing.T) {
	tests := map[string]struct {
		pod *corev1.Pod
		// want is the size of the room at /dev/shm, "none" for room without a limit, or empty for no room.
		want string
	}{
		"given a memory limit, the room is as large":                  {pod: headOf(demoCluster(exampleB)), want: "2Gi"},
		"given resources of the group, the container's limit decides": {pod: workerOf(demoCluster(exampleC)), want: "8Gi"},
		"given no memory at all, the room has no limit":               {pod: headOf(demoCluster()), want: "none"},
		"given a memory request only, the room is as large": {want: "3Gi", pod: headOf(demoCluster(func(c *rayv1.RayCluster) {
			headContainer(c).Resources.Requests = quantities("memory", "3Gi")
		}))},
		"given another directory for objects, there is no room": {pod: headOf(demoCluster(exampleJ))},
		"given a mount of the user at that place, there is no room": {pod: headOf(demoCluster(func(c *rayv1.RayCluster) {
			headContainer(c).VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/dev/shm"}}
		}))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, volume := range test.pod.Spec.Volumes {
				if volume.Name != "shared-mem" {
					continue
				}
				got = "none"
				if size := volume.EmptyDir.SizeLimit; size != nil {
					got = size.String()
				}
			}
			mounted := false
			for _, mount := range test.pod.Spec.Containers[0].VolumeMounts {
				mounted = mounted || mount.Name == "shared-mem" && mount.MountPath == "/dev/shm"
			}
			if got != test.want || mounted != (test.want != "") {
				t.Errorf("room is %q, mounted: %v; want %q", got, mounted, test.want)
			}
		})
	}
}

func TestTemplateNamesDoNotCount(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Name, c.Spec.HeadGroupSpec.Template.Namespace = "fixed", "other"
		groupA(c).Template.Name, groupA(c).Template.Namespace = "fixed", "other"
	})
	for _, pod := range []*corev1.Pod{headOf(cluster), workerOf(cluster)} {
		if !strings.HasPrefix(pod.Name, "demo-") || pod.GenerateName != "" || pod.Namespace != "ml" {
			t.Errorf("Pod is %s/%s, want a computed name in ml", pod.Namespace, pod.Name)
		}
	}
}

func TestEnvironmentAndProbesOfExampleB(t *testing.T) {
	cluster := demoCluster(exampleB)
	for pod, address := range map[*corev1.Pod]string{
		headOf(cluster): "127.0.0.1:6380", workerOf(cluster): "demo-head-svc.ml.svc.cluster.local:6380",
	} {
		container := pod.Spec.Containers[0]
		env := envOf(container)
		if env["RAY_PORT"] != "6380" || env["RAY_ADDRESS"] != address {
			t.Errorf("%s: RAY_PORT is %q, RAY_ADDRESS %q; want 6380 and %q", pod.Name, env["RAY_PORT"], env["RAY_ADDRESS"], address)
		}
		request := container.ReadinessProbe.HTTPGet
		if request == nil || request.Path != "/api/healthz" || request.Port.IntValue() != 52365 {
			t.Errorf("%s: readiness is %+v, want a request for /api/healthz on 52365", pod.Name, container.ReadinessProbe.ProbeHandler)
		}
	}
}
