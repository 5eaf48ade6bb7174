package rayjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

const (
	// maxNameLength leaves room for the endings of derived names.
	maxNameLength = 47
	// maxShown bounds how much of a long text is repeated in an error.
	maxShown = 120

	notShared = "cannot be combined with spec.clusterSelector: "
)

// Validate checks what the schema cannot, and returns all that is wrong, or nil. Each message names the field, its
// value and the rule.
func Validate(job *rayv1.RayJob, settings Settings) error {
	v := &validator{job: job, spec: &job.Spec, settings: settings, path: field.NewPath("spec")}
	v.name()
	v.source()
	v.mode()
	v.sidecar()
	v.submission()
	v.submitter()
	v.runtimeEnv()
	v.limits()
	v.suspend()
	v.deletionStrategy()
	return v.errs.ToAggregate()
}

type validator struct {
	job      *rayv1.RayJob
	spec     *rayv1.RayJobSpec
	settings Settings
	path     *field.Path
	errs     field.ErrorList
}

func (v *validator) invalid(path *field.Path, value any, rule string) {
	v.errs = append(v.errs, field.Invalid(path, value, rule))
}

func (v *validator) required(path *field.Path, rule string) {
	v.errs = append(v.errs, field.Required(path, rule))
}

func (v *validator) shared() bool { return len(v.spec.ClusterSelector) > 0 }

func (v *validator) name() {
	path := field.NewPath("metadata", "name")
	if len(v.job.Name) > maxNameLength {
		v.invalid(path, v.job.Name, fmt.Sprintf("must be no more than %d characters, because names of Services and Pods are made from it", maxNameLength))
	}
	for _, rule := range validation.IsDNS1035Label(v.job.Name) {
		v.invalid(path, v.job.Name, rule)
	}
}

// source checks where the job is to run.
func (v *validator) source() {
	selector := v.path.Child("clusterSelector")
	switch {
	case v.shared() && v.spec.ClusterSelector[rayv1.LabelCluster] == "":
		v.required(selector.Key(rayv1.LabelCluster), "names the RayCluster to run on; other keys are not looked at")
	case v.shared():
		// The cluster has been made already, and rayClusterSpec is not looked at.
	case v.spec.RayClusterSpec == nil:
		v.required(v.path.Child("rayClusterSpec"), "either this or spec.clusterSelector must say where the job runs")
	default:
		cluster := rayCluster(v.job) // with the labels that it will carry: some rules look at them
		v.errs = append(v.errs, raycluster.ValidateSpec(cluster, v.path.Child("rayClusterSpec"))...)
	}
}

func (v *validator) mode() {
	path, mode := v.path.Child("submissionMode"), v.spec.SubmissionMode
	known := []rayv1.JobSubmissionMode{rayv1.K8sJobMode, rayv1.HTTPMode, rayv1.InteractiveMode, rayv1.SidecarMode}
	switch {
	case !slices.Contains(known, mode):
		v.errs = append(v.errs, field.NotSupported(path, mode, known))
	case mode == rayv1.InteractiveMode && ptr.Deref(v.spec.BackoffLimit, 0) > 0:
		v.invalid(path, mode, "cannot be combined with spec.backoffLimit: nobody would submit the next attempt")
	case mode == rayv1.SidecarMode && v.shared():
		v.invalid(path, mode, notShared+"the submitter is part of the head Pod")
	}
}

// sidecar checks what cannot be had when a container of the head Pod submits.
func (v *validator) sidecar() {
	if v.spec.SubmissionMode != rayv1.SidecarMode {
		return
	}
	if v.spec.SubmitterPodTemplate != nil {
		v.errs = append(v.errs, field.Forbidden(v.path.Child("submitterPodTemplate"), "is not for SidecarMode, which makes no submitter Pod"))
	}
	if v.spec.SubmitterConfig != nil {
		v.errs = append(v.errs, field.Forbidden(v.path.Child("submitterConfig"), "is not for SidecarMode, which makes no submitter Job"))
	}
	if v.spec.RayClusterSpec == nil {
		return
	}
	if policy := v.spec.RayClusterSpec.HeadGroupSpec.Template.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyNever {
		v.invalid(v.path.Child("rayClusterSpec", "headGroupSpec", "template", "spec", "restartPolicy"), policy,
			"must be Never or absent in SidecarMode: the job ends with the head Pod")
	}
}

// submits tells whether Heliostat makes the submission. Otherwise the user does, or a command of the user's.
func (v *validator) submits() bool {
	switch v.spec.SubmissionMode {
	case rayv1.HTTPMode, rayv1.SidecarMode:
		return true
	case rayv1.K8sJobMode:
		template := v.spec.SubmitterPodTemplate
		return template == nil || len(template.Spec.Containers) == 0 || len(template.Spec.Containers[0].Command) == 0
	default:
		return false
	}
}

