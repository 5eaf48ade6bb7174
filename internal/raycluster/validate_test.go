package raycluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/google/go-cmp/cmp"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestValidate(t *testing.T) {
	v2 := func(c *rayv1.RayCluster) {
		c.Spec.EnableInTreeAutoscaling = ptr.To(true)
		c.Spec.AutoscalerOptions = &rayv1.AutoscalerOptions{Version: ptr.To(rayv1.AutoscalerVersionV2)}
	}
	tests := map[string]struct {
		cluster *rayv1.RayCluster
		// want are the beginnings of the errors, in order.
		want []string
	}{
		"given a plain cluster, nothing is wrong":   {cluster: demoCluster()},
		"given a name of 53 characters, it is fine": {cluster: demoCluster(func(c *rayv1.RayCluster) { c.Name = strings.Repeat("a", 53) })},
		"given a name of 54 characters": {
			cluster: demoCluster(func(c *rayv1.RayCluster) { c.Name = strings.Repeat("a", 54) }),
			want:    []string{`metadata.name: Invalid value: "aaaaaa`},
		},
		"given a name that begins with a digit": {
			cluster: demoCluster(func(c *rayv1.RayCluster) { c.Name = "1a" }),
			want:    []string{`metadata.name: Invalid value: "1a"`},
		},
		"given templates without containers": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.Containers, groupA(c).Template.Spec.Containers = nil, nil
			}),
			want: []string{
				"spec.headGroupSpec.template.spec.containers: Required value", "spec.workerGroupSpecs[0].template.spec.containers: Required value",
			},
		},
		"given resources in two ways": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).Resources = map[string]string{"CPU": "1"}
				groupA(c).RayStartParams = map[string]string{"memory": "5", "num-cpus": "1", "port": "1"}
			}),
			want: []string{
				`spec.workerGroupSpecs[0].rayStartParams[num-cpus]: Invalid value: "1": cannot be combined with spec.workerGroupSpecs[0].resources`,
				`spec.workerGroupSpecs[0].rayStartParams[memory]: Invalid value: "5"`,
			},
		},
		"given labels as a parameter and labels that are none": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"labels": "a=b"}
				c.Spec.HeadGroupSpec.Labels = map[string]string{"a b": "ok", "ok": "a b"}
			}),
			want: []string{
				`spec.headGroupSpec.rayStartParams[labels]: Invalid value: "a=b": must be written as spec.headGroupSpec.labels`,
				`spec.headGroupSpec.labels[a b]: Invalid value: "a b"`, `spec.headGroupSpec.labels[ok]: Invalid value: "a b"`,
			},
		},
		"given a least number above the greatest": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).MinReplicas, groupA(c).MaxReplicas = ptr.To[int32](3), ptr.To[int32](2)
			}),
			want: []string{`spec.workerGroupSpecs[0].minReplicas: Invalid value: 3: must not be greater than maxReplicas, which is 2`},
		},
		"given negative bounds and hosts": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).MinReplicas, groupA(c).MaxReplicas, groupA(c).NumOfHosts = ptr.To[int32](-2), ptr.To[int32](-1), -1
			}),
			want: []string{
				"spec.workerGroupSpecs[0].minReplicas: Invalid value: -2", "spec.workerGroupSpecs[0].maxReplicas: Invalid value: -1",
				"spec.workerGroupSpecs[0].numOfHosts: Invalid value: -1: must be at least 1 and at most 4096",
			},
		},
		"given no bounds": {
			cluster: demoCluster(func(c *rayv1.RayCluster) { groupA(c).MinReplicas, groupA(c).MaxReplicas = nil, nil }),
			want:    []string{"spec.workerGroupSpecs[0].minReplicas: Required value", "spec.workerGroupSpecs[0].maxReplicas: Required value"},
		},
		"given no bounds with the autoscaler, it is fine": {cluster: demoCluster(v2, func(c *rayv1.RayCluster) {
			groupA(c).MinReplicas, groupA(c).MaxReplicas = nil, nil
		})},
		"given bad names of groups": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				for _, name := range []string{"a", "headgroup", "", "x y"} {
					group := *groupA(c).DeepCopy()
					group.GroupName = name
					c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, group)
				}
			}),
			want: []string{
				`spec.workerGroupSpecs[1].groupName: Duplicate value: "a"`, `spec.workerGroupSpecs[2].groupName: Invalid value: "headgroup"`,
				`spec.workerGroupSpecs[3].groupName: Required value`, `spec.workerGroupSpecs[4].groupName: Invalid value: "x y"`,
			},
		},
		"given an idle time-out without version v2": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				groupA(c).IdleTimeoutSeconds = ptr.To[int32](30)
				c.Spec.EnableInTreeAutoscaling = ptr.To(true)
				c.Spec.AutoscalerOptions = &rayv1.AutoscalerOptions{Version: ptr.To(rayv1.AutoscalerVersionV1)}
			}),
			want: []string{"spec.workerGroupSpecs[0].idleTimeoutSeconds: Invalid value: 30: needs the autoscaler of version v2"},
		},
		"given an idle time-out with the variable for v2, it is fine": {cluster: demoCluster(func(c *rayv1.RayCluster) {
			groupA(c).IdleTimeoutSeconds = ptr.To[int32](30)
			c.Spec.EnableInTreeAutoscaling = ptr.To(true)
			headContainer(c).Env = []corev1.EnvVar{{Name: "RAY_enable_autoscaler_v2", Value: "1"}}
		})},
		"given a priority with an old version of Ray": {
			cluster: demoCluster(v2, func(c *rayv1.RayCluster) {
				groupA(c).Priority = ptr.To[int32](1)
				c.Spec.RayVersion = "2.55.9"
			}),
			want: []string{`spec.workerGroupSpecs[0].priority: Invalid value: 1: needs spec.rayVersion 2.56.0 or newer, not "2.55.9"`},
		},
		"given a priority with a new version of Ray, it is fine": {cluster: demoCluster(v2, func(c *rayv1.RayCluster) {
			groupA(c).Priority = ptr.To[int32](1)
			c.Spec.RayVersion = "2.56.0"
		})},
		"given a suspended group with the autoscaler": {
			cluster: demoCluster(v2, func(c *rayv1.RayCluster) { groupA(c).Suspend = ptr.To(true) }),
			want:    []string{"spec.workerGroupSpecs[0].suspend: Invalid value: true"},
		},
		"given a user name for Redis outside of the options": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"redis-username": "u"}
				headContainer(c).Env = []corev1.EnvVar{{Name: "REDIS_USERNAME", Value: "u"}}
			}),
			want: []string{
				`spec.headGroupSpec.rayStartParams[redis-username]: Invalid value: "u"`,
				`spec.headGroupSpec.template.spec.containers[0].env: Invalid value: "REDIS_USERNAME"`,
			},
		},
		"given the variable for v2 without the autoscaler": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				headContainer(c).Env = []corev1.EnvVar{{Name: "RAY_enable_autoscaler_v2", Value: "true"}}
			}),
			want: []string{`spec.headGroupSpec.template.spec.containers[0].env: Invalid value: "RAY_enable_autoscaler_v2=true": needs spec.enableInTreeAutoscaling`},
		},
		"given the variable for v2 and a version": {
			cluster: demoCluster(v2, func(c *rayv1.RayCluster) {
				headContainer(c).Env = []corev1.EnvVar{{Name: "RAY_enable_autoscaler_v2", Value: "0"}}
			}),
			want: []string{`spec.headGroupSpec.template.spec.containers[0].env: Invalid value: "RAY_enable_autoscaler_v2=0": cannot be combined`},
		},
		"given restart policies with v2": {
			cluster: demoCluster(v2, func(c *rayv1.RayCluster) {
				c.Spec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
				groupA(c).Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}),
			want: []string{`spec.workerGroupSpecs[0].template.spec.restartPolicy: Invalid value: "Always": must be Never`},
		},
		"given bad options of the autoscaler": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.AutoscalerOptions = &rayv1.AutoscalerOptions{
					IdleTimeoutSeconds: ptr.To[int32](-1), Env: []corev1.EnvVar{{Name: "A"}, {Name: "KUBERAY_GEN_AUTOSCALER_START_CMD"}},
				}
			}),
			want: []string{
				"spec.autoscalerOptions.idleTimeoutSeconds: Invalid value: -1",
				`spec.autoscalerOptions.env[1].name: Invalid value: "KUBERAY_GEN_AUTOSCALER_START_CMD": is set by the operator`,
			},
		},
		"given Recreate for the cluster of a RayJob": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Labels = map[string]string{"ray.io/originated-from-crd": "RayJob"}
				c.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
			}),
			want: []string{`spec.upgradeStrategy.type: Invalid value: "Recreate": is not for a RayCluster that belongs to a RayJob`},
		},
		"given an unknown upgrade strategy": {
			cluster: demoCluster(func(c *rayv1.RayCluster) {
				c.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterUpgradeType("Sometimes"))}
			}),
			want: []string{`spec.upgradeStrategy.type: Unsupported value: "Sometimes": supported values: "Recreate", "None"`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for i, err := range Validate(test.cluster, DefaultSettings()) {
				text := err.Error()
				if i < len(test.want) && strings.HasPrefix(text, test.want[i]) {
					text = test.want[i]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotServed(t *testing.T) {
	if got := NotServed(&demoCluster(autoscaled(), func(c *rayv1.RayCluster) {
		c.Spec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}
		c.Spec.TLSOptions = &rayv1.TLSOptions{}
		c.Spec.HeadGroupSpec.EnableIngress = ptr.To(true)
		c.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
		c.Spec.GcsFaultToleranceOptions = &rayv1.GcsFaultToleranceOptions{}
	}).Spec); got != nil {
		t.Errorf("given nothing but what is served or switched off, not served are %v", got)
	}
	got := NotServed(&demoCluster(func(c *rayv1.RayCluster) {
		c.Spec.TLSOptions = &rayv1.TLSOptions{Enabled: ptr.To(true)}
		c.Spec.NetworkPolicy = &rayv1.NetworkPolicyConfig{}
		c.Spec.HistoryServerOptions = &rayv1.HistoryServerOptions{}
	}).Spec)
	want := []string{"spec.tlsOptions.enabled", "spec.networkPolicy", "spec.historyServerOptions"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not served (-want +got):\n%s", diff)
	}
}
