package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// limitRange is about both ways in which a LimitRange keeps Pods away: by its bounds, and by a default limit that is less than what
// the container asks for. The API server calls the latter an invalid Pod and does not name the LimitRange.
func limitRange(s *Snapshot) []Finding {
	findings := refusalRule(refusedByLimits, "LimitRange", "A LimitRange of the namespace does not allow "+
		"the resources of a container of %s.",
		"Run \"kubectl get limitrange -o yaml\" in the namespace and bring resources.requests and resources.limits in "+
			"the Pod templates of %s within it.")(s)
	for _, r := range s.refused(refusedByDefaults) {
		if s.limitsItself(r.object) {
			continue
		}
		resource, limit := limitOf(r.text)
		findings = append(findings, Finding{Reason: "LimitRangeDefault", Object: r.object, Message: r.text,
			Cause: fmt.Sprintf("A container of %s has no %s limit of its own, so a LimitRange of the namespace gives it its default of %s, "+
				"which is less than the container asks for.", r.object, resource, limit),
			Next: fmt.Sprintf("Set resources.limits.%s of that container in the Pod templates of %s to at least its request, or raise the "+
				"default that \"kubectl get limitrange -o yaml\" shows.", resource, r.object)})
	}
	return findings
}

// podInvalid is about Pods that the API server finds wrong in themselves.
func podInvalid(s *Snapshot) []Finding {
	var findings []Finding
	for _, r := range slices.Concat(s.refused(refusedAsInvalid), s.refused(refusedByDefaults)) {
		if r.kind == refusedByDefaults && !s.limitsItself(r.object) {
			continue
		}
		_, why, _ := strings.Cut(r.text, `" is invalid: `)
		findings = append(findings, Finding{Reason: "PodInvalid", Object: r.object, Message: r.text,
			Cause: fmt.Sprintf("The API server does not take a Pod of %s: %s.", r.object, strings.TrimSuffix(shortened(why), ".")),
			Next: fmt.Sprintf("Correct the field that the message names in the Pod templates of %s; it may also come from a webhook or a "+
				"LimitRange that changes Pods.", r.object)})
	}
	return findings
}

var limitWords = regexp.MustCompile(`must be less than or equal to (\S+) limit(?: of (\S+))?`)

// limitOf is the resource of which a container asks for more than its limit, and that limit.
func limitOf(text string) (resource, limit string) {
	m := limitWords.FindStringSubmatch(text)
	if m == nil {
		return "resource", "?"
	}
	if m[2] == "" {
		return m[1], "?"
	}
	return m[1], m[2]
}

// limitsItself tells whether a RayCluster has a container that asks for more than the limit which stands in its own template. Then no
// LimitRange is to blame.
func (s *Snapshot) limitsItself(object string) bool {
	name, isCluster := strings.CutPrefix(object, rayv1.KindRayCluster+" ")
	cluster := s.cluster(name)
	if !isCluster || cluster == nil {
		return false
	}
	templates := []*corev1.PodSpec{&cluster.Spec.HeadGroupSpec.Template.Spec}
	for i := range cluster.Spec.WorkerGroupSpecs {
		templates = append(templates, &cluster.Spec.WorkerGroupSpecs[i].Template.Spec)
	}
	return slices.ContainsFunc(templates, func(pod *corev1.PodSpec) bool {
		return slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), asksTooMuch)
	})
}

func asksTooMuch(c corev1.Container) bool {
	for name, request := range c.Resources.Requests {
		if limit, limited := c.Resources.Limits[name]; limited && request.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}
