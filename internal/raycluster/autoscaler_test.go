package raycluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// autoscaled switches the autoscaler on, with the options if there are any.
func autoscaled(options ...rayv1.AutoscalerOptions) func(*rayv1.RayCluster) {
	return func(c *rayv1.RayCluster) {
		c.Spec.EnableInTreeAutoscaling = ptr.To(true)
		headContainer(c).Resources.Limits = quantities("cpu", "1", "memory", "1Gi")
		for i := range options {
			c.Spec.AutoscalerOptions = &options[i]
		}
	}
}

func version(v rayv1.AutoscalerVersion) rayv1.AutoscalerOptions {
	return rayv1.AutoscalerOptions{Version: &v}
}

func namesIn(pod *corev1.Pod) (containers, volumes []string) {
	for _, c := range pod.Spec.Containers {
		containers = append(containers, c.Name)
	}
	for _, v := range pod.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	return containers, volumes
}

func TestPodsWithAutoscaler(t *testing.T) {
	const plain = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
	restart := func(policy corev1.RestartPolicy) func(*rayv1.RayCluster) {
		return func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = policy }
	}
	for name, tc := range map[string]struct {
		cluster *rayv1.RayCluster
		account string
		v2      string
		never   bool
		// args is what the autoscaler runs, "loop" for the plain start line in a loop.
		args string
	}{
		"given no version, Ray decides": {cluster: demoCluster(autoscaled()), account: "demo", args: plain},
		"given v1, Ray is told":         {cluster: demoCluster(autoscaled(version("v1"))), account: "demo", v2: "false", args: plain},
		"given v2, no Pod is restarted, and the autoscaler comes back on its own": {
			cluster: demoCluster(autoscaled(version("v2"))), account: "demo", v2: "true", never: true, args: "loop"},
		"given a head that is not restarted, the autoscaler comes back on its own": {
			cluster: demoCluster(autoscaled(), restart(corev1.RestartPolicyNever)), account: "demo", args: "loop"},
		"given an account of the user, it is used": {
			cluster: demoCluster(autoscaled(), func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.Template.Spec.ServiceAccountName = "mine" }),
			account: "mine", args: plain},
		"given a long name, the account's is shorter": {
			cluster: demoCluster(autoscaled(), func(c *rayv1.RayCluster) { c.Name = strings.Repeat("d", 53) }),
			account: ShortName(strings.Repeat("d", 53)), args: plain},
		"given a command of the user, the start line stays plain": {
			cluster: demoCluster(autoscaled(rayv1.AutoscalerOptions{Version: ptr.To(rayv1.AutoscalerVersionV2), Command: []string{"sh", "-c"}})),
			account: "demo", v2: "true", never: true, args: plain},
		"given arguments of the user, they count": {
			cluster: demoCluster(autoscaled(rayv1.AutoscalerOptions{Args: []string{"my own"}})), account: "demo", args: "my own"},
	} {
		t.Run(name, func(t *testing.T) {
			head, worker := headOf(tc.cluster), workerOf(tc.cluster)
			containers, volumes := namesIn(head)
			if d := cmp.Diff([]string{"ray-head", "autoscaler"}, containers); d != "" {
				t.Errorf("containers (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{"shared-mem", "ray-logs"}, volumes); d != "" {
				t.Errorf("volumes (-want +got):\n%s", d)
			}
			if line := normalized(head.Spec.Containers[0]).Args[0]; !strings.Contains(line, " --no-monitor") {
				t.Errorf("the head runs %q, want it to leave scaling to the autoscaler", line)
			}
			if got := envOf(head.Spec.Containers[0])["RAY_enable_autoscaler_v2"]; got != tc.v2 {
				t.Errorf("RAY_enable_autoscaler_v2 is %q, want %q", got, tc.v2)
			}
			if head.Spec.ServiceAccountName != tc.account {
				t.Errorf("account %q, want %q", head.Spec.ServiceAccountName, tc.account)
			}
			if never := worker.Spec.RestartPolicy == corev1.RestartPolicyNever; never != tc.never {
				t.Errorf("workers are never restarted: %v, want %v", never, tc.never)
			}
			got := head.Spec.Containers[1].Args[0]
			if tc.args == "loop" {
				if !strings.Contains(got, "while true") || !strings.Contains(got, plain) {
					t.Errorf("the autoscaler runs %q, want the start line in a loop", got)
				}
			} else if got != tc.args {
				t.Errorf("the autoscaler runs %q, want %q", got, tc.args)
			}
			if start := envOf(head.Spec.Containers[1])["KUBERAY_GEN_AUTOSCALER_START_CMD"]; start != plain {
				t.Errorf("the start line for users is %q, want %q", start, plain)
			}
			if names, _ := namesIn(worker); len(names) != 1 {
				t.Errorf("a worker has containers %v", names)
			}
		})
	}
}

