package harness

import (
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// PodTemplate is a template with one container of that name.
func PodTemplate(container string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container, Image: "img:1"}}}}
}

// WorkerGroup is a group of single Pods, at least none and at most four.
func WorkerGroup(name string, replicas int32) rayv1.WorkerGroupSpec {
	return rayv1.WorkerGroupSpec{GroupName: name, Replicas: &replicas, MinReplicas: ptr.To[int32](0),
		MaxReplicas: ptr.To[int32](4), NumOfHosts: 1, Template: PodTemplate("ray-worker")}
}

// ClusterSpec is one head and two workers of group "a".
func ClusterSpec() rayv1.RayClusterSpec {
	return rayv1.RayClusterSpec{
		RayVersion:       "2.60.0",
		HeadGroupSpec:    rayv1.HeadGroupSpec{Template: PodTemplate("ray-head")},
		WorkerGroupSpecs: []rayv1.WorkerGroupSpec{WorkerGroup("a", 2)},
	}
}

// NewCluster is a RayCluster of that spec, changed by the edits.
func NewCluster(namespace, name string, edits ...func(*rayv1.RayCluster)) *rayv1.RayCluster {
	cluster := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: ClusterSpec()}
	for _, edit := range edits {
		edit(cluster)
	}
	return cluster
}

// NewJob is a RayJob that makes a RayCluster of that spec.
func NewJob(namespace string, mode rayv1.JobSubmissionMode) *rayv1.RayJob {
	spec := ClusterSpec()
	return &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"},
		Spec: rayv1.RayJobSpec{Entrypoint: "python main.py", SubmissionMode: mode, RayClusterSpec: &spec}}
}

// BecomesReady plays the kubelet until the state of the RayCluster is ready.
func (c Cluster) BecomesReady(t testing.TB, cluster *rayv1.RayCluster) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func() rayv1.ClusterState {
		c.Kubelet(t, cluster.Namespace)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return rayv1.ClusterState(err.Error())
		}
		if cluster.Status.ObservedGeneration != cluster.Generation {
			return "(the spec is not observed yet)"
		}
		return cluster.Status.State
	}, Patience, tick).Should(gomega.Equal(rayv1.ClusterStateReady))
}

// Edit changes the spec or metadata of a RayCluster.
func (c Cluster) Edit(t testing.TB, cluster *rayv1.RayCluster, edit func(*rayv1.RayCluster)) {
	t.Helper()
	base := cluster.DeepCopy()
	edit(cluster)
	if err := c.Patch(t.Context(), cluster, client.MergeFrom(base)); err != nil {
		t.Fatalf("change RayCluster %s: %v", cluster.Name, err)
	}
}

// Condition reads the RayCluster anew and returns one of its conditions; one without type stands for none.
func (c Cluster) Condition(t testing.TB, cluster *rayv1.RayCluster, kind string) metav1.Condition {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(meta.FindStatusCondition(cluster.Status.Conditions, kind), metav1.Condition{})
}

// Events returns the events about an object.
func (c Cluster) Events(t testing.TB, object client.Object) []eventsv1.Event {
	t.Helper()
	events := &eventsv1.EventList{}
	if err := c.List(t.Context(), events, client.InNamespace(object.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	var about []eventsv1.Event
	for _, event := range events.Items {
		if event.Regarding.UID == object.GetUID() {
			about = append(about, event)
		}
	}
	return about
}

// EventReasons returns the reasons of the events about an object.
func (c Cluster) EventReasons(t testing.TB, object client.Object) []string {
	t.Helper()
	var reasons []string
	for _, event := range c.Events(t, object) {
		reasons = append(reasons, event.Reason)
	}
	return reasons
}
