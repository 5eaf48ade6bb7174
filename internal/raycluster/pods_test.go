package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestAuthModeIsAlwaysSaid(t *testing.T) {
	token := []corev1.EnvVar{{Name: "RAY_AUTH_MODE", Value: "token"}}
	tests := map[string]struct {
		env      []corev1.EnvVar
		envFrom  []corev1.EnvFromSource
		defaults []corev1.EnvVar
		// want are all values of the variable, in order.
		want []string
	}{
		"given nothing, authentication is disabled":               {want: []string{"disabled"}},
		"given the user's own value, it is the only one":          {env: token, want: []string{"token"}},
		"given variables from elsewhere, none of them is hidden":  {envFrom: []corev1.EnvFromSource{{Prefix: "X"}}},
		"given the operator's default, it is the only one":        {defaults: token, want: []string{"token"}},
		"given both the user's and the operator's, the user wins": {env: token, defaults: []corev1.EnvVar{{Name: "RAY_AUTH_MODE"}}, want: []string{"token"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(func(c *rayv1.RayCluster) {
				workerContainer(c).Env, workerContainer(c).EnvFrom = test.env, test.envFrom
			})
			settings := DefaultSettings()
			settings.DefaultContainerEnvs = test.defaults
			pod := WorkerPod(cluster, groupA(cluster), settings, PodSlot{Group: "a", Incarnation: 1})
			if diff := cmp.Diff(test.want, valuesOf(pod.Spec.Containers[0], "RAY_AUTH_MODE")); diff != "" {
				t.Errorf("Ray container (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.envFrom, pod.Spec.InitContainers[0].EnvFrom); diff != "" {
				t.Errorf("sources of the init container (-want +got):\n%s", diff)
			}
		})
	}
}

func valuesOf(container corev1.Container, name string) []string {
	var values []string
	for _, env := range container.Env {
		if env.Name == name {
			values = append(values, env.Value)
		}
	}
	return values
}

func TestEnvironmentOfTheUserAndOfTheOperator(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		headContainer(c).Env = []corev1.EnvVar{{Name: "RAY_ADDRESS", Value: "mine"}, {Name: "RAY_CLUSTER_NAME", Value: "mine"}}
	})
	settings := DefaultSettings()
	settings.DefaultContainerEnvs = []corev1.EnvVar{{Name: "RAY_ADDRESS", Value: "default"}, {Name: "EXTRA", Value: "default"}}
	container := HeadPod(cluster, settings, 1).Spec.Containers[0]
	want := map[string][]string{
		// Nobody else's value is added where the user has one, except where Ray depends on ours: the last one wins.
		"RAY_ADDRESS":      {"mine"},
		"RAY_CLUSTER_NAME": {"mine", ""},
		"EXTRA":            {"default"},
	}
	for name, values := range want {
		if diff := cmp.Diff(values, valuesOf(container, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if names := namesOf(container); names[2] != "RAY_AUTH_MODE" || names[3] != "EXTRA" || names[4] != "RAY_CLUSTER_NAME" {
		t.Errorf("the order is %v, want the operator's defaults between RAY_AUTH_MODE and RAY_CLUSTER_NAME", names)
	}
}

func namesOf(container corev1.Container) []string {
	var names []string
	for _, env := range container.Env {
		names = append(names, env.Name)
	}
	return names
}

func TestLabelsThatServicesAndCachesNeedAreReserved(t *testing.T) {
	users := map[string]string{
		"ray.io/cluster": "x", "ray.io/node-type": "x", "ray.io/group": "x", "ray.io/identifier": "x",
		"app.kubernetes.io/created-by": "x", "heliostat.io/incarnation": "x", "ray.io/worker-group-replica-index": "x",
		"app.kubernetes.io/name": "my", "ray.io/is-ray-node": "maybe", "tier": "silver",
	}
	group := map[string]string{"tier": "gold", "ray.io/identifier": "y", "app.kubernetes.io/created-by": "y"}
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Labels, c.Spec.HeadGroupSpec.Labels = users, group
		groupA(c).Template.Labels, groupA(c).Labels = users, group
	})
	common := map[string]string{
		"ray.io/cluster": "demo", "app.kubernetes.io/created-by": "kuberay-operator", "app.kubernetes.io/name": "my",
		"ray.io/is-ray-node": "maybe", "tier": "gold", "heliostat.io/incarnation": "1",
	}
	head := map[string]string{
		"ray.io/node-type": "head", "ray.io/group": "headgroup", "ray.io/identifier": "demo-head",
		"ray.io/worker-group-replica-index": "x",
	}
	worker := map[string]string{
		"ray.io/node-type": "worker", "ray.io/group": "a", "ray.io/identifier": "demo-worker",
		"ray.io/worker-group-replica-index": "0",
	}
	if diff := cmp.Diff(overlay(common, head), headOf(cluster).Labels); diff != "" {
		t.Errorf("labels of the head (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(overlay(common, worker), workerOf(cluster).Labels); diff != "" {
		t.Errorf("labels of the worker (-want +got):\n%s", diff)
	}
}

func TestPodsOfReplicasWithSeveralHosts(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) { groupA(c).NumOfHosts = 4 })
	labels := func(replica, host int, incarnation int64) map[string]string {
		slot := PodSlot{Group: "a", Replica: replica, Host: host, Incarnation: incarnation}
		return WorkerPod(cluster, groupA(cluster), DefaultSettings(), slot).Labels
	}
	first, again, other := labels(2, 0, 1), labels(2, 3, 9), labels(1, 0, 2)
	name := first["ray.io/worker-group-replica-name"]
	if !strings.HasPrefix(name, "a-") || len(name) != len("a-")+5 {
		t.Errorf("replica name is %q, want a- and five characters", name)
	}
	if again["ray.io/worker-group-replica-name"] != name || other["ray.io/worker-group-replica-name"] == name {
		t.Errorf("replica names are %q and %q in one replica, %q in another",
			name, again["ray.io/worker-group-replica-name"], other["ray.io/worker-group-replica-name"])
	}
	if again["ray.io/worker-group-replica-index"] != "2" || again["ray.io/replica-host-index"] != "3" {
		t.Errorf("labels are %v, want replica 2 and host 3", again)
	}
}