func TestAutoscalerContainer(t *testing.T) {
	options := rayv1.AutoscalerOptions{
		Image:           ptr.To("mine:1"),
		ImagePullPolicy: ptr.To(corev1.PullAlways),
		Resources:       &corev1.ResourceRequirements{Limits: quantities("cpu", "2")},
		Command:         []string{"sh"},
		Args:            []string{"-x"},
		Env:             []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "RAY_AUTH_MODE", Value: "x"}},
		EnvFrom:         []corev1.EnvFromSource{{Prefix: "P"}},
		VolumeMounts:    []corev1.VolumeMount{{Name: "v", MountPath: "/tmp/ray"}},
		SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(false)},
	}
	logs := corev1.VolumeMount{Name: "ray-logs", MountPath: "/tmp/ray"}

	t.Run("given no options, it has the defaults", func(t *testing.T) {
		got := headOf(demoCluster(autoscaled(), func(c *rayv1.RayCluster) { headContainer(c).ImagePullPolicy = corev1.PullNever })).Spec.Containers[1]
		if got.Image != "img:1" || got.ImagePullPolicy != corev1.PullIfNotPresent {
			t.Errorf("image %s, pull policy %s", got.Image, got.ImagePullPolicy)
		}
		want := corev1.ResourceRequirements{Limits: quantities("cpu", "500m", "memory", "512Mi"), Requests: quantities("cpu", "500m", "memory", "512Mi")}
		if d := cmp.Diff(want, got.Resources); d != "" {
			t.Errorf("resources (-want +got):\n%s", d)
		}
		wantEnv := []string{"RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_HEAD_POD_NAME", "KUBERAY_CRD_VER",
			"KUBERAY_GEN_AUTOSCALER_START_CMD", "RAY_AUTH_MODE"}
		if d := cmp.Diff(wantEnv, namesOf(got)); d != "" {
			t.Errorf("variables (-want +got):\n%s", d)
		}
		if d := cmp.Diff([]corev1.VolumeMount{logs}, got.VolumeMounts); d != "" {
			t.Errorf("mounts (-want +got):\n%s", d)
		}
		if got.LivenessProbe != nil || got.ReadinessProbe != nil {
			t.Error("it has a probe")
		}
	})
	t.Run("given options, they count, and its folder for logs is the user's", func(t *testing.T) {
		got := headOf(demoCluster(autoscaled(options))).Spec.Containers[1]
		env := got.Env[5:]
		got.Env = nil
		want := corev1.Container{Name: "autoscaler", Image: "mine:1", ImagePullPolicy: corev1.PullAlways, Resources: *options.Resources,
			Command: options.Command, Args: options.Args, EnvFrom: options.EnvFrom, VolumeMounts: options.VolumeMounts,
			SecurityContext: options.SecurityContext}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("container (-want +got):\n%s", d)
		}
		if d := cmp.Diff(options.Env, env); d != "" {
			t.Errorf("variables after the five of the operator (-want +got):\n%s", d)
		}
	})
}

func TestNotesOnGroups(t *testing.T) {
	cpus := func(c *rayv1.RayCluster) { workerContainer(c).Resources.Requests = quantities("cpu", "1") }
	for name, tc := range map[string]struct {
		cluster *rayv1.RayCluster
		want    []string
	}{
		"given no autoscaler, CPUs may be unknown": {cluster: demoCluster()},
		"given CPUs everywhere, all is well":       {cluster: demoCluster(autoscaled(), cpus)},
		"given CPUs as a parameter, all is well": {cluster: demoCluster(autoscaled(), func(c *rayv1.RayCluster) {
			groupA(c).RayStartParams = map[string]string{"num-cpus": "1"}
		})},
		"given CPUs as a resource of the group, all is well": {cluster: demoCluster(autoscaled(), func(c *rayv1.RayCluster) {
			groupA(c).Resources = map[string]string{"CPU": "1"}
		})},
		"given a group of unknown size, it is named": {cluster: demoCluster(autoscaled()), want: []string{"group a: Ray's autoscaler fails"}},
		"given a head without a token for the API server, that is said": {cluster: demoCluster(autoscaled(), cpus, func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Template.Spec.AutomountServiceAccountToken = ptr.To(false)
		}), want: []string{"headGroupSpec: with automountServiceAccountToken false"}},
		"given v1 and workers that are restarted, that is said": {
			cluster: demoCluster(autoscaled(version("v1")), cpus, func(c *rayv1.RayCluster) {
				groupA(c).Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}), want: []string{"group a: with restartPolicy Always"}},
		"given resources that cannot be read, that is said": {cluster: demoCluster(func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Resources = map[string]string{"CPU": "many"}
			groupA(c).RayStartParams = map[string]string{"resources": "{x"}
		}), want: []string{`headGroupSpec: resources["CPU"]`, "group a: rayStartParams[resources]"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &planner{cluster: tc.cluster}
			p.noteGroups()
			if len(p.notes) != len(tc.want) {
				t.Fatalf("notes %q, want %q", p.notes, tc.want)
			}
			for i := range tc.want {
				if !strings.HasPrefix(p.notes[i], tc.want[i]) {
					t.Errorf("note %q, want %q", p.notes[i], tc.want[i])
				}
			}
		})
	}
}
