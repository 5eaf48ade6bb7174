package raycluster

import (
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// Names of conditions that are on the wire.
const (
	conditionReady         = "Ready"
	conditionPodsHealthy   = "PodsHealthy"
	conditionNameCollision = "NameCollision"
)

const (
	invalidSpec     = "InvalidRayClusterSpec"
	invalidMetadata = "InvalidRayClusterMetadata"
)

func replicas(count int32) edit {
	return func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Replicas = &count }
}

func bounds(least, most int32) edit {
	return func(c *rayv1.RayCluster) {
		c.Spec.WorkerGroupSpecs[0].MinReplicas, c.Spec.WorkerGroupSpecs[0].MaxReplicas = &least, &most
	}
}

func hosts(count int32) edit {
	return func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].NumOfHosts = count }
}

func workersToDelete(names ...string) edit {
	return func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].ScaleStrategy.WorkersToDelete = names }
}

func otherGroup(name string, replicas int32) edit {
	return func(c *rayv1.RayCluster) {
		c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, harness.WorkerGroup(name, replicas))
	}
}

// greedy makes group "a" ask for more than LimitCPUs lets in.
func greedy(c *rayv1.RayCluster) {
	harness.AskFor(&c.Spec.WorkerGroupSpecs[0].Template, map[corev1.ResourceName]string{corev1.ResourceCPU: harness.TooManyCPUs})
}

func restartPolicy(policy corev1.RestartPolicy) edit {
	return func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Template.Spec.RestartPolicy = policy }
}

func annotated(key, value string) edit {
	return func(c *rayv1.RayCluster) {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[key] = value
	}
}

func labelled(key, value string) edit {
	return func(c *rayv1.RayCluster) {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[key] = value
	}
}

func headLabel(key, value string) edit {
	return func(c *rayv1.RayCluster) {
		template := &c.Spec.HeadGroupSpec.Template
		if template.Labels == nil {
			template.Labels = map[string]string{}
		}
		template.Labels[key] = value
	}
}

func headPort(name string, port int32) edit {
	return func(c *rayv1.RayCluster) {
		container := &c.Spec.HeadGroupSpec.Template.Spec.Containers[0]
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: name, ContainerPort: port})
	}
}

func serviceType(kind corev1.ServiceType) edit {
	return func(c *rayv1.RayCluster) { c.Spec.HeadGroupSpec.ServiceType = kind }
}

func suspend(on *bool) edit {
	return func(c *rayv1.RayCluster) { c.Spec.Suspend = on }
}

func suspendGroup(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs[0].Suspend = ptr.To(true) }

func autoscaler(c *rayv1.RayCluster) { c.Spec.EnableInTreeAutoscaling = ptr.To(true) }

func autoscalerVersion(version rayv1.AutoscalerVersion) edit {
	return func(c *rayv1.RayCluster) {
		autoscaler(c)
		c.Spec.AutoscalerOptions = &rayv1.AutoscalerOptions{Version: &version}
	}
}

func recreate(c *rayv1.RayCluster) {
	c.Spec.UpgradeStrategy = &rayv1.RayClusterUpgradeStrategy{Type: ptr.To(rayv1.RayClusterRecreate)}
}

// newImage changes the image of all groups.
func newImage(c *rayv1.RayCluster) {
	c.Spec.HeadGroupSpec.Template.Spec.Containers[0].Image = "img:2"
	for i := range c.Spec.WorkerGroupSpecs {
		c.Spec.WorkerGroupSpecs[i].Template.Spec.Containers[0].Image = "img:2"
	}
}

// contradiction is a mistake that the schema cannot see.
func contradiction(c *rayv1.RayCluster) {
	c.Spec.HeadGroupSpec.RayStartParams = map[string]string{"num-cpus": "2"}
	c.Spec.HeadGroupSpec.Resources = map[string]string{"CPU": "1"}
}

func named(name string) edit { return func(c *rayv1.RayCluster) { c.Name = name } }

// labelsOf returns the values of one label of the Pods.
func labelsOf(pods []corev1.Pod, key string) []string {
	values := make([]string, 0, len(pods))
	for _, pod := range pods {
		values = append(values, pod.Labels[key])
	}
	return values
}

// uids identifies Pods: a replaced Pod has another one.
func uids(pods []corev1.Pod) []string {
	list := make([]string, 0, len(pods))
	for _, pod := range pods {
		list = append(list, string(pod.UID))
	}
	return list
}

// slots are the replica and host indices of workers.
func slots(pods []corev1.Pod) []string {
	list := make([]string, 0, len(pods))
	for _, pod := range pods {
		list = append(list, pod.Labels[rayv1.LabelWorkerGroupReplicaIndex]+"/"+pod.Labels[rayv1.LabelReplicaHostIndex])
	}
	return list
}

// allText is everything that a Pod's container runs.
func commandOf(container corev1.Container) string {
	return strings.Join(append(append([]string{}, container.Command...), container.Args...), " ")
}

func envOf(container corev1.Container, name string) *corev1.EnvVar {
	for i := range container.Env {
		if container.Env[i].Name == name {
			return &container.Env[i]
		}
	}
	return nil
}

// selects checks that a Service finds the Pod.
func selects(g Gomega, service *corev1.Service, pod corev1.Pod) {
	g.Expect(service.Spec.Selector).ToNot(BeEmpty())
	for key, value := range service.Spec.Selector {
		g.Expect(pod.Labels).To(HaveKeyWithValue(key, value))
	}
}