func TestPodsOfARayService(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.RayVersion = "2.60.0"
		c.Labels = map[string]string{"ray.io/originated-from-crd": "RayService"}
		workerContainer(c).Ports = []corev1.ContainerPort{{Name: "serve", ContainerPort: 9000}}
	})
	head, worker := headOf(cluster), workerOf(cluster)
	if head.Labels["ray.io/serve"] != "false" || worker.Labels["ray.io/serve"] != "true" {
		t.Errorf("ray.io/serve is %q on the head, %q on the worker", head.Labels["ray.io/serve"], worker.Labels["ray.io/serve"])
	}
	want := execProbe(10, 2, 1, rayletCheck+" && wget --tries 1 -T 10 -q -O- http://localhost:9000/-/healthz | grep success")
	if diff := cmp.Diff(want, worker.Spec.Containers[0].ReadinessProbe); diff != "" {
		t.Errorf("readiness of the worker (-want +got):\n%s", diff)
	}
	if worker.Spec.Containers[0].LivenessProbe.HTTPGet == nil {
		t.Error("liveness of the worker is no HTTP request")
	}
	for _, pod := range []*corev1.Pod{head, worker} {
		env := envOf(pod.Spec.Containers[0])
		for name, want := range map[string]string{
			"RAY_timeout_ms_task_wait_for_death_info": "0", "RAY_gcs_server_request_timeout_seconds": "5", "RAY_SERVE_KV_TIMEOUT_S": "5",
			"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "30",
		} {
			if env[name] != want {
				t.Errorf("%s: %s is %q, want %s", pod.Name, name, env[name], want)
			}
		}
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 60 {
			t.Errorf("%s: the grace period is %v, want 60 s", pod.Name, grace)
		}
	}
	if tags := envOf(head.Spec.Containers[0])["RAY_USAGE_STATS_EXTRA_TAGS"]; !strings.HasSuffix(tags, "kuberay_crd=RayService") {
		t.Errorf("tags of the head are %s", tags)
	}
	if service := HeadService(cluster, Settings{HeadClusterIPService: true}); !service.Spec.PublishNotReadyAddresses {
		t.Error("workers lose a head whose Serve proxy is dead")
	}
}

func TestWhatTheUserSaysOfTheEndOfPodsCounts(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Labels = map[string]string{"ray.io/originated-from-crd": "RayService"}
		groupA(c).Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](300)
		workerContainer(c).Env = []corev1.EnvVar{{Name: "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", Value: "240"}}
	})
	worker := workerOf(cluster)
	if grace := worker.Spec.TerminationGracePeriodSeconds; *grace != 300 {
		t.Errorf("the grace period is %d s, want the user's 300", *grace)
	}
	if diff := cmp.Diff([]string{"240"}, valuesOf(worker.Spec.Containers[0], "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S")); diff != "" {
		t.Errorf("time for draining (-want +got):\n%s", diff)
	}
	plain := workerOf(demoCluster())
	if grace := plain.Spec.TerminationGracePeriodSeconds; grace != nil {
		t.Errorf("the worker of a plain RayCluster has a grace period of %d s", *grace)
	}
}

// L54
func TestWorkersWithoutAServeProxy(t *testing.T) {
	for location, serves := range map[string]string{"HeadOnly": "false", "Disabled": "false", "EveryNode": "true", "": "true"} {
		worker := workerOf(demoCluster(func(c *rayv1.RayCluster) {
			c.Labels = map[string]string{"ray.io/originated-from-crd": "RayService"}
			c.Annotations = map[string]string{"heliostat.io/serve-proxy-location": location}
		}))
		probe := execProbe(10, 2, 10, rayletCheck)
		if serves == "true" {
			probe = execProbe(10, 2, 1, rayletCheck+" && wget --tries 1 -T 10 -q -O- http://localhost:8000/-/healthz | grep success")
		}
		if diff := cmp.Diff(probe, worker.Spec.Containers[0].ReadinessProbe); diff != "" || worker.Labels["ray.io/serve"] != serves {
			t.Errorf("given %q, ray.io/serve is %s, want %s; readiness (-want +got):\n%s", location, worker.Labels["ray.io/serve"], serves, diff)
		}
	}
}

