package get

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(clitest.Now().Add(-d)) }

func about(namespace, name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: ago(age)}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func template(containers ...corev1.Container) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
}

func isTrue(types ...string) []metav1.Condition {
	var conditions []metav1.Condition
	for _, kind := range types {
		conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind})
	}
	return conditions
}

func trainCluster() *rayv1.RayCluster {
	return &rayv1.RayCluster{
		ObjectMeta: about("default", "train", 134*time.Minute),
		Spec: rayv1.RayClusterSpec{
			RayVersion: "2.52.0",
			HeadGroupSpec: rayv1.HeadGroupSpec{
				Template: template(corev1.Container{Name: "ray-head"}),
			},
			WorkerGroupSpecs: []rayv1.WorkerGroupSpec{
				{
					GroupName: "cpu", Replicas: ptr.To[int32](3), MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](10),
					Template: template(
						corev1.Container{Name: "ray-worker", Resources: corev1.ResourceRequirements{
							Requests: list("cpu", "1500m"), Limits: list("cpu", "4", "memory", "2Gi")}},
						corev1.Container{Name: "sidecar", Resources: corev1.ResourceRequirements{Requests: list("cpu", "100m")}},
					),
				},
				{
					GroupName: "tpu", Replicas: ptr.To[int32](2), NumOfHosts: 2,
					Template: template(corev1.Container{Name: "ray-worker", Resources: corev1.ResourceRequirements{
						Limits: list("google.com/tpu", "4", "nvidia.com/gpu", "1")}}),
				},
				{
					GroupName: "idle", Replicas: ptr.To[int32](5), Suspend: ptr.To(true),
					Template: template(corev1.Container{Name: "ray-worker", Resources: corev1.ResourceRequirements{Limits: list("cpu", "1")}}),
				},
			},
		},
		Status: rayv1.RayClusterStatus{
			State: rayv1.ClusterStateReady, DesiredWorkerReplicas: 7, AvailableWorkerReplicas: 5,
			DesiredCPU: resource.MustParse("4800m"), DesiredMemory: resource.MustParse("6Gi"),
			DesiredGPU: resource.MustParse("4"), DesiredTPU: resource.MustParse("16"),
			Conditions: isTrue(rayv1.ConditionHeadPodReady, rayv1.ConditionRayClusterProvisioned, rayv1.ConditionReady),
			Head:       rayv1.HeadInfo{PodIP: "10.0.0.7", ServiceIP: "10.0.0.7", ServiceName: "train-head-svc"},
		},
	}
}

