package create

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/ray"
)

const (
	headContainer   = "ray-head"
	workerContainer = "ray-worker"
	// resourceGPU is the resource of Kubernetes that the flags for GPUs mean.
	resourceGPU = "nvidia.com/gpu"
)

// cluster is the RayCluster that the configuration describes. The configuration must be valid.
func (c *config) cluster() *rayv1.RayCluster {
	cluster := &rayv1.RayCluster{
		TypeMeta: metav1.TypeMeta{APIVersion: rayv1.GroupVersion.String(), Kind: string(kube.RayCluster)},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: c.Name, Labels: c.Labels, Annotations: c.Annotations,
		},
		Spec: rayv1.RayClusterSpec{
			RayVersion: c.RayVersion,
			HeadGroupSpec: rayv1.HeadGroupSpec{
				RayStartParams: c.Head.RayStartParams,
				Template:       c.template(headContainer, c.Head, none),
			},
		},
	}
	cluster.Spec.HeadGroupSpec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{
		{Name: ray.PortNameGCS, ContainerPort: ray.DefaultGCSPort},
		{Name: ray.PortNameDashboard, ContainerPort: ray.DefaultDashboardPort},
		{Name: ray.PortNameClient, ContainerPort: ray.DefaultClientPort},
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
	return rayv1.WorkerGroupSpec{
		GroupName:      g.Name,
		Replicas:       g.Replicas,
		MinReplicas:    g.MinReplicas,
		MaxReplicas:    g.MaxReplicas,
		NumOfHosts:     *g.NumOfHosts,
		RayStartParams: g.RayStartParams,
		Template:       c.template(workerContainer, g.node, g.TPU),
	}
}

func (c *config) template(container string, n node, tpu amount) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		ServiceAccountName: c.ServiceAccount,
		NodeSelector:       n.NodeSelectors,
		Containers:         []corev1.Container{{Name: container, Image: c.Image, Resources: n.resources(tpu)}},
	}}
	if c.GKE != nil && c.GKE.GCSFuse != nil {
		c.GKE.GCSFuse.mount(&template)
	}
	return template
}

// resources have no limit of CPU, so that Ray may use what is idle. All others are set aside in full: Kubernetes asks for
// that with GPUs and TPUs, and memory that was not set aside may be missing when Ray needs it.
func (n node) resources(tpu amount) corev1.ResourceRequirements {
	limits := corev1.ResourceList{}
	for name, a := range map[corev1.ResourceName]amount{
		corev1.ResourceMemory:           n.Memory,
		corev1.ResourceEphemeralStorage: n.EphemeralStorage,
		resourceGPU:                     n.GPU,
		ray.ResourceTPU:                 tpu,
	} {
		put(limits, name, a)
	}
	requests := limits.DeepCopy()
	put(requests, corev1.ResourceCPU, n.CPU)
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

// put adds an amount that was found valid, unless it is nothing.
func put(list corev1.ResourceList, name corev1.ResourceName, a amount) {
	if quantity, err := resource.ParseQuantity(string(a)); err == nil && !quantity.IsZero() {
		list[name] = quantity
	}
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
