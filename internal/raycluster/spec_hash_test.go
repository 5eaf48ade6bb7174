package raycluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Hashes are stored on Pods. Another hash of the same spec would have a later operator recreate them.
func TestHashesAreStable(t *testing.T) {
	spec := &demoCluster().Spec
	if got, want := HeadHash(spec), "h1.e0b50af3aa92c09525122830641509d83ea4421fb368a1426278a459ec313005"; got != want {
		t.Errorf("the head's hash is %s, want %s", got, want)
	}
	if got, want := WorkerHash(spec, &spec.WorkerGroupSpecs[0]), "h1.2ab7e069042ebdc38efc612d9dbfba297ff7aefe256dfd94e0e95467fd4f3ac8"; got != want {
		t.Errorf("the workers' hash is %s, want %s", got, want)
	}
}

func TestWorkerHash(t *testing.T) {
	tests := map[string]struct {
		change  func(*rayv1.RayCluster)
		differs bool
	}{
		"given other numbers of replicas": {change: func(c *rayv1.RayCluster) {
			g := groupA(c)
			g.Replicas, g.MinReplicas, g.MaxReplicas = ptr.To[int32](9), ptr.To[int32](3), ptr.To[int32](9)
			g.ScaleStrategy.WorkersToDelete = []string{"x"}
		}},
		"given tolerations and scheduling gates": {change: func(c *rayv1.RayCluster) {
			groupA(c).Template.Spec.Tolerations = []corev1.Toleration{{Key: "x"}}
			c.Spec.HeadGroupSpec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}}
		}},
		"given suspend=false instead of nothing": {change: func(c *rayv1.RayCluster) { c.Spec.Suspend = ptr.To(false) }},
		"given an upgrade strategy": {change: func(c *rayv1.RayCluster) {
			c.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
		}},
		"given empty maps instead of none": {change: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.RayStartParams, groupA(c).Labels = map[string]string{}, map[string]string{}
		}},
		"given numOfHosts as the API server fills it in": {change: func(c *rayv1.RayCluster) { groupA(c).NumOfHosts = 0 }},
		"given a name in the template":                   {change: func(c *rayv1.RayCluster) { groupA(c).Template.Name = "x" }},
		"given an Ingress and a type of the Service": {change: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.EnableIngress, c.Spec.HeadGroupSpec.ServiceType = ptr.To(true), corev1.ServiceTypeNodePort
		}},
		"given ports of the head Service": {change: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.HeadService = &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		}},
		"given another name of the head Service": {differs: true, change: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.HeadService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
		}},
		"given another image":     {differs: true, change: func(c *rayv1.RayCluster) { workerContainer(c).Image = "img:2" }},
		"given another parameter": {differs: true, change: func(c *rayv1.RayCluster) { groupA(c).RayStartParams = map[string]string{"a": "b"} }},
		"given another version":   {differs: true, change: func(c *rayv1.RayCluster) { c.Spec.RayVersion = "2.60.0" }},
		"given another order of containers": {differs: true, change: func(c *rayv1.RayCluster) {
			containers := c.Spec.HeadGroupSpec.Template.Spec.Containers
			c.Spec.HeadGroupSpec.Template.Spec.Containers = append([]corev1.Container{{Name: "first"}}, containers...)
		}},
	}
	before := hashOfA(demoCluster())
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hashOfA(demoCluster(test.change)); (got != before) != test.differs {
				t.Errorf("hash is %s after %s, want a different one: %v", got, before, test.differs)
			}
		})
	}
}

func hashOfA(cluster *rayv1.RayCluster) string {
	return WorkerHash(&cluster.Spec, groupA(cluster))
}

func TestHashesFollowTheirPartOfTheSpec(t *testing.T) {
	tests := map[string]struct {
		change       func(*rayv1.RayCluster)
		head, worker bool
	}{
		"given another image of the head": {head: true, worker: true, change: func(c *rayv1.RayCluster) {
			c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image = "img:2"
		}},
		"given another image of the group": {worker: true, change: func(c *rayv1.RayCluster) { workerContainer(c).Image = "img:2" }},
		"given one group more": {change: func(c *rayv1.RayCluster) {
			more := *groupA(c).DeepCopy()
			more.GroupName = "more"
			c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, more)
		}},
		"given the autoscaler": {head: true, worker: true, change: func(c *rayv1.RayCluster) { c.Spec.EnableInTreeAutoscaling = ptr.To(true) }},
		"given options of an autoscaler that is off": {change: func(c *rayv1.RayCluster) {
			c.Spec.AutoscalerOptions = &rayv1.AutoscalerOptions{Image: ptr.To("x")}
		}},
	}
	before := demoCluster()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := demoCluster(test.change)
			if got := HeadHash(&after.Spec) != HeadHash(&before.Spec); got != test.head {
				t.Errorf("the head's hash differs: %v, want %v", got, test.head)
			}
			if got := hashOfA(after) != hashOfA(before); got != test.worker {
				t.Errorf("the workers' hash differs: %v, want %v", got, test.worker)
			}
		})
	}
}
