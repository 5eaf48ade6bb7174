package ray

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestDetectResources(t *testing.T) {
	tests := map[string]struct {
		params, group    map[string]string
		limits, requests corev1.ResourceList
		want             map[string]string
	}{
		"given nothing, nothing":                          {},
		"given a limit of CPUs, it is rounded up":         {limits: list("cpu", "1500m"), requests: list("cpu", "1"), want: map[string]string{"num-cpus": "2"}},
		"given a request of CPUs only, it counts":         {requests: list("cpu", "500m", "memory", "1Gi", "nvidia.com/gpu", "1"), want: map[string]string{"num-cpus": "1"}},
		"given a limit of zero, the request counts":       {limits: list("cpu", "0"), requests: list("cpu", "3"), want: map[string]string{"num-cpus": "3"}},
		"given parameters, they stay":                     {params: map[string]string{"num-cpus": "0", "memory": "", "num-gpus": "9"}, limits: list("cpu", "4", "memory", "1Gi", "x/gpu", "1"), want: map[string]string{"num-cpus": "0", "memory": "", "num-gpus": "9"}},
		"given several kinds of GPU, the first counts":    {limits: list("nvidia.com/gpu", "2", "amd.com/gpu", "0", "gpu.intel.com/gpu", "3"), want: map[string]string{"num-gpus": "3"}},
		"given a partition of a GPU, it counts":           {limits: list("nvidia.com/mig-1g.5gb", "2"), want: map[string]string{"num-gpus": "2"}},
		"given a shared partition, it does not":           {limits: list("nvidia.com/mig-1g.5gb.shared", "2")},
		"given two accelerators, the first counts":        {limits: list("google.com/tpu", "4", "aws.amazon.com/neuroncore", "1"), want: map[string]string{"resources": `'{"neuron_cores":1}'`}},
		"given a named accelerator, no other one":         {params: map[string]string{"resources": `{"TPU": 8}`}, limits: list("aws.amazon.com/neuroncore", "1"), want: map[string]string{"resources": `{"TPU": 8}`}},
		"given text that is no JSON, only GPUs are added": {params: map[string]string{"resources": `$CUSTOM`}, limits: list("google.com/tpu", "4", "x/gpu", "1"), want: map[string]string{"resources": "$CUSTOM", "num-gpus": "1"}},
		"given JSON in single quotes, it is merged":       {params: map[string]string{"resources": `'{"b": 0.5, "a": 1}'`}, limits: list("google.com/tpu", "4"), want: map[string]string{"resources": `'{"TPU":4,"a":1,"b":0.5}'`}},
		"given a group, it comes before the container": {
			group: map[string]string{"CPU": "3.5", "Memory": "1Gi", "example.com/GPU": "2", "odd": "?", "It's": "1.5"}, limits: list("cpu", "8", "memory", "8Gi"),
			want: map[string]string{"num-cpus": "4", "memory": "1073741824", "num-gpus": "2", "resources": `'{"It\u0027s":1.5}'`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := Node{Role: Head, Params: test.params, Resources: test.group}
			got := node.StartParams(&corev1.Container{Resources: corev1.ResourceRequirements{Limits: test.limits, Requests: test.requests}})
			for _, key := range []string{"block", "dashboard-host", "metrics-export-port", "dashboard-agent-listen-port"} {
				delete(got, key)
			}
			if test.want == nil {
				test.want = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("parameters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParametersOfTheUserComeFirst(t *testing.T) {
	params := map[string]string{
		"address": "a:1", "dashboard-host": "127.0.0.1", "metrics-export-port": "", "dashboard-agent-listen-port": "1",
	}
	want := map[string]string{
		"address": "a:1", "dashboard-host": "127.0.0.1", "metrics-export-port": "", "dashboard-agent-listen-port": "1", "block": "true",
	}
	for _, role := range []Role{Head, Worker} {
		node := Node{Role: role, Params: params}
		if diff := cmp.Diff(want, node.StartParams(&corev1.Container{})); diff != "" {
			t.Errorf("parameters of the %s (-want +got):\n%s", role, diff)
		}
	}
}

func TestPorts(t *testing.T) {
	tests := map[string]struct {
		params    map[string]string
		gcs       string
		dashboard int32
	}{
		"given nothing, Ray's usual ports":         {gcs: "6379", dashboard: 8265},
		"given ports, those":                       {params: map[string]string{"port": "1", "dashboard-port": "2"}, gcs: "1", dashboard: 2},
		"given an empty port of the GCS, it stays": {params: map[string]string{"port": ""}, gcs: "", dashboard: 8265},
		"given no number, the usual port":          {params: map[string]string{"dashboard-port": "$PORT"}, gcs: "6379", dashboard: 8265},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := GCSPort(test.params); got != test.gcs {
				t.Errorf("port of the GCS is %q, want %q", got, test.gcs)
			}
			if got := DashboardPort(test.params); got != test.dashboard {
				t.Errorf("port of the dashboard is %d, want %d", got, test.dashboard)
			}
		})
	}
}

func TestResourceProblems(t *testing.T) {
	got := ResourceProblems(map[string]string{"resources": "{oops"}, map[string]string{"Custom": "many", "cpu": "1"})
	want := []string{
		`resources["Custom"]: "many" is not a quantity; Ray is started without this resource`,
		`rayStartParams[resources]: "{oops" is not a JSON object of numbers; it is passed to Ray unchanged, and accelerators are not added to it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got := ResourceProblems(map[string]string{"resources": `"{\"a\": 1}"`}, nil); got != nil {
		t.Errorf("problems of a good value are %v", got)
	}
}

func TestWaitResourcesFollowTheRayContainer(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	for name, tc := range map[string]struct{ given, want corev1.ResourceRequirements }{
		"given nothing": {want: corev1.ResourceRequirements{Limits: list("200m", "256Mi"), Requests: list("200m", "256Mi")}},
		"given a large worker with a GPU": {
			given: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "nvidia.com/gpu": resource.MustParse("1")}},
			want:  corev1.ResourceRequirements{Limits: list("4", "8Gi"), Requests: list("4", "8Gi")},
		},
		"given a small request and a large limit": {
			given: corev1.ResourceRequirements{Limits: list("1", "1Gi"), Requests: list("100m", "512Mi")},
			want:  corev1.ResourceRequirements{Limits: list("1", "1Gi"), Requests: list("200m", "512Mi")},
		},
		"given a request without a limit": {
			given: corev1.ResourceRequirements{Requests: list("2", "4Gi")},
			want:  corev1.ResourceRequirements{Limits: list("200m", "256Mi"), Requests: list("200m", "256Mi")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, waitResources(tc.given)); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}
