package ray

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// accelerator is a resource of Kubernetes that Ray counts under a name of its own.
type accelerator struct{ kubernetes, ray string }

// accelerators are in the order in which they are looked for. The next one counts only when the container has none of
// those before it.
func accelerators() []accelerator {
	return []accelerator{
		{"aws.amazon.com/neuroncore", "neuron_cores"},
		{ResourceTPU, "TPU"},
	}
}

var migPartition = regexp.MustCompile(`nvidia\.com/mig-\d+g\.\d+gb$`)

// IsGPU reports whether the name of a resource of Kubernetes stands for GPUs, or for partitions of one.
func IsGPU(name string) bool {
	return strings.HasSuffix(name, "gpu") || migPartition.MatchString(name)
}

// ResourceTPU is the resource of Kubernetes that stands for TPU chips.
const ResourceTPU = "google.com/tpu"

// setGroupResources writes the logical resources that a group declares, in place of parameters of the same meaning.
// Quantities that cannot be parsed are left out; ResourceProblems names them.
func setGroupResources(params, resources map[string]string) {
	custom := map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		quantity, err := resource.ParseQuantity(resources[name])
		if err != nil {
			continue
		}
		switch lower := strings.ToLower(name); {
		case lower == "cpu":
			params[paramNumCPUs] = wholeNumber(quantity)
		case lower == "memory":
			params[paramMemory] = wholeNumber(quantity)
		case IsGPU(lower):
			params[paramNumGPUs] = wholeNumber(quantity)
		default:
			custom[name] = quantity.AsApproximateFloat64()
		}
	}
	if len(custom) > 0 {
		params[paramResources] = quoteResources(custom)
	}
}

// detectResources fills in the logical resources that nobody wrote from those of the container. Memory, GPUs and
// other accelerators count only when limited: what is merely requested says nothing about what the node can hold.
func detectResources(params map[string]string, container corev1.ResourceRequirements) {
	cpus := container.Limits[corev1.ResourceCPU]
	if cpus.IsZero() {
		cpus = container.Requests[corev1.ResourceCPU]
	}
	if !cpus.IsZero() {
		setMissing(params, paramNumCPUs, wholeNumber(cpus))
	}
	if memory := container.Limits[corev1.ResourceMemory]; !memory.IsZero() {
		setMissing(params, paramMemory, wholeNumber(memory))
	}
	detectGPUs(params, container.Limits)
	detectAccelerator(params, container.Limits)
}

func detectGPUs(params map[string]string, limits corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if count := limits[name]; IsGPU(string(name)) && !count.IsZero() {
			setMissing(params, paramNumGPUs, wholeNumber(count))
			return
		}
	}
}

func detectAccelerator(params map[string]string, limits corev1.ResourceList) {
	custom, ok := parseResources(params[paramResources])
	if !ok {
		return
	}
	for _, a := range accelerators() {
		if _, named := custom[a.ray]; named {
			return
		}
	}
	for _, a := range accelerators() {
		count := limits[corev1.ResourceName(a.kubernetes)]
		if count.IsZero() {
			continue
		}
		custom[a.ray] = count.AsApproximateFloat64()
		params[paramResources] = quoteResources(custom)
		return
	}
}

// parseResources reads the value of the start parameter "resources": a JSON object of numbers, plain or in any of
// the quotings that make it survive the shell, such as '{"a": 1}' and "{\"a\": 1}". An empty value is an empty
// object. It reports false for everything else, for example for text with variables in it.
func parseResources(value string) (map[string]float64, bool) {
	plain := strings.Trim(value, "'\"` \t\n")
	for _, text := range []string{plain, strings.ReplaceAll(plain, `\"`, `"`)} {
		custom := map[string]float64{}
		if text == "" || json.Unmarshal([]byte(text), &custom) == nil && custom != nil {
			return custom, true
		}
	}
	return nil, false
}

// quoteResources returns resources as JSON in single quotes, with sorted names.
func quoteResources(custom map[string]float64) string {
	text, err := json.Marshal(custom)
	if err != nil {
		// Only infinite numbers cannot be written, and neither a quantity nor JSON can hold one.
		return "'{}'"
	}
	return "'" + strings.ReplaceAll(string(text), "'", `\u0027`) + "'"
}

// wholeNumber returns the quantity rounded up to an integer.
func wholeNumber(quantity resource.Quantity) string {
	return strconv.FormatInt(quantity.Value(), 10)
}

// ResourceProblems names what cannot be understood in the logical resources of a group, each with its consequence.
func ResourceProblems(params, resources map[string]string) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if _, err := resource.ParseQuantity(resources[name]); err != nil {
			problems = append(problems, "resources["+strconv.Quote(name)+"]: "+strconv.Quote(resources[name])+
				" is not a quantity; Ray is started without this resource")
		}
	}
	if value, ok := params[paramResources]; ok {
		if _, ok := parseResources(value); !ok {
			problems = append(problems, "rayStartParams[resources]: "+strconv.Quote(value)+
				" is not a JSON object of numbers; it is passed to Ray unchanged, and accelerators are not added to it")
		}
	}
	return problems
}
