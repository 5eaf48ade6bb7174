package chart

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// TestL30ExtraGroupsHaveResources: Ray's autoscaler fails as a whole on a group of which it cannot tell the number of
// CPUs, so a group that names no resources gets those that the first group has by default.
func TestL30ExtraGroupsHaveResources(t *testing.T) {
	const autoscaling = "head: {enableInTreeAutoscaling: true, autoscalerOptions: {version: v2}}\n"
	byDefault := rayContainer(group(t, renderCluster(t, ""), "workergroup").Template).Resources
	if byDefault.Requests.Cpu().String() != "1" || byDefault.Limits.Memory().String() != "1Gi" {
		t.Fatalf("the first group has %v, want 1 CPU and 1Gi", byDefault)
	}
	gpu := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "cpu": resource.MustParse("500m")}}
	cases := map[string]struct {
		values, group string
		want          corev1.ResourceRequirements
	}{
		"given a group without resources":            {values: "additionalWorkerGroups: {more: {replicas: 1}}", group: "more", want: byDefault},
		"given a group without any value":            {values: "additionalWorkerGroups: {more: {}}", group: "more", want: byDefault},
		"given a group with empty resources":         {values: "additionalWorkerGroups: {more: {resources: {}}}", group: "more", want: byDefault},
		"given a group whose resources are null":     {values: "additionalWorkerGroups: {more: {resources: null}}", group: "more", want: byDefault},
		"given the sample, enabled":                  {values: "additionalWorkerGroups: {smallGroup: {disabled: false}}", group: "smallGroup", want: byDefault},
		"given a first group whose resources are":    {values: "worker: {resources: null}", group: "workergroup", want: byDefault},
		"given a large first group, nothing of it":   {values: "worker: {resources: {limits: {cpu: 8}}}\nadditionalWorkerGroups: {more: {}}", group: "more", want: byDefault},
		"given a group with resources, those only":   {values: "additionalWorkerGroups: {more: {resources: {limits: {nvidia.com/gpu: 1, cpu: 500m}}}}", group: "more", want: gpu},
		"given resources of a first group, disabled": {values: "worker: {disabled: true}\nadditionalWorkerGroups: {more: {}}", group: "more", want: byDefault},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := renderCluster(t, autoscaling+tc.values)
			if d := cmp.Diff(tc.want, rayContainer(group(t, cluster, tc.group).Template).Resources); d != "" {
				t.Errorf("resources (-want +got):\n%s", d)
			}
		})
	}
}

func TestNamesOfClusters(t *testing.T) {
	cases := map[string]struct{ release, values, want string }{
		"given a release, it is followed by kuberay":         {release: "blue", want: "blue-kuberay"},
		"given a release that says kuberay, it stands alone": {release: "my-kuberay-1", want: "my-kuberay-1"},
		"given a nameOverride, it follows":                   {release: "blue", values: "nameOverride: ray", want: "blue-ray"},
		"given no nameOverride, the chart's name":            {release: "blue", values: `nameOverride: ""`, want: "blue-ray-cluster"},
		"given a fullnameOverride, it stands alone":          {release: "blue", values: "fullnameOverride: green", want: "green"},
		"given the longest release, the name fits":           {release: strings.Repeat("r", 53), want: strings.Repeat("r", 53)},
		"given a long one, the name does not end in a dash":  {release: strings.Repeat("r", 52), want: strings.Repeat("r", 52)},
		"given a release with a dot, a dash":                 {release: "blue.1", want: "blue-1-kuberay"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, notes := renderRelease(t, tc.release, tc.values)
			if cluster.Name != tc.want {
				t.Errorf("name %q, want %q", cluster.Name, tc.want)
			}
			if !strings.Contains(notes, "ray.io/cluster="+tc.want) {
				t.Errorf("the notes do not name it:\n%s", notes)
			}
			want := map[string]string{
				"helm.sh/chart": "ray-cluster-0.1.0", "app.kubernetes.io/instance": tc.release, "app.kubernetes.io/managed-by": "Helm",
			}
			if d := cmp.Diff(want, cluster.Labels); d != "" {
				t.Errorf("labels (-want +got):\n%s", d)
			}
		})
	}
}

