package raycluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
)

const (
	// maxNameLength leaves room for the longest ending of a Service's name, "-serve-svc".
	maxNameLength = 53
	// maxHosts is above the number of hosts of the largest accelerators, and low enough to make a replica in one pass.
	maxHosts = 4096

	envAutoscalerV2     = "RAY_enable_autoscaler_v2"
	envAutoscalerStart  = "KUBERAY_GEN_AUTOSCALER_START_CMD"
	paramLabels         = "labels"
	headGroupDescribed  = "the name of the head's own group"
	firstContainerRays  = "must hold at least one container: the first one runs Ray"
	onlyForAutoscalerV2 = "needs the autoscaler of version v2: set spec.autoscalerOptions.version to v2"
)

// Validate returns what is wrong with a RayCluster. Each error names the field, its value and the rule. The API server
// checks many of these rules on its own; an object that was stored under older rules is caught here.
func Validate(cluster *rayv1.RayCluster, settings Settings) []error {
	v := &validator{cluster: cluster, spec: &cluster.Spec}
	v.name()
	if embedded(cluster) && !settings.EmbeddedStorage {
		v.invalid(field.NewPath("spec", "gcsFaultToleranceOptions", "backend"), rayv1.GcsBackendRocksDB, embeddedGateOff)
	}
	v.all(field.NewPath("spec"))
	errs := make([]error, 0, len(v.errs))
	for _, err := range v.errs {
		errs = append(errs, err)
	}
	return errs
}

// ValidateSpec returns what is wrong with the spec of a RayCluster that another object holds at the given path.
func ValidateSpec(cluster *rayv1.RayCluster, path *field.Path) field.ErrorList {
	v := &validator{cluster: cluster, spec: &cluster.Spec}
	v.all(path)
	return v.errs
}

type validator struct {
	cluster *rayv1.RayCluster
	spec    *rayv1.RayClusterSpec
	errs    field.ErrorList
}

// all checks the whole spec, which stands at the given path.
func (v *validator) all(spec *field.Path) {
	head := &v.spec.HeadGroupSpec
	headPath := spec.Child("headGroupSpec")
	v.template(headPath, &head.Template)
	v.params(headPath, head.RayStartParams, head.Resources, head.Labels)
	for i := range v.spec.WorkerGroupSpecs {
		v.group(spec.Child("workerGroupSpecs").Index(i), &v.spec.WorkerGroupSpecs[i])
	}
	v.groupNames(spec.Child("workerGroupSpecs"))
	v.faultTolerance(spec)
	v.autoscaling(spec)
	v.auth(spec.Child("authOptions"))
	v.upgradeStrategy(spec.Child("upgradeStrategy", "type"))
}

func (v *validator) invalid(path *field.Path, value any, rule string) {
	v.errs = append(v.errs, field.Invalid(path, value, rule))
}

func (v *validator) name() {
	path, name := field.NewPath("metadata", "name"), v.cluster.Name
	if len(name) > maxNameLength {
		v.invalid(path, name, fmt.Sprintf("must be no more than %d characters, because names of Services are made from it",
			maxNameLength))
	}
	for _, rule := range validation.IsDNS1035Label(name) {
		v.invalid(path, name, rule)
	}
}

func (v *validator) template(group *field.Path, template *corev1.PodTemplateSpec) {
	if len(template.Spec.Containers) == 0 {
		v.errs = append(v.errs, field.Required(group.Child("template", "spec", "containers"), firstContainerRays))
	}
}

// params checks what "ray start" is told, in whichever of the three ways.
func (v *validator) params(group *field.Path, params, resources, labels map[string]string) {
	path := group.Child("rayStartParams")
	for _, key := range []string{"num-cpus", "num-gpus", "memory", "resources"} {
		if value, ok := params[key]; ok && len(resources) > 0 {
			v.invalid(path.Key(key), value, fmt.Sprintf("cannot be combined with %s, which sets the same", group.Child("resources")))
		}
	}
	if value, ok := params[paramLabels]; ok {
		v.invalid(path.Key(paramLabels), value, fmt.Sprintf("must be written as %s", group.Child("labels")))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		entry := group.Child("labels").Key(key)
		for _, rule := range validation.IsQualifiedName(key) {
			v.invalid(entry, key, rule)
		}
		for _, rule := range validation.IsValidLabelValue(labels[key]) {
			v.invalid(entry, labels[key], rule)
		}
	}
}

