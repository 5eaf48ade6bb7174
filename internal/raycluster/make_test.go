package raycluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// demoCluster returns the RayCluster "demo" in the namespace "ml" with one group "a", and containers that have a name
// and an image only. Each change is made to it in turn.
func demoCluster(changes ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	cluster := &rayv1.RayCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: "ml", UID: "u-1"},
		Spec: rayv1.RayClusterSpec{
			HeadGroupSpec: rayv1.HeadGroupSpec{Template: templateOf("ray-head")},
			WorkerGroupSpecs: []rayv1.WorkerGroupSpec{{
				GroupName:   "a",
				Replicas:    ptr.To[int32](1),
				MinReplicas: ptr.To[int32](0),
				MaxReplicas: ptr.To[int32](1),
				NumOfHosts:  1,
				Template:    templateOf("ray-worker"),
			}},
		},
	}
	for _, change := range changes {
		change(cluster)
	}
	return cluster
}

func templateOf(container string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "img:1"}}}}
}

func headContainer(cluster *rayv1.RayCluster) *corev1.Container {
	return &cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0]
}

func groupA(cluster *rayv1.RayCluster) *rayv1.WorkerGroupSpec {
	return &cluster.Spec.WorkerGroupSpecs[0]
}

func workerContainer(cluster *rayv1.RayCluster) *corev1.Container {
	return &groupA(cluster).Template.Spec.Containers[0]
}

// quantities returns a list from pairs of name and quantity.
func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func headOf(cluster *rayv1.RayCluster) *corev1.Pod {
	return HeadPod(cluster, DefaultSettings(), 1)
}

func workerOf(cluster *rayv1.RayCluster) *corev1.Pod {
	return WorkerPod(cluster, groupA(cluster), DefaultSettings(), PodSlot{Group: "a", Incarnation: 1})
}

// envOf returns the last value of a variable; fields of the Pod are written as "field <path>".
func envOf(container corev1.Container) map[string]string {
	values := map[string]string{}
	for _, env := range container.Env {
		values[env.Name] = env.Value
		if env.ValueFrom != nil && env.ValueFrom.FieldRef != nil {
			values[env.Name] = "field " + env.ValueFrom.FieldRef.FieldPath
		}
	}
	return values
}