// submission checks what is sent to Ray.
func (v *validator) submission() {
	id := v.spec.JobId
	if strings.ContainsAny(id, "/?#%") || strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		v.invalid(v.path.Child("jobId"), id, "must hold no blanks, no control characters and none of / ? # %: Ray puts it into paths")
	}
	if !v.submits() {
		return
	}
	const noNUL = "must hold no NUL character"
	switch entrypoint := v.path.Child("entrypoint"); {
	case strings.TrimSpace(v.spec.Entrypoint) == "":
		v.required(entrypoint, "is the command that Ray runs")
	case strings.Contains(v.spec.Entrypoint, "\x00"):
		v.invalid(entrypoint, shown(v.spec.Entrypoint), noNUL)
	}
	for _, key := range slices.Sorted(maps.Keys(v.spec.Metadata)) {
		if value := v.spec.Metadata[key]; strings.Contains(key+value, "\x00") {
			v.invalid(v.path.Child("metadata").Key(shown(key)), shown(value), noNUL)
		}
	}
	if text := v.spec.EntrypointResources; text != "" {
		var resources map[string]float64
		if err := json.Unmarshal([]byte(text), &resources); err != nil || resources == nil {
			v.invalid(v.path.Child("entrypointResources"), shown(text), `must be a JSON object of names and numbers, for example {"accelerator": 1}`)
		}
	}
}

// submitter checks the Job that submits.
func (v *validator) submitter() {
	if v.spec.SubmissionMode != rayv1.K8sJobMode {
		return
	}
	if template := v.spec.SubmitterPodTemplate; template != nil {
		path := v.path.Child("submitterPodTemplate", "spec")
		if len(template.Spec.Containers) == 0 {
			v.required(path.Child("containers"), "must hold at least one container: the first one submits the job")
		}
		if policy := template.Spec.RestartPolicy; policy == corev1.RestartPolicyAlways {
			v.invalid(path.Child("restartPolicy"), policy, "must be Never or OnFailure, as for every Job")
		}
	}
	if c := v.spec.SubmitterConfig; c != nil && ptr.Deref(c.BackoffLimit, 0) < 0 {
		v.invalid(v.path.Child("submitterConfig", "backoffLimit"), *c.BackoffLimit, "must not be negative")
	}
}

func (v *validator) runtimeEnv() {
	if _, err := runtimeEnvOf(v.job); err != nil {
		v.invalid(v.path.Child("runtimeEnvYAML"), shown(v.spec.RuntimeEnvYAML), "must be a YAML mapping")
	}
}

func (v *validator) limits() {
	for _, deadline := range []struct {
		name  string
		value *int32
	}{{"activeDeadlineSeconds", v.spec.ActiveDeadlineSeconds}, {"preRunningDeadlineSeconds", v.spec.PreRunningDeadlineSeconds}} {
		if deadline.value != nil && *deadline.value <= 0 {
			v.invalid(v.path.Child(deadline.name), *deadline.value, "must be greater than 0")
		}
	}
	switch limit, path := ptr.Deref(v.spec.BackoffLimit, 0), v.path.Child("backoffLimit"); {
	case limit < 0:
		v.invalid(path, limit, "must not be negative")
	case limit > 0 && v.shared():
		v.invalid(path, limit, notShared+"every attempt gets a cluster of its own")
	}
	switch ttl, path := v.spec.TTLSecondsAfterFinished, v.path.Child("ttlSecondsAfterFinished"); {
	case ttl < 0:
		v.invalid(path, ttl, "must not be negative")
	case ttl > 0 && !v.spec.ShutdownAfterJobFinishes:
		v.invalid(path, ttl, "needs spec.shutdownAfterJobFinishes")
	}
}

func (v *validator) suspend() {
	if v.spec.Suspend && !v.spec.ShutdownAfterJobFinishes {
		v.invalid(v.path.Child("suspend"), true, "needs spec.shutdownAfterJobFinishes, because a suspended job gives up its cluster")
	}
}

// shown is as much of a text as is worth repeating.
func shown(text string) string { return excerpt.Beginning(text, maxShown) }

// invalidReason is the event's reason for the errors that Validate found.
func invalidReason(err error) string {
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return "InvalidRayJobSpec"
	}
	var first *field.Error
	if errors.As(all.Errors()[0], &first) && strings.HasPrefix(first.Field, "metadata.") {
		return "InvalidRayJobMetadata"
	}
	return "InvalidRayJobSpec"
}