func (v *validator) headEnvPath() *field.Path {
	return field.NewPath("spec", "headGroupSpec", "template", "spec", "containers").Index(0).Child("env")
}

// headEnv returns a variable of the head's Ray container, or nil.
func (v *validator) headEnv(name string) *corev1.EnvVar { return envNamed(headEnvOf(v.cluster), name) }

func (v *validator) group(path *field.Path, group *rayv1.WorkerGroupSpec) {
	v.template(path, &group.Template)
	v.groupBounds(path, group)
	v.params(path, group.RayStartParams, group.Resources, group.Labels)
	v.groupAutoscaling(path, group)
}

func (v *validator) groupBounds(path *field.Path, group *rayv1.WorkerGroupSpec) {
	for _, bound := range []struct {
		name  string
		value *int32
	}{{"minReplicas", group.MinReplicas}, {"maxReplicas", group.MaxReplicas}} {
		switch {
		case bound.value == nil && !v.autoscalerOn():
			v.errs = append(v.errs, field.Required(path.Child(bound.name), "must be set when spec.enableInTreeAutoscaling is not true"))
		case bound.value != nil && *bound.value < 0:
			v.invalid(path.Child(bound.name), *bound.value, "must not be negative")
		}
	}
	if least, most := group.MinReplicas, group.MaxReplicas; least != nil && most != nil && *least > *most {
		v.invalid(path.Child("minReplicas"), *least, fmt.Sprintf("must not be greater than maxReplicas, which is %d", *most))
	}
	if group.NumOfHosts < 0 || group.NumOfHosts > maxHosts {
		v.invalid(path.Child("numOfHosts"), group.NumOfHosts, fmt.Sprintf("must be at least 1 and at most %d", maxHosts))
	}
}

func (v *validator) groupAutoscaling(path *field.Path, group *rayv1.WorkerGroupSpec) {
	if seconds := group.IdleTimeoutSeconds; seconds != nil {
		if *seconds < 0 {
			v.invalid(path.Child("idleTimeoutSeconds"), *seconds, "must not be negative")
		}
		if !v.autoscalerV2() {
			v.invalid(path.Child("idleTimeoutSeconds"), *seconds, onlyForAutoscalerV2)
		}
	}
	if priority := ptr.Deref(group.Priority, 0); priority != 0 {
		if !ray.VersionAtLeast(v.spec.RayVersion, 2, 56) {
			v.invalid(path.Child("priority"), priority, fmt.Sprintf("needs spec.rayVersion 2.56.0 or newer, not %q", v.spec.RayVersion))
		}
		if !v.autoscalerV2() {
			v.invalid(path.Child("priority"), priority, onlyForAutoscalerV2)
		}
	}
	if ptr.Deref(group.Suspend, false) && v.autoscalerOn() {
		v.invalid(path.Child("suspend"), true, "cannot be combined with spec.enableInTreeAutoscaling: the autoscaler would fill the group again")
	}
}

func (v *validator) groupNames(path *field.Path) {
	seen := map[string]bool{}
	for i := range v.spec.WorkerGroupSpecs {
		name := v.spec.WorkerGroupSpecs[i].GroupName
		at := path.Index(i).Child("groupName")
		switch {
		case name == "":
			v.errs = append(v.errs, field.Required(at, "every group needs a name"))
		case name == rayv1.HeadGroupName:
			v.invalid(at, name, "is "+headGroupDescribed)
		case seen[name]:
			v.errs = append(v.errs, field.Duplicate(at, name))
		default:
			for _, rule := range validation.IsValidLabelValue(name) {
				v.invalid(at, name, rule)
			}
		}
		seen[name] = true
	}
}

func (v *validator) autoscalerOn() bool {
	return ptr.Deref(v.spec.EnableInTreeAutoscaling, false)
}

// autoscalerVersion returns the version that the options name, or "" when they leave the choice to Ray.
func (v *validator) autoscalerVersion() rayv1.AutoscalerVersion {
	if v.spec.AutoscalerOptions == nil {
		return ""
	}
	return ptr.Deref(v.spec.AutoscalerOptions.Version, "")
}

// autoscalerV2 reports whether version v2 of the autoscaler is asked for: by the options or, if they say nothing, by
// the variable that Ray reads.
func (v *validator) autoscalerV2() bool {
	if version := v.autoscalerVersion(); version != "" {
		return version == rayv1.AutoscalerVersionV2
	}
	return switchedOn(v.headEnv(envAutoscalerV2))
}

func switchedOn(env *corev1.EnvVar) bool {
	return env != nil && (env.Value == "1" || strings.EqualFold(env.Value, "true"))
}

