package gather

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// file reads what stands at a path in a container, if it comes from a ConfigMap.
func (g *gatherer) file(ctx context.Context, namespace string, pod *corev1.PodSpec, container *corev1.Container, at string) ([]byte, error) {
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
		if err := g.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: pod.Volumes[i].ConfigMap.Name}, source); err != nil {
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
