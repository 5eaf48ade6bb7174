package raycronjob

import (
	"errors"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

// maxNameLength leaves room for the minutes in the name of a RayJob.
const maxNameLength = 36

// Validate checks what the schema cannot, and returns all that is wrong, or nil. Each message names the field, its value
// and the rule.
func Validate(cron *rayv1.RayCronJob, jobs rayjob.Settings) error {
	_, errs := scheduleOf(cron)
	errs = append(errs, validateName(cron.Name)...)
	errs = append(errs, validateMetadata(cron.Spec.JobTemplateMetadata)...)
	if len(errs) == 0 {
		// A run is judged as it would be made: with its name, its labels and its annotations.
		errs = append(errs, ofTemplate(rayjob.Validate(newRun(cron, time.Unix(0, 0)), jobs))...)
	}
	return errs.ToAggregate()
}

// scheduleOf reads the schedule of a RayCronJob.
func scheduleOf(cron *rayv1.RayCronJob) (Schedule, field.ErrorList) {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	zone, err := LoadZone(cron.Spec.TimeZone)
	if err != nil {
		errs = append(errs, field.Invalid(spec.Child("timeZone"), *cron.Spec.TimeZone, "must be the name of a zone in the tz database: "+err.Error()))
		zone = time.UTC
	}
	expression := cron.Spec.Schedule
	if strings.Contains(expression, "TZ") {
		return Schedule{}, append(errs, field.Invalid(spec.Child("schedule"), expression, "must not name a time zone; spec.timeZone does"))
	}
	schedule, err := ParseSchedule(expression, zone)
	if err != nil {
		errs = append(errs, field.Invalid(spec.Child("schedule"), expression, err.Error()))
	}
	return schedule, errs
}

func validateName(name string) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata", "name")
	if len(name) > maxNameLength {
		errs = append(errs, field.TooLong(path, name, maxNameLength))
	}
	for _, message := range validation.IsDNS1035Label(name) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

func validateMetadata(metadata *rayv1.RayCronJobTemplateMetadata) field.ErrorList {
	if metadata == nil {
		return nil
	}
	path := field.NewPath("spec", "jobTemplateMetadata")
	return append(metav1validation.ValidateLabels(metadata.Labels, path.Child("labels")),
		apivalidation.ValidateAnnotations(metadata.Annotations, path.Child("annotations"))...)
}

// ofTemplate says of the template what was said of a RayJob.
func ofTemplate(err error) field.ErrorList {
	if err == nil {
		return nil
	}
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		all = utilerrors.NewAggregate([]error{err})
	}
	var errs field.ErrorList
	for _, err := range all.Errors() {
		var one *field.Error
		if !errors.As(err, &one) {
			one = field.Invalid(field.NewPath("spec", "jobTemplate"), "", err.Error())
		}
		moved := *one
		if rest, found := strings.CutPrefix(one.Field, "spec"); found {
			moved.Field = "spec.jobTemplate" + rest
		} else if rest, found := strings.CutPrefix(one.Field, "metadata"); found {
			moved.Field = "spec.jobTemplateMetadata" + rest
		}
		errs = append(errs, &moved)
	}
	return errs
}
