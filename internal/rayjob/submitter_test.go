package rayjob

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

func TestSubmitterJob(t *testing.T) {
	labels := map[string]string{"ray.io/originated-from-cr-name": "train", "ray.io/originated-from-crd": "RayJob", "app.kubernetes.io/created-by": "kuberay-operator"}
	podLabels := maps.Clone(labels)
	podLabels["ray.io/node-type"] = "submitter"
	env := func(own ...corev1.EnvVar) []corev1.EnvVar {
		return append(own, corev1.EnvVar{Name: "PYTHONUNBUFFERED", Value: "1"},
			corev1.EnvVar{Name: "RAY_DASHBOARD_ADDRESS", Value: "train-bcd4f-head-svc.ml.svc.cluster.local:8265"},
			corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: "train-x7k2m"})
	}
	script, err := submitScript(example())
	if err != nil {
		t.Fatal(err)
	}
	shell, script := []string{"/bin/bash", "-ce", "--"}, strings.ReplaceAll(script, "$", "$$")
	for name, tc := range map[string]struct {
		template *corev1.PodTemplateSpec
		retries  *int32
		want     corev1.PodTemplateSpec
		backoff  int32
	}{
		"given nothing, it has the head's image": {
			want: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{{
				Name: "ray-job-submitter", Image: "img:1", Command: shell, Args: []string{script}, Env: env(),
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("200Mi")},
					Limits:   corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}},
			}}}},
			backoff: 2,
		},
		"given a template without a command, only its first container is completed": {
			template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "mine", Image: "mine:1", Args: []string{"lost"}}, {Name: "other"}}}},
			want: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{
				{Name: "mine", Image: "mine:1", Command: shell, Args: []string{script}, Env: env()}, {Name: "other"}}}},
			backoff: 2,
		},
		"given a template with a command, it is left alone": {
			template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "OnFailure", Containers: []corev1.Container{
				{Name: "mine", Command: []string{"submit"}, Args: []string{"$(HOME)"}, Env: []corev1.EnvVar{{Name: "MY", Value: "own"}}}}}},
			retries: ptr.To[int32](0),
			want: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: "OnFailure", Containers: []corev1.Container{
				{Name: "mine", Command: []string{"submit"}, Args: []string{"$(HOME)"}, Env: env(corev1.EnvVar{Name: "MY", Value: "own"})}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := example()
			job.Spec.SubmitterPodTemplate = tc.template
			if tc.retries != nil {
				job.Spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: tc.retries}
			}
			before := job.DeepCopy()
			got, err := submitterJob(job, rayCluster(job), settings)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, job); d != "" {
				t.Errorf("the RayJob was changed (-before +after):\n%s", d)
			}
			tc.want.Labels = podLabels
			if d := cmp.Diff(tc.want, got.Spec.Template); d != "" {
				t.Errorf("Pod template (-want +got):\n%s", d)
			}
			if d := cmp.Diff(labels, got.Labels); d != "" {
				t.Errorf("labels of the Job (-want +got):\n%s", d)
			}
			if got.Name != "train" || *got.Spec.BackoffLimit != tc.backoff {
				t.Errorf("Job %s has backoffLimit %d, want %d", got.Name, *got.Spec.BackoffLimit, tc.backoff)
			}
		})
	}
}