func (v *validator) autoscaling(spec *field.Path) {
	env := v.headEnv(envAutoscalerV2)
	if !v.autoscalerOn() && switchedOn(env) {
		v.invalid(v.headEnvPath(), envAutoscalerV2+"="+env.Value, "needs spec.enableInTreeAutoscaling to be true")
	}
	if v.autoscalerOn() && env != nil && v.autoscalerVersion() != "" {
		v.invalid(v.headEnvPath(), envAutoscalerV2+"="+env.Value, "cannot be combined with spec.autoscalerOptions.version, which sets the same")
	}
	if v.autoscalerOn() && v.autoscalerVersion() == rayv1.AutoscalerVersionV2 {
		v.restartPolicies(spec)
	}
	options := v.spec.AutoscalerOptions
	if options == nil {
		return
	}
	path := spec.Child("autoscalerOptions")
	if seconds := ptr.Deref(options.IdleTimeoutSeconds, 0); seconds < 0 {
		v.invalid(path.Child("idleTimeoutSeconds"), seconds, "must not be negative")
	}
	for i := range options.Env {
		if options.Env[i].Name == envAutoscalerStart {
			v.invalid(path.Child("env").Index(i).Child("name"), envAutoscalerStart, "is set by the operator")
		}
	}
}

// auth refuses a token where Ray would not ask for it, or could not be told which one.
func (v *validator) auth(path *field.Path) {
	options := v.spec.AuthOptions
	if options == nil {
		return
	}
	byKubernetes := ptr.Deref(options.EnableK8sTokenAuth, false)
	enable := path.Child("enableK8sTokenAuth")
	if options.Mode != rayv1.AuthModeToken {
		if byKubernetes {
			v.invalid(enable, true, "needs spec.authOptions.mode to be token")
		}
		return
	}
	if !ray.VersionAtLeast(v.spec.RayVersion, 2, 52) {
		v.invalid(path.Child("mode"), options.Mode, fmt.Sprintf("needs spec.rayVersion 2.52.0 or newer, not %q", v.spec.RayVersion))
	}
	if !byKubernetes {
		return
	}
	if !ray.VersionAtLeast(v.spec.RayVersion, 2, 55) {
		v.invalid(enable, true, fmt.Sprintf("needs spec.rayVersion 2.55.0 or newer, not %q", v.spec.RayVersion))
	}
	if name := ptr.Deref(options.SecretName, ""); name != "" {
		v.invalid(path.Child("secretName"), name, "cannot be combined with enableK8sTokenAuth, which uses no Secret")
	}
	creator := v.cluster.Labels[rayv1.LabelOriginatedFromKind]
	if creator == rayv1.KindRayJob || creator == rayv1.KindRayService {
		v.invalid(enable, true, "is not for the RayCluster of a "+creator+": the operator itself could not talk to Ray")
	}
}

// restartPolicies refuses Pods whose containers would come back after the autoscaler has given them up.
func (v *validator) restartPolicies(spec *field.Path) {
	check := func(group *field.Path, template *corev1.PodTemplateSpec) {
		if policy := template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyNever {
			v.invalid(group.Child("template", "spec", "restartPolicy"), policy,
				"must be Never or absent with spec.autoscalerOptions.version v2")
		}
	}
	check(spec.Child("headGroupSpec"), &v.spec.HeadGroupSpec.Template)
	for i := range v.spec.WorkerGroupSpecs {
		check(spec.Child("workerGroupSpecs").Index(i), &v.spec.WorkerGroupSpecs[i].Template)
	}
}

func (v *validator) upgradeStrategy(path *field.Path) {
	if v.spec.UpgradeStrategy == nil {
		return
	}
	switch upgrade := ptr.Deref(v.spec.UpgradeStrategy.Type, rayv1.RayClusterUpgradeNone); upgrade {
	case rayv1.RayClusterUpgradeNone:
	case rayv1.RayClusterRecreate:
		creator := v.cluster.Labels[rayv1.LabelOriginatedFromKind]
		if creator == rayv1.KindRayJob || creator == rayv1.KindRayService {
			v.invalid(path, upgrade, "is not for a RayCluster that belongs to a "+creator+", which replaces it on its own")
		}
	default:
		v.errs = append(v.errs, field.NotSupported(path, upgrade,
			[]rayv1.RayClusterUpgradeType{rayv1.RayClusterRecreate, rayv1.RayClusterUpgradeNone}))
	}
}
