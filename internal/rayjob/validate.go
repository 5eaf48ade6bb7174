package rayjob

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/raycluster"
)

// maxNameLength leaves room for the endings of derived names.
const maxNameLength = 47

// Validate checks what the schema cannot, and returns all that is wrong, or nil. Each message names the field, its
// value and the rule.
func Validate(job *rayv1.RayJob) error {
	spec := field.NewPath("spec")
	errs := validateName(job)
	errs = append(errs, validateSource(job, spec)...)
	errs = append(errs, validateNumbers(&job.Spec, spec)...)
	errs = append(errs, validateModes(&job.Spec, spec)...)
	if job.Spec.Suspend && !job.Spec.ShutdownAfterJobFinishes {
		errs = append(errs, field.Invalid(spec.Child("suspend"), true, "needs spec.shutdownAfterJobFinishes, because a suspended job gives up its cluster"))
	}
	if job.Spec.Suspend && len(job.Spec.ClusterSelector) > 0 {
		errs = append(errs, field.Invalid(spec.Child("suspend"), true, "cannot be combined with spec.clusterSelector: the cluster belongs to someone else"))
	}
	if strings.ContainsAny(job.Spec.JobId, "/?#% \t\r\n") {
		errs = append(errs, field.Invalid(spec.Child("jobId"), job.Spec.JobId, "must hold no blanks and none of / ? # %: Ray puts it into paths"))
	}
	if _, err := runtimeEnvOf(job); err != nil {
		errs = append(errs, field.Invalid(spec.Child("runtimeEnvYAML"), job.Spec.RuntimeEnvYAML, "must be a YAML mapping"))
	}
	return errs.ToAggregate()
}

func validateName(job *rayv1.RayJob) field.ErrorList {
	if len(job.Name) <= maxNameLength {
		return nil
	}
	return field.ErrorList{field.TooLong(field.NewPath("metadata", "name"), job.Name, maxNameLength)}
}

func validateSource(job *rayv1.RayJob, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	selector := spec.Child("clusterSelector")
	switch {
	case len(job.Spec.ClusterSelector) > 0 && job.Spec.ClusterSelector[rayv1.LabelCluster] == "":
		errs = append(errs, field.Required(selector.Key(rayv1.LabelCluster), "names the RayCluster to run on"))
	case len(job.Spec.ClusterSelector) == 0 && job.Spec.RayClusterSpec == nil:
		errs = append(errs, field.Required(spec.Child("rayClusterSpec"), "either this or spec.clusterSelector must say where the job runs"))
	case len(job.Spec.ClusterSelector) == 0:
		cluster := rayCluster(job) // with the labels that it will carry: some rules look at them
		errs = append(errs, raycluster.ValidateSpec(cluster, spec.Child("rayClusterSpec"))...)
	}
	return errs
}

func validateNumbers(s *rayv1.RayJobSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.TTLSecondsAfterFinished < 0 {
		errs = append(errs, field.Invalid(spec.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished, "must not be negative"))
	}
	if s.TTLSecondsAfterFinished > 0 && !s.ShutdownAfterJobFinishes {
		errs = append(errs, field.Invalid(spec.Child("ttlSecondsAfterFinished"), s.TTLSecondsAfterFinished, "needs spec.shutdownAfterJobFinishes"))
	}
	for name, value := range map[string]*int32{
		"activeDeadlineSeconds": s.ActiveDeadlineSeconds, "preRunningDeadlineSeconds": s.PreRunningDeadlineSeconds} {
		if value != nil && *value <= 0 {
			errs = append(errs, field.Invalid(spec.Child(name), *value, "must be greater than 0"))
		}
	}
	if limit := ptr.Deref(s.BackoffLimit, 0); limit < 0 {
		errs = append(errs, field.Invalid(spec.Child("backoffLimit"), limit, "must not be negative"))
	} else if limit > 0 && len(s.ClusterSelector) > 0 {
		errs = append(errs, field.Invalid(spec.Child("backoffLimit"), limit, "cannot be combined with spec.clusterSelector: every attempt gets a cluster of its own"))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

func validateModes(s *rayv1.RayJobSpec, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	mode := spec.Child("submissionMode")
	known := []rayv1.JobSubmissionMode{rayv1.K8sJobMode, rayv1.HTTPMode, rayv1.InteractiveMode, rayv1.SidecarMode}
	switch {
	case !slices.Contains(known, s.SubmissionMode):
		errs = append(errs, field.NotSupported(mode, s.SubmissionMode, known))
	case s.SubmissionMode == rayv1.InteractiveMode && ptr.Deref(s.BackoffLimit, 0) > 0:
		errs = append(errs, field.Invalid(mode, s.SubmissionMode, "cannot be combined with spec.backoffLimit: nobody would submit the next attempt"))
	case s.SubmissionMode == rayv1.SidecarMode && len(s.ClusterSelector) > 0:
		errs = append(errs, field.Invalid(mode, s.SubmissionMode, "cannot be combined with spec.clusterSelector: the submitter is part of the head Pod"))
	case s.SubmissionMode == rayv1.HTTPMode && strings.TrimSpace(s.Entrypoint) == "":
		errs = append(errs, field.Required(spec.Child("entrypoint"), "is the command that Ray runs"))
	case s.SubmissionMode == rayv1.K8sJobMode && s.SubmitterPodTemplate == nil && strings.TrimSpace(s.Entrypoint) == "":
		errs = append(errs, field.Required(spec.Child("entrypoint"), "is the command that Ray runs"))
	}
	return errs
}

// invalidReason is the event's reason for a validation error.
func invalidReason(err error) string {
	var first *field.Error
	if errors.As(err, &first) && strings.HasPrefix(first.Field, "metadata") {
		return "InvalidRayJobMetadata"
	}
	return "InvalidRayJobSpec"
}