func TestGroupsFollowTheValues(t *testing.T) {
	cases := map[string]struct {
		values string
		want   []string
	}{
		"given nothing, there is one":                     {want: []string{"workergroup"}},
		"given another name, it has that":                 {values: "worker: {groupName: cpu}", want: []string{"cpu"}},
		"given more, they stand after the first, by name": {values: "additionalWorkerGroups: {b: {}, a: {}}", want: []string{"workergroup", "a", "b"}},
		"given one that is disabled, it is not there":     {values: "additionalWorkerGroups: {b: {disabled: true}, a: {}}", want: []string{"workergroup", "a"}},
		"given one that is null, it is not there":         {values: "additionalWorkerGroups: {smallGroup: null, b: null, a: {}}", want: []string{"workergroup", "a"}},
		"given a disabled first one, the others are":      {values: "{worker: {disabled: true}, additionalWorkerGroups: {a: {}}}", want: []string{"a"}},
		"given a disabled first one alone, there is none": {values: "worker: {disabled: true}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, groupNames(renderCluster(t, tc.values))); d != "" {
				t.Errorf("groups (-want +got):\n%s", d)
			}
		})
	}
}

func TestSizesOfGroups(t *testing.T) {
	const none = -1
	cases := map[string]struct {
		values                     string
		replicas, minimum, maximum int32
		hosts                      int32
	}{
		"given nothing":       {values: "{}", replicas: none, minimum: 0, maximum: math.MaxInt32},
		"given nulls":         {values: "{replicas: null, minReplicas: null, maxReplicas: null}", replicas: none, minimum: 0, maximum: math.MaxInt32},
		"given zeros":         {values: "{replicas: 0, minReplicas: 0, maxReplicas: 0}", replicas: 0, minimum: 0, maximum: 0},
		"given numbers":       {values: "{replicas: 2000000, minReplicas: 1, maxReplicas: 3000000, numOfHosts: 4}", replicas: 2000000, minimum: 1, maximum: 3000000, hosts: 4},
		"given them as texts": {values: `{replicas: "2", minReplicas: "1", maxReplicas: "3"}`, replicas: 2, minimum: 1, maximum: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := group(t, renderCluster(t, "additionalWorkerGroups: {more: "+tc.values+"}"), "more")
			replicas := int32(none)
			if g.Replicas != nil {
				replicas = *g.Replicas
			}
			if replicas != tc.replicas || *g.MinReplicas != tc.minimum || *g.MaxReplicas != tc.maximum || g.NumOfHosts != tc.hosts {
				t.Errorf("replicas %d between %d and %d of %d hosts, want %d between %d and %d of %d",
					replicas, *g.MinReplicas, *g.MaxReplicas, g.NumOfHosts, tc.replicas, tc.minimum, tc.maximum, tc.hosts)
			}
		})
	}
}

