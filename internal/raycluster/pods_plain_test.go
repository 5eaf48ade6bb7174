package raycluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func ownedByDemo() []metav1.OwnerReference {
	return []metav1.OwnerReference{{
		APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "demo", UID: "u-1",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func execProbe(delay, timeout, failures int32, checks string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", checks}}},
		InitialDelaySeconds: delay, TimeoutSeconds: timeout, PeriodSeconds: 5, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

func sharedMemory() []corev1.Volume {
	return []corev1.Volume{{Name: "shared-mem", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
	}}}
}

// rayContainer is what head and worker of a plain cluster have in common.
func rayContainer(name, start string, env []corev1.EnvVar) corev1.Container {
	return corev1.Container{
		Name: name, Image: "img:1",
		Command:      []string{"/bin/bash", "-c", "--"},
		Args:         []string{limit + start},
		Ports:        []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}},
		Env:          env,
		VolumeMounts: []corev1.VolumeMount{{Name: "shared-mem", MountPath: "/dev/shm"}},
	}
}

const (
	rayletCheck = "wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success"
	gcsCheck    = "wget --tries 1 -T 10 -q -O- http://localhost:8265/api/gcs_healthz | grep success"
)

func TestHeadPodOfAPlainCluster(t *testing.T) {
	container := rayContainer("ray-head", plainHead, []corev1.EnvVar{
		{Name: "RAY_AUTH_MODE", Value: "disabled"},
		fieldEnv("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
		fieldEnv("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
		fieldEnv("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
		fieldEnv("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
		{Name: "KUBERAY_GEN_RAY_START_CMD", Value: plainHead},
		{Name: "RAY_PORT", Value: "6379"},
		{Name: "RAY_ADDRESS", Value: "127.0.0.1:6379"},
		{Name: "RAY_USAGE_STATS_KUBERAY_IN_USE", Value: "1"},
		{Name: "RAY_USAGE_STATS_EXTRA_TAGS", Value: "kuberay_version=v9;kuberay_crd=RayCluster"},
		{Name: "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", Value: "1"},
	})
	container.LivenessProbe = execProbe(30, 5, 120, rayletCheck+" && "+gcsCheck)
	container.ReadinessProbe = execProbe(10, 5, 10, rayletCheck+" && "+gcsCheck)
	want := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml",
			Labels: map[string]string{
				"ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup",
				"ray.io/identifier": "demo-head", "ray.io/is-ray-node": "yes",
				"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
				"heliostat.io/incarnation": "1",
			},
			Annotations:     map[string]string{"ray.io/ft-enabled": "false", "ray.io/kuberay-version": "v9"},
			OwnerReferences: ownedByDemo(),
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: sharedMemory()},
	}
	settings := DefaultSettings()
	settings.OperatorVersion = "v9"
	got := HeadPod(demoCluster(), settings, 1)
	want.Annotations["ray.io/upgrade-strategy-recreate-hash"] = HeadHash(&demoCluster().Spec)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name")); diff != "" {
		t.Errorf("head Pod (-want +got):\n%s", diff)
	}
}

func TestWorkerPodOfAPlainCluster(t *testing.T) {
	container := rayContainer("ray-worker", plainWorker, []corev1.EnvVar{
		{Name: "RAY_AUTH_MODE", Value: "disabled"},
		{Name: "FQ_RAY_IP", Value: "demo-head-svc.ml.svc.cluster.local"},
		{Name: "RAY_IP", Value: "demo-head-svc"},
		fieldEnv("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']"),
		fieldEnv("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
		fieldEnv("RAY_CLOUD_INSTANCE_ID", "metadata.name"),
		fieldEnv("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']"),
		{Name: "KUBERAY_GEN_RAY_START_CMD", Value: plainWorker},
		{Name: "RAY_PORT", Value: "6379"},
		{Name: "RAY_ADDRESS", Value: "demo-head-svc.ml.svc.cluster.local:6379"},
		{Name: "RAY_USAGE_STATS_KUBERAY_IN_USE", Value: "1"},
		{Name: "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", Value: "1"},
	})
	container.LivenessProbe = execProbe(30, 2, 120, rayletCheck)
	container.ReadinessProbe = execProbe(10, 2, 10, rayletCheck)
	resources := quantities("cpu", "200m", "memory", "256Mi")
	want := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml",
			Labels: map[string]string{
				"ray.io/cluster": "demo", "ray.io/node-type": "worker", "ray.io/group": "a",
				"ray.io/identifier": "demo-worker", "ray.io/is-ray-node": "yes",
				"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
				"ray.io/worker-group-replica-index": "0", "heliostat.io/incarnation": "1",
			},
			OwnerReferences: ownedByDemo(),
		},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{
				Name: "wait-gcs-ready", Image: "img:1", Command: []string{"/bin/bash", "-c", "--"},
				Env: []corev1.EnvVar{
					{Name: "RAY_AUTH_MODE", Value: "disabled"},
					{Name: "FQ_RAY_IP", Value: "demo-head-svc.ml.svc.cluster.local"},
					{Name: "RAY_IP", Value: "demo-head-svc"},
				},
				Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources},
			}},
			Containers: []corev1.Container{container},
			Volumes:    sharedMemory(),
		},
	}
	want.Annotations = map[string]string{"ray.io/upgrade-strategy-recreate-hash": hashOfA(demoCluster())}
	got := workerOf(demoCluster())
	// The script is run by a test of its own.
	got.Spec.InitContainers[0].Args = nil
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "Name")); diff != "" {
		t.Errorf("worker Pod (-want +got):\n%s", diff)
	}
}