func TestSubmitterThatCannotBeMade(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*rayv1.RayJob)
		want string
	}{
		"given a template without containers": {
			edit: func(j *rayv1.RayJob) { j.Spec.SubmitterPodTemplate = &corev1.PodTemplateSpec{} },
			want: "spec.submitterPodTemplate.spec.containers is empty",
		},
		"given a head without containers": {
			edit: func(j *rayv1.RayJob) { j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers = nil },
			want: "the cluster has no head container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := example(tc.edit)
			if _, err := submitterJob(job, rayCluster(job), settings); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestSidecar(t *testing.T) {
	job := example(func(j *rayv1.RayJob) {
		j.Spec.SubmissionMode, j.Status.DashboardURL = rayv1.SidecarMode, ""
		pod := &j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec
		pod.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}
		pod.Containers = append(pod.Containers, corev1.Container{Name: "mine"})
		j.Spec.RayClusterSpec.EnableInTreeAutoscaling = ptr.To(true)
	})
	cluster := rayCluster(job)
	before := job.DeepCopy()
	if err := addSidecar(cluster, job, settings); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, job); d != "" {
		t.Errorf("the RayJob was changed (-before +after):\n%s", d)
	}
	script, err := sidecarScript(job, 8265)
	if err != nil {
		t.Fatal(err)
	}
	want := submitterContainer("img:1")
	want.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}
	want.Command, want.Args = []string{"/bin/bash", "-ce", "--"}, []string{strings.ReplaceAll(script, "$", "$$")}
	want.VolumeMounts = []corev1.VolumeMount{{Name: "heliostat-admission", MountPath: "/var/run/heliostat.io", ReadOnly: true}}
	want.Env = []corev1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "1"}, {Name: "RAY_DASHBOARD_ADDRESS", Value: "127.0.0.1:8265"},
		{Name: "RAY_JOB_SUBMISSION_ID", Value: "train-x7k2m"}}
	template := cluster.Spec.HeadGroupSpec.Template.Spec
	if d := cmp.Diff(want, template.Containers[len(template.Containers)-1]); d != "" {
		t.Errorf("last container of the head (-want +got):\n%s", d)
	}
	if template.RestartPolicy != corev1.RestartPolicyNever || cluster.Annotations["ray.io/disable-provisioned-head-restart"] != "true" {
		t.Errorf("a lost head or submitter comes back: restartPolicy %q, annotations %v", template.RestartPolicy, cluster.Annotations)
	}
	if d := cmp.Diff([]string{"ray-head", "mine", "ray-job-submitter", "autoscaler"}, containersOfHead(cluster)); d != "" {
		t.Errorf("containers of the head Pod (-want +got):\n%s", d)
	}
	head := raycluster.HeadPod(cluster, raycluster.DefaultSettings(), 0)
	if d := cmp.Diff(want, head.Spec.Containers[2]); d != "" {
		t.Errorf("the operator of clusters changes the submitter (-want +got):\n%s", d)
	}
}

func containersOfHead(cluster *rayv1.RayCluster) []string {
	var names []string
	for _, c := range raycluster.HeadPod(cluster, raycluster.DefaultSettings(), 0).Spec.Containers {
		names = append(names, c.Name)
	}
	return names
}

func TestSidecarOnItsHead(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*rayv1.RayClusterSpec)
		// address is where the script finds the dashboard.
		address string
		env     []string
	}{
		"given a port of that name": {
			edit: func(s *rayv1.RayClusterSpec) {
				s.HeadGroupSpec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "client", ContainerPort: 10001}, {Name: "dashboard", ContainerPort: 9999}}
			},
			address: "127.0.0.1:9999",
		},
		"given a start parameter only": {
			edit: func(s *rayv1.RayClusterSpec) {
				s.HeadGroupSpec.RayStartParams = map[string]string{"dashboard-port": "9998"}
			},
			address: "127.0.0.1:9998",
		},
		"given a cluster that asks for a token": {
			edit:    func(s *rayv1.RayClusterSpec) { s.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken} },
			address: "127.0.0.1:8265",
			env:     []string{"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := example(func(j *rayv1.RayJob) { tc.edit(j.Spec.RayClusterSpec) })
			cluster := rayCluster(job)
			if err := addSidecar(cluster, job, settings); err != nil {
				t.Fatal(err)
			}
			submitter := cluster.Spec.HeadGroupSpec.Template.Spec.Containers[1]
			if !strings.Contains(submitter.Args[0], "ray job submit --address http://"+tc.address+" ") || submitter.Env[1].Value != tc.address {
				t.Errorf("the dashboard is looked for elsewhere than at %s: %v %s", tc.address, submitter.Env[1], submitter.Args)
			}
			var more []string
			for _, e := range submitter.Env[3:] {
				more = append(more, e.Name)
			}
			if d := cmp.Diff(tc.env, more); d != "" {
				t.Errorf("further variables (-want +got):\n%s", d)
			}
		})
	}
}
