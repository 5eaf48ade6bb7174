package rayservice

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// goalRule begins every goal, so that hashes which other rules or other operators made are not compared with ours.
const goalRule = "g1."

// Goal returns a hash of what in the spec of a RayCluster makes it another cluster. Suspension, the strategy of upgrades,
// numbers of replicas, the autoscaler's victims, tolerations and scheduling gates do not count: autoscalers and queues
// change them (spec/rayservice.md section 5).
//
// It is "g1." and the SHA-256 of the rest as JSON with sorted keys, without nulls, empty maps and empty lists, in hexadecimal.
func Goal(spec *rayv1.RayClusterSpec) string {
	spec = spec.DeepCopy()
	spec.Suspend, spec.UpgradeStrategy = nil, nil
	withoutPlacement(&spec.HeadGroupSpec.Template)
	for i := range spec.WorkerGroupSpecs {
		group := &spec.WorkerGroupSpecs[i]
		group.Replicas, group.MinReplicas, group.MaxReplicas = nil, nil, nil
		group.ScaleStrategy.WorkersToDelete = nil
		withoutPlacement(&group.Template)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		// The API types consist of strings, numbers, lists and maps; none of their values cannot be written.
		return ""
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return ""
	}
	// Keys of maps are written in their order.
	canonical, err := json.Marshal(withoutEmpty(value))
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(canonical)
	return goalRule + hex.EncodeToString(sum[:])
}

// goalOf is the goal of a cluster: the one that it was made for, or, when another operator made it, that of its own spec.
func goalOf(cluster *rayv1.RayCluster) string {
	if recorded := cluster.Annotations[rayv1.AnnotationSpecHash]; strings.HasPrefix(recorded, goalRule) {
		return recorded
	}
	return Goal(&cluster.Spec)
}

// groupsOf is the number of worker groups that a cluster had when its goal was recorded.
func groupsOf(cluster *rayv1.RayCluster) int {
	if !strings.HasPrefix(cluster.Annotations[rayv1.AnnotationSpecHash], goalRule) {
		return len(cluster.Spec.WorkerGroupSpecs)
	}
	if recorded, err := strconv.Atoi(cluster.Annotations[rayv1.AnnotationNumWorkerGroups]); err == nil {
		return recorded
	}
	return len(cluster.Spec.WorkerGroupSpecs)
}

// fits tells whether a cluster is what a spec wants, or becomes that by getting more worker groups at the end.
func fits(cluster *rayv1.RayCluster, wanted *rayv1.RayClusterSpec) bool {
	goal, groups := goalOf(cluster), groupsOf(cluster)
	if goal == Goal(wanted) {
		return true
	}
	if groups >= len(wanted.WorkerGroupSpecs) {
		return false
	}
	first := wanted.DeepCopy()
	first.WorkerGroupSpecs = first.WorkerGroupSpecs[:groups]
	return goal == Goal(first)
}

func withoutPlacement(template *corev1.PodTemplateSpec) {
	template.Spec.Tolerations, template.Spec.SchedulingGates = nil, nil
}

// isSelector tells whether a field selects objects by labels: an empty one selects all of them, an absent one none.
func isSelector(key string) bool { return key == "selector" || strings.HasSuffix(key, "Selector") }

// withoutEmpty drops what means the same as if it were absent.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			kept := withoutEmpty(inner)
			switch {
			case kept != nil:
				v[key] = kept
			case inner == nil || !isSelector(key):
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return value
}
