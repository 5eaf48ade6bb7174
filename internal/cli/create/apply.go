package create

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// apply creates the RayCluster, or with kube.DryRunServer prints what would be created.
func apply(ctx context.Context, env *kube.Env, object *unstructured.Unstructured, mode kube.DryRun) error {
	c, err := env.Client()
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	err = c.Get(ctx, key, &rayv1.RayCluster{})
	if err == nil {
		return fmt.Errorf("RayCluster %s exists already: choose another name, or delete it first", key)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("look whether RayCluster %s exists: %w", key, err)
	}
	options := []client.ApplyOption{client.FieldOwner(kube.FieldManager)}
	if mode == kube.DryRunServer {
		options = append(options, client.DryRunAll)
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
		return fmt.Errorf("create RayCluster %s: %w", key, err)
	}
	if mode == kube.DryRunServer {
		object.SetManagedFields(nil)
		return printYAML(env, object.Object)
	}
	return nil
}

func printYAML(env *kube.Env, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("write the object as YAML: %w", err)
	}
	_, err = env.Out.Write(text)
	return err
}
