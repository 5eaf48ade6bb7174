package v1

// ConditionRayCronJobSuspended is True while spec.suspend keeps RayJobs from being created. The other conditions of a
// RayCronJob are ConditionValid, ConditionReady, ConditionReconciling and ConditionStalled. Heliostat adds all of them.
const ConditionRayCronJobSuspended = "Suspended"

// Reasons of the conditions of a RayCronJob, besides ReasonSpecValid, ReasonSpecInvalid, ReasonSuspended,
// ReasonNameCollision and ReasonStalled.
const (
	// ReasonScheduled means that a RayJob will be created at each tick.
	ReasonScheduled = "Scheduled"
	// ReasonNotSuspended is the reason of ConditionRayCronJobSuspended while it is False.
	ReasonNotSuspended = "NotSuspended"
	// ReasonFailedToCreateRayJob means that the RayJob of a tick is refused; it is tried again until the next tick.
	ReasonFailedToCreateRayJob = "FailedToCreateRayJob"
)

// Reasons why ticks were skipped.
const (
	// SkippedMissed means that the ticks were noticed too late, or could not be run: the operator was down, RayJobs were
	// refused, or the spec was invalid.
	SkippedMissed = "MissSchedule"
	// SkippedActive means that an earlier run had not finished, which the concurrency policy Forbid does not allow.
	SkippedActive = "JobAlreadyActive"
	// SkippedSuspended means that the RayCronJob was suspended.
	SkippedSuspended = "Suspended"
	// SkippedScheduleChanged means that the ticks were due by a schedule that was changed before they were run.
	SkippedScheduleChanged = "ScheduleChanged"
)