// node is a Pod of the cluster train.
func node(name, group, replica string, is corev1.ConditionStatus) *corev1.Pod {
	kind := rayv1.NodeTypeWorker
	if group == rayv1.HeadGroupName {
		kind = rayv1.NodeTypeHead
	}
	pod := &corev1.Pod{
		ObjectMeta: about("default", name, 7*time.Minute),
		Spec: corev1.PodSpec{NodeName: "a-3", Containers: []corev1.Container{
			{Name: "ray", Resources: corev1.ResourceRequirements{Requests: list("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "1")}},
			{Name: "sidecar", Resources: corev1.ResourceRequirements{Requests: list("cpu", "8")}},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}},
	}
	pod.Labels = map[string]string{rayv1.LabelIsRayNode: rayv1.IsRayNodeYes, rayv1.LabelCluster: "train",
		rayv1.LabelGroup: group, rayv1.LabelNodeType: kind}
	if replica != "" {
		pod.Labels[rayv1.LabelWorkerGroupReplicaName] = replica
	}
	return pod
}

func world() []client.Object {
	fresh := &rayv1.RayCluster{ObjectMeta: about("team-b", "fresh", 30*time.Second)}
	fresh.Spec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{{GroupName: "cpu", Template: template(corev1.Container{Name: "ray-worker"})}}
	elsewhere := node("other-head", rayv1.HeadGroupName, "", corev1.ConditionTrue)
	elsewhere.Namespace, elsewhere.Labels[rayv1.LabelCluster] = "team-b", "other"
	notRay := node("web", "cpu", "", corev1.ConditionTrue)
	delete(notRay.Labels, rayv1.LabelIsRayNode)
	started, ended := ago(time.Hour), ago(30*time.Minute)
	return []client.Object{
		trainCluster(), fresh, elsewhere, notRay,
		node("train-head", rayv1.HeadGroupName, "", corev1.ConditionTrue),
		node("train-cpu-1", "cpu", "", corev1.ConditionTrue),
		node("train-cpu-2", "cpu", "", corev1.ConditionFalse),
		node("train-tpu-00", "tpu", "tpu-0", corev1.ConditionTrue),
		node("train-tpu-01", "tpu", "tpu-0", corev1.ConditionTrue),
		node("train-tpu-10", "tpu", "tpu-1", corev1.ConditionTrue),
		node("train-tpu-11", "tpu", "tpu-1", corev1.ConditionFalse),
		&rayv1.RayJob{ObjectMeta: about("default", "nightly", time.Hour), Status: rayv1.RayJobStatus{
			JobId: "nightly-x7", JobStatus: rayv1.JobStatusFailed, JobDeploymentStatus: rayv1.JobDeploymentStatusFailed,
			Reason: rayv1.AppFailed, RayClusterName: "nightly-abcde", StartTime: &started, EndTime: &ended}},
		&rayv1.RayJob{ObjectMeta: about("default", "young", 2*time.Second)},
		&rayv1.RayService{ObjectMeta: about("default", "llm", 3*24*time.Hour), Status: rayv1.RayServiceStatuses{
			ServiceStatus: rayv1.ServiceStatusRunning, NumServeEndpoints: 3,
			ActiveServiceStatus: rayv1.RayServiceStatus{RayClusterName: "llm-aaaaa"}}},
		&rayv1.RayCronJob{ObjectMeta: about("default", "hourly", 3*time.Hour),
			Spec:   rayv1.RayCronJobSpec{Schedule: "0 * * * *", TimeZone: ptr.To("Europe/Berlin"), Suspend: ptr.To(true)},
			Status: rayv1.RayCronJobStatus{LastScheduleTime: &started}},
		&rayv1.RayCronJob{ObjectMeta: about("default", "never", time.Minute), Spec: rayv1.RayCronJobSpec{Schedule: "@yearly"}},
	}
}

// Each case prints what is in a golden file.
func TestOutput(t *testing.T) {
	for name, args := range map[string]string{
		"clusters":          "cluster",
		"clusters-all-wide": "clusters -A -o wide",
		"cluster-by-name":   "cluster train",
		"cluster-yaml":      "cluster fresh -n team-b -o yaml",
		"clusters-names":    "cluster -A -o name",
		"groups":            "workergroup",
		"groups-all-wide":   "workergroups -A -o wide",
		"groups-of-cluster": "workergroup cpu -c train",
		"group-yaml":        "workergroup tpu -c train -o yaml",
		"groups-json":       "workergroup -A -c fresh -o json",
		"nodes":             "node",
		"nodes-all-wide":    "nodes -A -o wide",
		"nodes-of-cluster":  "node -c other -A",
		"node-names":        "node train-head -o name",
		"jobs":              "job",
		"jobs-wide":         "jobs -o wide -A",
		"services":          "service",
		"services-wide":     "services llm -o wide",
		"cronjobs":          "cronjob",
		"cronjobs-wide":     "cronjobs -o wide",
	} {
		t.Run(name, func(t *testing.T) {
			objects := world()
			if name == "nodes-of-cluster" {
				objects = append(objects, &rayv1.RayCluster{ObjectMeta: about("team-b", "other", time.Hour)})
			}
			k := clitest.New(objects...)
			if code := k.Run(t, New, strings.Fields(args)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, k.ErrOut)
			}
			clitest.Golden(t, name+".txt", k.Out.String())
		})
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"cluster nobody":            `no RayCluster "nobody" in namespace "default"`,
		"cluster nobody -A":         `no RayCluster "nobody" in any namespace`,
		"cluster fresh":             `no RayCluster "fresh" in namespace "default"`,
		"workergroup none":          `no worker group "none" in a RayCluster in namespace "default"`,
		"workergroup none -c train": `no worker group "none" in RayCluster "train" in namespace "default"`,
		"workergroup -c nobody -A":  `no RayCluster "nobody" in any namespace`,
		"node web":                  `no Ray node "web" in namespace "default"`,
		"node -c nobody":            `no RayCluster "nobody" in namespace "default"`,
		"job nobody":                `no RayJob "nobody" in namespace "default"`,
		"token nobody":              `no RayCluster "nobody" in namespace "default"`,
		"token train":               `RayCluster default/train asks for no token: its spec.authOptions.mode is not "token"`,
	} {
		t.Run(args, func(t *testing.T) {
			k := clitest.New(world()...)
			if code := k.Run(t, New, strings.Fields(args)...); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if diff := cmp.Diff("Error: "+want+"\n", k.ErrOut.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if k.Out.Len() > 0 {
				t.Errorf("unexpected output: %s", k.Out)
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"cluster -o xml":      `invalid argument "xml" for "-o, --output" flag: the format must be json, yaml, wide or name`,
		"workergroup -o name": `invalid argument "name" for "-o, --output" flag: the format must be json, yaml or wide`,
		"gadget":              `unknown command "gadget" for "ray get"`,
		"cluster a b":         `accepts at most 1 arg(s), received 2`,
	} {
		t.Run(args, func(t *testing.T) {
			k := clitest.New(world()...)
			code := k.Run(t, New, strings.Fields(args)...)
			if code != kube.ExitCannotLook || k.ErrOut.String() != "Error: "+want+"\n" || k.Out.Len() > 0 {
				t.Errorf("exit code %d, said\n%s%swant\nError: %s", code, k.Out, k.ErrOut, want)
			}
		})
	}
}

// A cluster that is suspended has no workers, whatever its groups say.
func TestGroupsOfASuspendedCluster(t *testing.T) {
	suspended := trainCluster()
	suspended.Spec.Suspend = ptr.To(true)
	k := clitest.New(suspended)
	if code := k.Run(t, New, "workergroup", "-o", "wide"); code != 0 {
		t.Fatalf("exit code %d: %s", code, k.ErrOut)
	}
	clitest.Golden(t, "groups-suspended.txt", k.Out.String())
}

func TestNothing(t *testing.T) {
	for args, want := range map[string]struct{ out, errOut string }{
		"cluster":                {errOut: "No resources found in default namespace.\n"},
		"workergroup -A":         {errOut: "No resources found\n"},
		"node -o wide":           {errOut: "No resources found in default namespace.\n"},
		"job -o json":            {out: "{\n    \"kind\": \"List\",\n    \"apiVersion\": \"v1\",\n    \"metadata\": {},\n    \"items\": []\n}\n"},
		"workergroup -o json -A": {out: "[]\n"},
	} {
		t.Run(args, func(t *testing.T) {
			k := clitest.New()
			if code := k.Run(t, New, strings.Fields(args)...); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if diff := cmp.Diff([]string{want.out, want.errOut}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"none":                        {nil, ""},
		"only those that are True":    {[]metav1.Condition{{Type: rayv1.ConditionHeadPodReady, Status: metav1.ConditionFalse}}, ""},
		"others do not count":         {isTrue(rayv1.ConditionReady, rayv1.ConditionStalled), ""},
		"provisioned before all":      {isTrue(rayv1.ConditionRayClusterSuspending, rayv1.ConditionReplicaFailure, rayv1.ConditionHeadPodReady, rayv1.ConditionRayClusterProvisioned), rayv1.ConditionRayClusterProvisioned},
		"head ready before failure":   {isTrue(rayv1.ConditionReplicaFailure, rayv1.ConditionHeadPodReady), rayv1.ConditionHeadPodReady},
		"failure before suspended":    {isTrue(rayv1.ConditionRayClusterSuspended, rayv1.ConditionReplicaFailure), rayv1.ConditionReplicaFailure},
		"suspended before suspending": {isTrue(rayv1.ConditionRayClusterSuspending, rayv1.ConditionRayClusterSuspended), rayv1.ConditionRayClusterSuspended},
		"suspending":                  {isTrue(rayv1.ConditionRayClusterSuspending), rayv1.ConditionRayClusterSuspending},
	} {
		t.Run(name, func(t *testing.T) {
			got := condition(&rayv1.RayCluster{Status: rayv1.RayClusterStatus{Conditions: c.conditions}})
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestToken(t *testing.T) {
	long := strings.Repeat("a", 12) + "-" + strings.Repeat("b", 40)
	secret := func(name, key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: about("default", name, time.Hour), Data: map[string][]byte{key: []byte("s3cret")}}
	}
	for name, c := range map[string]struct {
		cluster string
		auth    rayv1.AuthOptions
		secret  *corev1.Secret
		want    string
	}{
		"named after the cluster":        {"train", rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secret("train", "auth_token"), ""},
		"a secret of the user's":         {"train", rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("mine")}, secret("mine", "auth_token"), ""},
		"a long name, as KubeRay has it": {long, rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secret(long[3:], "auth_token"), ""},
		"the user's secret is not there": {"train", rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("mine")}, secret("train", "auth_token"),
			`no Secret "mine" in namespace "default", which should hold the token of RayCluster "train": has the operator seen the cluster yet?`},
		"another key": {"train", rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secret("train", "token"),
			`Secret default/train of RayCluster train has no value under the key "auth_token"`},
		"disabled": {"train", rayv1.AuthOptions{Mode: rayv1.AuthModeDisabled}, secret("train", "auth_token"),
			`RayCluster default/train asks for no token: its spec.authOptions.mode is not "token"`},
		"tokens of service accounts": {"train", rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}, secret("train", "auth_token"),
			`RayCluster default/train takes tokens of service accounts: get one with 'kubectl create token SERVICEACCOUNT --namespace default'`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &rayv1.RayCluster{ObjectMeta: about("default", c.cluster, time.Hour), Spec: rayv1.RayClusterSpec{AuthOptions: &c.auth}}
			k := clitest.New(cluster, c.secret)
			code := k.Run(t, New, "token", c.cluster)
			want, wantErr := "s3cret", ""
			if c.want != "" {
				want, wantErr = "", "Error: "+c.want+"\n"
			}
			if diff := cmp.Diff([]string{want, wantErr}, []string{k.Out.String(), k.ErrOut.String()}); diff != "" {
				t.Errorf("exit code %d (-want +got):\n%s", code, diff)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"clusters":             {[]string{"cluster", ""}, "train\n:4\n"},
		"one name only":        {[]string{"cluster", "train", ""}, ":4\n"},
		"the flag -c":          {[]string{"node", "-c", ""}, "train\n:4\n"},
		"nodes of a cluster":   {[]string{"node", "-n", "team-b", "-c", "other", ""}, "other-head\n:4\n"},
		"groups":               {[]string{"workergroup", ""}, "cpu\nidle\ntpu\n:4\n"},
		"groups of no cluster": {[]string{"workergroup", "-c", "nobody", ""}, ":4\n"},
		"formats":              {[]string{"workergroup", "-o", ""}, "json\nyaml\nwide\n:4\n"},
		"token":                {[]string{"token", ""}, "train\n:4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			k := clitest.New(world()...)
			if diff := cmp.Diff(c.want, k.Complete(t, New, c.args...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
