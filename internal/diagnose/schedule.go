package diagnose

import (
	"fmt"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// cronRules are about the runs of a RayCronJob.
func cronRules() []objectRule {
	return []objectRule{
		{"schedule-invalid", Blocking, scheduleInvalid},
		{"run-refused", Blocking, runRefused},
		{"run-missed", Passing, runMissed},
		{"schedule-suspended", Note, scheduleSuspended},
	}
}

// scheduleInvalid also serves where no operator says so. What the operator says is told by spec-invalid.
func scheduleInvalid(s *Snapshot) []Finding {
	if s.CronJob == nil || s.verdict(cronObject(s.CronJob)) != "" {
		return nil
	}
	_, err := cron.ParseStandard(s.CronJob.Spec.Schedule)
	if err == nil {
		return nil
	}
	name := s.CronJob.Name
	return []Finding{{Reason: rayv1.ReasonSpecInvalid, Object: "RayCronJob " + name,
		Message: fmt.Sprintf("spec.schedule %q: %s", s.CronJob.Spec.Schedule, oneLine(err.Error())),
		Cause:   fmt.Sprintf("spec.schedule of RayCronJob %s is no schedule, so no RayJob is ever created.", name),
		Next: fmt.Sprintf("Set spec.schedule of RayCronJob %s to five fields as in \"0 3 * * *\", or to a word such as "+
			"@hourly.", name)}}
}

// runRefused is silent where the API server's text has a rule of its own.
func runRefused(s *Snapshot) []Finding {
	if s.CronJob == nil {
		return nil
	}
	c := cronObject(s.CronJob).condition(rayv1.ConditionStalled, metav1.ConditionTrue)
	if c == nil || c.Reason != rayv1.ReasonFailedToCreateRayJob || refusalOf(c.Message) != notRefused {
		return nil
	}
	return []Finding{{Reason: c.Reason, Object: "RayCronJob " + s.CronJob.Name, Message: shortened(c.Message),
		Cause: fmt.Sprintf("The API server does not take the RayJob that RayCronJob %s wants to create.", s.CronJob.Name),
		Next: fmt.Sprintf("Correct in spec.jobTemplate of RayCronJob %s what the message complains of; the next tick "+
			"tries again.", s.CronJob.Name)}}
}

// runMissed tells of ticks that were skipped after the last one that was run. A later run makes it history.
func runMissed(s *Snapshot) []Finding {
	if s.CronJob == nil || isTrue(s.CronJob.Spec.Suspend) {
		return nil
	}
	status, name := &s.CronJob.Status, s.CronJob.Name
	skipped := status.LastSkipped
	if skipped == nil || status.LastScheduleTime != nil && !skipped.Time.After(status.LastScheduleTime.Time) {
		return nil
	}
	finding := Finding{Reason: skipped.Reason, Object: "RayCronJob " + name,
		Message: "the last tick was not run: " + skipped.Reason}
	switch skipped.Reason {
	case rayv1.SkippedMissed:
		finding.Cause = fmt.Sprintf("The operator noticed the last tick of RayCronJob %s too late, or could not create "+
			"its RayJob.", name)
		finding.Next = fmt.Sprintf("See whether the operator was down at that time; raise spec.startingDeadlineSeconds of "+
			"RayCronJob %s to have ticks made up for that are noticed late.", name)
	case rayv1.SkippedActive:
		finding.Cause = fmt.Sprintf("An earlier run of RayCronJob %s had not ended at its last tick, and "+
			"spec.concurrencyPolicy is Forbid.", name)
		finding.Next = fmt.Sprintf("See what the RayJob in status.active of RayCronJob %s waits for; "+
			"spec.jobTemplate.activeDeadlineSeconds bounds how long a run may take.", name)
	default:
		return nil
	}
	return []Finding{finding}
}

func scheduleSuspended(s *Snapshot) []Finding {
	if s.CronJob == nil || !isTrue(s.CronJob.Spec.Suspend) {
		return nil
	}
	name := s.CronJob.Name
	return []Finding{{Reason: rayv1.ReasonSuspended, Object: "RayCronJob " + name, Message: "spec.suspend is true",
		Cause: fmt.Sprintf("RayCronJob %s creates no RayJobs because its spec.suspend is true.", name),
		Next:  fmt.Sprintf("Set spec.suspend of RayCronJob %s to false to have RayJobs created again.", name)}}
}