func TestWhatTheGroupsShare(t *testing.T) {
	cluster := renderCluster(t, `{image: {tag: 2.9}, imagePullSecrets: [{name: s}], common: {containerEnv: [{name: A, value: common}]},
		head: {containerEnv: [{name: A, value: head}]}, worker: {image: {repository: mine}},
		additionalWorkerGroups: {more: {image: {tag: gpu, pullPolicy: Always}}}}`)
	type shared struct {
		Image  string
		Pull   corev1.PullPolicy
		Env    []string
		Secret string
	}
	of := func(template corev1.PodTemplateSpec) shared {
		c := rayContainer(template)
		s := shared{Image: c.Image, Pull: c.ImagePullPolicy, Secret: template.Spec.ImagePullSecrets[0].Name}
		for _, e := range c.Env {
			s.Env = append(s.Env, e.Name+"="+e.Value)
		}
		return s
	}
	got := []shared{
		of(cluster.Spec.HeadGroupSpec.Template), of(group(t, cluster, "workergroup").Template), of(group(t, cluster, "more").Template),
	}
	want := []shared{
		{Image: "rayproject/ray:2.9", Pull: corev1.PullIfNotPresent, Env: []string{"A=common", "A=head"}, Secret: "s"},
		{Image: "mine:2.9", Pull: corev1.PullIfNotPresent, Env: []string{"A=common"}, Secret: "s"},
		{Image: "rayproject/ray:gpu", Pull: corev1.PullAlways, Env: []string{"A=common"}, Secret: "s"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStartParametersAreText(t *testing.T) {
	cases := map[string]struct {
		values string
		want   map[string]string
	}{
		"given none, there are none": {values: "{}"},
		"given numbers, they are written out": {
			values: "{rayStartParams: {num-cpus: 0, memory: 100000000000, share: 0.5}}",
			want:   map[string]string{"num-cpus": "0", "memory": "100000000000", "share": "0.5"},
		},
		"given switches and nothing, they are text": {
			values: `{rayStartParams: {block: true, head: "", resources: '"{\"a\": 1}"'}}`,
			want:   map[string]string{"block": "true", "head": "", "resources": `"{\"a\": 1}"`},
		},
		"given the old name too, the new one wins": {
			values: `{initArgs: {num-cpus: 4, block: "true"}, rayStartParams: {num-cpus: 0}}`,
			want:   map[string]string{"num-cpus": "0", "block": "true"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := renderCluster(t, "{head: "+tc.values+", additionalWorkerGroups: {more: "+tc.values+"}}")
			if d := cmp.Diff(tc.want, cluster.Spec.HeadGroupSpec.RayStartParams); d != "" {
				t.Errorf("head (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.want, group(t, cluster, "more").RayStartParams); d != "" {
				t.Errorf("group (-want +got):\n%s", d)
			}
		})
	}
}

func TestFaultToleranceIsSetOnlyWhereEnabled(t *testing.T) {
	cases := map[string]struct {
		values string
		want   *rayv1.GcsFaultToleranceOptions
	}{
		"given nothing, there is none": {values: "{}"},
		"given an address, disabled":   {values: "{enabled: false, redisAddress: redis:6379}"},
		"given nothing else, enabled":  {values: "{enabled: true}", want: &rayv1.GcsFaultToleranceOptions{}},
		"given a password, it is a literal": {
			values: `{enabled: true, redisAddress: redis:6379, redisPassword: "0123"}`,
			want:   &rayv1.GcsFaultToleranceOptions{RedisAddress: "redis:6379", RedisPassword: &rayv1.RedisCredential{Value: "0123"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := renderCluster(t, "gcsFaultTolerance: "+tc.values)
			if d := cmp.Diff(tc.want, cluster.Spec.GcsFaultToleranceOptions); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestExtraSpecWins(t *testing.T) {
	cluster := renderCluster(t, `{head: {enableInTreeAutoscaling: true},
		extraSpec: {enableInTreeAutoscaling: false, suspend: true, headGroupSpec: {template: {spec: {hostNetwork: true}}}},
		worker: {extraSpec: {minReplicas: 0, idleTimeoutSeconds: 5, template: {spec: {automountServiceAccountToken: false}}}}}`)
	spec, first := cluster.Spec, group(t, cluster, "workergroup")
	if *spec.EnableInTreeAutoscaling || !*spec.Suspend || !spec.HeadGroupSpec.Template.Spec.HostNetwork {
		t.Errorf("spec: %+v", spec)
	}
	if *first.MinReplicas != 0 || *first.IdleTimeoutSeconds != 5 || *first.Template.Spec.AutomountServiceAccountToken {
		t.Errorf("group: %+v", first)
	}
	if rayContainer(spec.HeadGroupSpec.Template).Name != "ray-head" || rayContainer(first.Template).Name != "ray-worker" {
		t.Error("the containers that run Ray are not there any more")
	}
}
