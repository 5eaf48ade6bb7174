package gather

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/config"
)

// Configuration is what an operator was started with, as its Deployment says: its command line, its environment and, from a ConfigMap,
// its file. Variables whose values stand elsewhere count as not set; those that the operator would have looked at are named.
func Configuration(ctx context.Context, c client.Reader, deployment *appsv1.Deployment) (cfg config.Config, elsewhere []string, err error) {
	pod := &deployment.Spec.Template.Spec
	container := OperatorContainer(pod)
	if container == nil {
		return config.Config{}, nil, fmt.Errorf("Deployment %s/%s has no container", deployment.Namespace, deployment.Name)
	}
	var args []string
	if len(container.Command) > 1 {
		args = append(args, container.Command[1:]...)
	}
	getenv := func(name string) string {
		i := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		if i < 0 {
			return ""
		}
		if container.Env[i].ValueFrom != nil {
			elsewhere = append(elsewhere, name)
		}
		return container.Env[i].Value
	}
	read := func(path string) ([]byte, error) { return file(ctx, c, deployment.Namespace, pod, container, path) }
	cfg, err = config.Parse(append(args, container.Args...), getenv, read)
	if err != nil {
		return config.Config{}, nil, fmt.Errorf("read how the operator of Deployment %s/%s is configured: %w", deployment.Namespace, deployment.Name, err)
	}
	return cfg, elsewhere, nil
}

// OperatorContainer is the container of an operator's Pod that charts call kuberay-operator, or else the first one, nil without any.
func OperatorContainer(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == rayv1.CreatedByOperator {
			return &pod.Containers[i]
		}
	}
	if len(pod.Containers) == 0 {
		return nil
	}
	return &pod.Containers[0]
}

// file reads what stands at a path in a container, if it comes from a ConfigMap.
func file(ctx context.Context, c client.Reader, namespace string, pod *corev1.PodSpec, container *corev1.Container, at string) ([]byte, error) {
	for _, mount := range container.VolumeMounts {
		below, found := strings.CutPrefix(path.Clean(at), path.Clean(mount.MountPath)+"/")
		if !found {
			continue
		}
		is := func(v corev1.Volume) bool { return v.Name == mount.Name && v.ConfigMap != nil }
		i := slices.IndexFunc(pod.Volumes, is)
		if i < 0 {
			continue
		}
		source := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod.Volumes[i].ConfigMap.Name}, source); err != nil {
			return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, pod.Volumes[i].ConfigMap.Name, err)
		}
		text, found := source.Data[below]
		if !found {
			return nil, fmt.Errorf("ConfigMap %s/%s has no key %s", namespace, source.Name, below)
		}
		return []byte(text), nil
	}
	return nil, fmt.Errorf("%s does not come from a ConfigMap", at)
}
