package raycronjob

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/condition"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

// Foresee is the Plan for a Snapshot of Observe, without what an operator might decide in another way because it remembers a
// refused write.
func Foresee(s Snapshot, jobs rayjob.Settings, now time.Time) action.Outlook {
	outlook := action.Outlook{Plan: Plan(s, jobs, now)}
	cron := s.Cron
	if cron == nil || cron.DeletionTimestamp != nil {
		return outlook
	}
	if write := outlook.Status; write != nil {
		cron = write.Object.(*rayv1.RayCronJob).DeepCopy()
		if why := condition.NoLongerStalled(cron.Status.Conditions, s.Cron.Status.Conditions); why != "" && len(outlook.Actions) > 0 {
			condition.Restore(&cron.Status.Conditions, s.Cron.Status.Conditions, rayv1.ConditionReady, rayv1.ConditionReconciling, rayv1.ConditionStalled, rayv1.ConditionTroubled)
			outlook.Unknown = append(outlook.Unknown, action.StillStalled(why))
			outlook.Status = &action.StatusWrite{Object: cron, Base: write.Base, Why: write.Why}
			if equality.Semantic.DeepEqual(cron.Status, s.Cron.Status) {
				outlook.Status = nil
			}
		}
	}
	outlook.Waits = awaited(cron, now)
	return outlook
}

// awaited says what a RayCronJob waits for.
func awaited(cron *rayv1.RayCronJob, now time.Time) []string {
	switch next := cron.Status.NextScheduleTime; {
	case cron.Spec.Suspend != nil && *cron.Spec.Suspend:
		return []string{"spec.suspend to be false"}
	case next == nil:
		return []string{"the spec to be corrected"}
	case next.After(now):
		return []string{"the tick of " + next.UTC().Format(time.RFC3339)}
	default:
		return nil
	}
}
