package create

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/blueprint"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// cluster is the RayCluster that the configuration describes. The configuration must be valid.
func (c *config) cluster() *rayv1.RayCluster {
	head := c.pods().Head(c.Head.blueprint(none))
	c.mount(&head.Template)
	cluster := &rayv1.RayCluster{
		TypeMeta: metav1.TypeMeta{APIVersion: rayv1.GroupVersion.String(), Kind: string(kube.RayCluster)},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.Name, Labels: c.Labels, Annotations: c.Annotations,
		},
		Spec: rayv1.RayClusterSpec{RayVersion: c.RayVersion, HeadGroupSpec: head},
	}
	for i := range c.WorkerGroups {
		cluster.Spec.WorkerGroupSpecs = append(cluster.Spec.WorkerGroupSpecs, c.workerGroup(&c.WorkerGroups[i]))
	}
	if c.Autoscaler != nil {
		version := rayv1.AutoscalerVersion(c.Autoscaler.Version)
		cluster.Spec.EnableInTreeAutoscaling = new(true)
		cluster.Spec.AutoscalerOptions = &rayv1.AutoscalerOptions{Version: &version}
	}
	return cluster
}

func (c *config) workerGroup(g *group) rayv1.WorkerGroupSpec {
	workers := c.pods().Workers(g.Name, g.blueprint(g.TPU))
	workers.Replicas, workers.MinReplicas, workers.MaxReplicas = g.Replicas, g.MinReplicas, g.MaxReplicas
	workers.NumOfHosts = *g.NumOfHosts
	c.mount(&workers.Template)
	return workers
}

func (c *config) pods() blueprint.Pods {
	return blueprint.Pods{Image: c.Image, ServiceAccount: c.ServiceAccount}
}

// mount puts the bucket into a template, if there is one.
func (c *config) mount(template *corev1.PodTemplateSpec) {
	if c.GKE != nil && c.GKE.GCSFuse != nil {
		c.GKE.GCSFuse.mount(template)
	}
}

func (n node) blueprint(tpu amount) blueprint.Node {
	return blueprint.Node{
		CPU:              n.CPU.quantity(),
		Memory:           n.Memory.quantity(),
		EphemeralStorage: n.EphemeralStorage.quantity(),
		GPU:              n.GPU.quantity(),
		TPU:              tpu.quantity(),
		RayStartParams:   n.RayStartParams,
		NodeSelector:     n.NodeSelectors,
	}
}

// quantity is an amount that was found valid. One that is not given is zero.
func (a amount) quantity() resource.Quantity {
	quantity, err := resource.ParseQuantity(string(a))
	if err != nil {
		return resource.Quantity{}
	}
	return quantity
}

// manifest is a cluster with only those fields that were given a value, so that server-side apply owns no others.
func manifest(cluster *rayv1.RayCluster) (*unstructured.Unstructured, error) {
	content, err := toContent(cluster)
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, err
}

// toContent is an object, or a part of one, with only those fields that were given a value.
func toContent(object any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	drop(content)
	return content, nil
}

// drop removes what is null or an empty object. Nothing that this package makes means something by being empty.
func drop(content map[string]any) {
	for key, value := range content {
		switch value := value.(type) {
		case nil:
			delete(content, key)
		case map[string]any:
			drop(value)
			if len(value) == 0 {
				delete(content, key)
			}
		case []any:
			for _, item := range value {
				if object, ok := item.(map[string]any); ok {
					drop(object)
				}
			}
		}
	}
}
