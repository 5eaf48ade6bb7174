package raycluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// hashRule begins every hash, so that hashes which other rules or other operators made are not compared with ours.
const hashRule = "h1."

// HeadHash returns a hash of what in a RayCluster's spec shapes its head Pod. It does not change with numbers of
// replicas, suspension, worker groups, what concerns Services and other objects, settings of the autoscaler that Ray
// reads from the RayCluster, and the tolerations and scheduling gates of templates, which batch schedulers change.
//
// It is "h1." and the SHA-256 of the rest as JSON with sorted keys and without nulls, in hexadecimal.
func HeadHash(spec *rayv1.RayClusterSpec) string {
	relevant := podRelevant(spec)
	relevant.WorkerGroupSpecs = nil
	return hashOf(relevant)
}

// WorkerHash returns a hash of what shapes the Pods of one worker group. It follows the head's as well, because a new
// head is a new Ray cluster, and none of the other groups'.
func WorkerHash(spec *rayv1.RayClusterSpec, group *rayv1.WorkerGroupSpec) string {
	only := *spec
	only.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{*group}
	return hashOf(podRelevant(&only))
}

func hashOf(relevant *rayv1.RayClusterSpec) string {
	text, err := json.Marshal(relevant)
	if err != nil {
		// The API types consist of strings, numbers, lists and maps; none of their values cannot be written.
		return ""
	}
	canonical, err := canonicalJSON(text)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return hashRule + hex.EncodeToString(sum[:])
}

// podRelevant returns a copy without the fields that do not change Pods. Empty maps are removed, because absent and
// empty mean the same in all of them.
func podRelevant(spec *rayv1.RayClusterSpec) *rayv1.RayClusterSpec {
	spec = spec.DeepCopy()
	spec.HeadServiceAnnotations, spec.NetworkPolicy, spec.UpgradeStrategy = nil, nil, nil
	spec.Suspend, spec.ManagedBy = nil, nil
	relevantAutoscaling(spec)

	head := &spec.HeadGroupSpec
	head.HeadService = nameOnly(head.HeadService)
	head.ServiceType, head.EnableIngress, head.IngressOptions = "", nil, nil
	head.RayStartParams, head.Resources, head.Labels =
		nilIfEmpty(head.RayStartParams), nilIfEmpty(head.Resources), nilIfEmpty(head.Labels)
	relevantTemplate(&head.Template)

	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		group.Replicas, group.MinReplicas, group.MaxReplicas = nil, nil, nil
		group.ScaleStrategy, group.Suspend = rayv1.ScaleStrategy{}, nil
		group.IdleTimeoutSeconds, group.Priority = nil, nil
		group.NumOfHosts = hostsOf(group)
		group.RayStartParams, group.Resources, group.Labels =
			nilIfEmpty(group.RayStartParams), nilIfEmpty(group.Resources), nilIfEmpty(group.Labels)
		relevantTemplate(&group.Template)
	}
	return spec
}

// relevantAutoscaling leaves out what Ray's autoscaler reads from the RayCluster while it runs.
func relevantAutoscaling(spec *rayv1.RayClusterSpec) {
	if !ptr.Deref(spec.EnableInTreeAutoscaling, false) {
		spec.EnableInTreeAutoscaling, spec.AutoscalerOptions = nil, nil
		return
	}
	if spec.AutoscalerOptions != nil {
		spec.AutoscalerOptions.IdleTimeoutSeconds, spec.AutoscalerOptions.UpscalingMode = nil, nil
	}
}

// nameOnly keeps what Pods see of the head Service: the name under which workers find the head.
func nameOnly(service *corev1.Service) *corev1.Service {
	if service == nil || service.Name == "" {
		return nil
	}
	named := &corev1.Service{}
	named.Name = service.Name
	return named
}

func relevantTemplate(template *corev1.PodTemplateSpec) {
	template.Name, template.Namespace = "", ""
	template.Labels, template.Annotations = nilIfEmpty(template.Labels), nilIfEmpty(template.Annotations)
	template.Spec.Tolerations, template.Spec.SchedulingGates = nil, nil
}

func nilIfEmpty(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// canonicalJSON sorts keys and drops nulls, so that the order of Go's fields does not count.
func canonicalJSON(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(withoutNulls(value))
}

func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner == nil {
				delete(v, key)
				continue
			}
			v[key] = withoutNulls(inner)
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return value
}
