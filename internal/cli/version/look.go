package version

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/diagnose/gather"
)

// operator is a Deployment of an operator of ray.io.
type operator struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Image      string `json:"image"`
	// Version is the tag of the image, or else its digest.
	Version  string `json:"version"`
	Replicas int32  `json:"replicas"`
	Ready    int32  `json:"ready"`
}

// crd is a kind of ray.io.
type crd struct {
	// Name is that of the CustomResourceDefinition.
	Name string `json:"name"`
	// Versions are those that are served, the preferred one first.
	Versions []string `json:"versions"`
}

func (c crd) served() string { return strings.Join(c.Versions, ", ") }

// look finds out as much as it can.
func look(ctx context.Context, env *kube.Env) versions {
	found := versions{Plugin: env.Version, Operators: []operator{}, CRDs: []crd{}}
	operators, err := findOperators(ctx, env)
	switch {
	case apierrors.IsForbidden(err):
		found.warn("the operator cannot be looked for, because you may not list Deployments in all namespaces: %v", err)
	case err != nil:
		found.warn("the operator cannot be looked for: %v", err)
	case len(operators) == 0:
		found.warn("no operator was found: no Deployment in any namespace has the label %s", gather.OperatorSelector())
	}
	found.Operators = append(found.Operators, operators...)
	crds, err := findCRDs(env)
	switch {
	case err != nil:
		found.warn("the versions of the CRDs cannot be read: %v", err)
	case len(crds) == 0:
		found.warn("the API server serves no kind of %s: its CRDs are not installed", rayv1.GroupVersion.Group)
	}
	found.CRDs = append(found.CRDs, crds...)
	return found
}

func (v *versions) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

func findOperators(ctx context.Context, env *kube.Env) ([]operator, error) {
	c, err := env.Client()
	if err != nil {
		return nil, err
	}
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.MatchingLabelsSelector{Selector: gather.OperatorSelector()}); err != nil {
		return nil, err
	}
	var found []operator
	for i := range list.Items {
		deployment := &list.Items[i]
		image := ""
		if container := gather.OperatorContainer(&deployment.Spec.Template.Spec); container != nil {
			image = container.Image
		}
		found = append(found, operator{
			Namespace:  deployment.Namespace,
			Deployment: deployment.Name,
			Image:      image,
			Version:    tag(image),
			Replicas:   ptr.Deref(deployment.Spec.Replicas, 1),
			Ready:      deployment.Status.ReadyReplicas,
		})
	}
	return found, nil
}

// tag is the tag of an image, or else its digest, or else "latest", which is what no tag means.
func tag(image string) string {
	name, digest, pinned := strings.Cut(image, "@")
	// A colon before the last slash belongs to the port of a registry.
	last := name[strings.LastIndex(name, "/")+1:]
	if _, tag, ok := strings.Cut(last, ":"); ok {
		return tag
	}
	if pinned {
		return digest
	}
	return "latest"
}

// findCRDs asks discovery, which everybody may read, other than the CRDs themselves.
func findCRDs(env *kube.Env) ([]crd, error) {
	set, err := env.Clientset()
	if err != nil {
		return nil, err
	}
	served, err := servedVersions(set.Discovery())
	if err != nil {
		return nil, err
	}
	versions := map[string][]string{}
	for _, version := range served {
		list, err := set.Discovery().ServerResourcesForGroupVersion(rayv1.GroupVersion.Group + "/" + version)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			if name := list.APIResources[i].Name; !strings.Contains(name, "/") {
				versions[name] = append(versions[name], version)
			}
		}
	}
	var crds []crd
	for name, versions := range versions {
		crds = append(crds, crd{Name: name + "." + rayv1.GroupVersion.Group, Versions: versions})
	}
	slices.SortFunc(crds, func(a, b crd) int { return cmp.Compare(a.Name, b.Name) })
	return crds, nil
}

// servedVersions are the versions of the group, the preferred one first.
func servedVersions(api discovery.DiscoveryInterface) ([]string, error) {
	groups, err := api.ServerGroups()
	if err != nil {
		return nil, err
	}
	var served []string
	for i := range groups.Groups {
		if groups.Groups[i].Name != rayv1.GroupVersion.Group {
			continue
		}
		for _, version := range groups.Groups[i].Versions {
			served = append(served, version.Version)
		}
	}
	return served, nil
}
