package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// shortfall says which resource is short, how much of it the Pod wants, and how much the best node has.
func shortfall(s *Snapshot, pod *corev1.Pod, message string) string {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	var short []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if !strings.Contains(message, "Insufficient "+string(name)) {
			continue
		}
		want := requests[name]
		short = append(short, fmt.Sprintf("it asks for %s of %s, %s", want.String(), name, bestNode(s.Nodes, name, want)))
	}
	if len(short) == 0 {
		return ""
	}
	return "No node that the Pod may use has enough free: " + strings.Join(short, "; ") + "."
}

func bestNode(nodes []*corev1.Node, name corev1.ResourceName, want resource.Quantity) string {
	if nodes == nil {
		return "and no node has that much free"
	}
	var best resource.Quantity
	where := ""
	for _, node := range nodes {
		if have := node.Status.Allocatable[name]; have.Cmp(best) > 0 {
			best, where = have, node.Name
		}
	}
	switch {
	case where == "":
		return "and no node has any"
	case best.Cmp(want) < 0:
		return fmt.Sprintf("and the largest node (%s) has %s in all", where, best.String())
	default:
		return fmt.Sprintf("and no node has that much free (the largest, %s, has %s in all)", where, best.String())
	}
}

func selectorCause(pod *corev1.Pod) string {
	if len(pod.Spec.NodeSelector) == 0 {
		return ""
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		pairs = append(pairs, key+"="+pod.Spec.NodeSelector[key])
	}
	return fmt.Sprintf("No node fits `nodeSelector` %s together with the Pod's other wishes.", strings.Join(pairs, ","))
}

// imageOf is the image of the container that a finding is about.
func imageOf(pod *corev1.Pod, finding Finding) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if strings.Contains(finding.Message, "container "+c.Name+":") {
			return c.Image
		}
	}
	return ""
}

func imageCause(pod *corev1.Pod, finding Finding) string {
	image := imageOf(pod, finding)
	if image == "" {
		return ""
	}
	switch finding.ID {
	case idImageNotFound:
		return fmt.Sprintf("The registry has no image %q.", image)
	case idImageDenied:
		return fmt.Sprintf("The registry does not let the node have image %q.", image)
	case idImageNoBuild:
		return fmt.Sprintf("Image %q has no build for the processor of node %s.", image, pod.Spec.NodeName)
	case idRegistryUnreachable:
		return fmt.Sprintf("Node %s does not reach the registry of image %q.", pod.Spec.NodeName, image)
	case idImageNameInvalid:
		return fmt.Sprintf("%q is not the name of an image.", image)
	case idImageNeverPulled:
		return fmt.Sprintf("Image %q is not on node %s, and `imagePullPolicy: Never` forbids to fetch it.", image, pod.Spec.NodeName)
	default:
		return ""
	}
}

func imageNext(where, id string) string {
	switch id {
	case idImageNotFound, idImageNameInvalid:
		return fmt.Sprintf("Correct `image` in %s.template.spec.containers.", where)
	case idImageDenied:
		return fmt.Sprintf("Create a Secret of type kubernetes.io/dockerconfigjson and name it in %s.template.spec.imagePullSecrets.", where)
	default:
		return ""
	}
}

// skewCause names the images that head and workers have, when they differ.
func skewCause(s *Snapshot) string {
	images := map[string]string{}
	for _, pod := range s.Pods {
		if isRayNode(pod) && len(pod.Spec.Containers) > 0 {
			image, group := pod.Spec.Containers[0].Image, pod.Labels[rayv1.LabelGroup]
			if known, seen := images[image]; !seen || group < known {
				images[image] = group
			}
		}
	}
	if len(images) < 2 {
		return ""
	}
	var uses []string
	for _, image := range slices.Sorted(maps.Keys(images)) {
		uses = append(uses, fmt.Sprintf("%q in group %s", image, images[image]))
	}
	return "Head and workers have different versions of Ray or Python: " + strings.Join(uses, ", ") + "."
}

func memoryCause(pod *corev1.Pod, message string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		limit, limited := c.Resources.Limits[corev1.ResourceMemory]
		if limited && strings.Contains(message, "container "+c.Name+":") {
			return fmt.Sprintf("Container %s used more memory than its limit of %s.", c.Name, limit.String())
		}
	}
	return ""
}