func TestProbesByVersion(t *testing.T) {
	tests := map[string]struct {
		version string
		http    bool
	}{
		"given no version, commands are run":          {version: ""},
		"given no real version, commands are run":     {version: "nightly"},
		"given an older version, commands are run":    {version: "2.52.9"},
		"given a pre-release, commands are run":       {version: "2.53.0-rc1"},
		"given the first version with it, HTTP":       {version: "2.53.0", http: true},
		"given a version without patch, HTTP":         {version: "2.53", http: true},
		"given a later version of two digits, HTTP":   {version: "2.100.0", http: true},
		"given the build of a later version, HTTP":    {version: "v3.0.0+gpu", http: true},
		"given a version with four parts, no version": {version: "2.58.0.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.RayVersion = test.version
				c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"dashboard-agent-listen-port": "53000"}
			})
			for _, probe := range []*corev1.Probe{
				headOf(cluster).Spec.Containers[0].LivenessProbe, headOf(cluster).Spec.Containers[0].ReadinessProbe,
			} {
				if (probe.HTTPGet != nil) != test.http || (probe.Exec != nil) == test.http {
					t.Fatalf("probe is %v, want HTTP: %v", probe.ProbeHandler, test.http)
				}
				if test.http && (probe.HTTPGet.Path != "/api/healthz" || probe.HTTPGet.Port.IntValue() != 53000) {
					t.Errorf("request is %v, want /api/healthz on 53000", probe.HTTPGet)
				}
			}
		})
	}
}

func TestSettingsShapePods(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Annotations = map[string]string{"kept": "user"}
		groupA(c).Template.Spec.InitContainers = []corev1.Container{{Name: "own"}}
	})
	settings := Settings{
		ClusterDomain: "corp.example", LoginShell: true, DeterministicHeadPodName: true,
		DefaultPodLabels:        map[string]string{"team": "ops", "ray.io/group": "x"},
		DefaultPodAnnotations:   map[string]string{"kept": "operator", "added": "operator"},
		HeadSidecarContainers:   []corev1.Container{{Name: "head-sidecar"}},
		WorkerSidecarContainers: []corev1.Container{{Name: "worker-sidecar"}},
	}
	head := HeadPod(cluster, settings, 1)
	worker := WorkerPod(cluster, groupA(cluster), settings, PodSlot{Group: "a", Incarnation: 1})
	if head.Name != "demo-head" {
		t.Errorf("head is called %s, want demo-head", head.Name)
	}
	if head.Spec.Containers[1].Name != "head-sidecar" || worker.Spec.Containers[1].Name != "worker-sidecar" {
		t.Error("the sidecars are not behind the Ray container")
	}
	if len(worker.Spec.InitContainers) != 1 || envOf(worker.Spec.InitContainers[0])["RAY_IP"] != "demo-head-svc" {
		t.Errorf("init containers are %v, want only the user's, which knows the head", worker.Spec.InitContainers)
	}
	if worker.Spec.Containers[0].LivenessProbe != nil || worker.Spec.Containers[0].Command[1] != "-cl" {
		t.Error("the worker has probes, or no login shell")
	}
	if got := envOf(worker.Spec.Containers[0])["RAY_ADDRESS"]; got != "demo-head-svc.ml.svc.corp.example:6379" {
		t.Errorf("RAY_ADDRESS is %s", got)
	}
	if head.Labels["team"] != "ops" || head.Labels["ray.io/group"] != "headgroup" ||
		head.Annotations["kept"] != "user" || head.Annotations["added"] != "operator" {
		t.Errorf("labels %v or annotations %v are not as the operator's defaults ask", head.Labels, head.Annotations)
	}
}

func TestBuildersLeaveTheirArgumentsAloneAndAreRepeatable(t *testing.T) {
	for name, test := range examples() {
		t.Run(name, func(t *testing.T) {
			before := test.cluster.DeepCopy()
			settings := DefaultSettings()
			settings.HeadSidecarContainers = []corev1.Container{{Name: "sidecar"}}
			first := []any{headOf(test.cluster), workerOf(test.cluster), HeadService(test.cluster, settings)}
			second := []any{headOf(test.cluster), workerOf(test.cluster), HeadService(test.cluster, settings)}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second call gives something else:\n%s", diff)
			}
			if diff := cmp.Diff(before, test.cluster); diff != "" {
				t.Errorf("the cluster was changed:\n%s", diff)
			}
		})
	}
}

func TestTemplatesWithoutContainersDoNotPanic(t *testing.T) {
	cluster := demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.HeadGroupSpec.Template.Spec.Containers = nil
		groupA(c).Template.Spec.Containers = nil
	})
	if pod := headOf(cluster); len(pod.Spec.Containers) != 0 {
		t.Errorf("containers of the head are %v", pod.Spec.Containers)
	}
	if pod := workerOf(cluster); len(pod.Spec.Containers) != 0 {
		t.Errorf("containers of the worker are %v", pod.Spec.Containers)
	}
}
