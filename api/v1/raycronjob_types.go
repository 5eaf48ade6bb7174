package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RayCronJob creates a RayJob at each tick of a schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=all
// +kubebuilder:printcolumn:name="schedule",type=string,JSONPath=".spec.schedule"
// +kubebuilder:printcolumn:name="timezone",type=string,JSONPath=".spec.timeZone"
// +kubebuilder:printcolumn:name="last schedule",type=date,JSONPath=".status.lastScheduleTime"
// +kubebuilder:printcolumn:name="age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="suspend",type=boolean,JSONPath=".spec.suspend"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || size(self.metadata.name) <= 36",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayCronJob must have at most 36 characters",messageExpression="'metadata.name %s has %d characters; a RayCronJob may have at most 36, because the name of its RayJobs is made from it'.format([self.metadata.name, size(self.metadata.name)])"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",optionalOldSelf=true,fieldPath=".metadata",message="metadata.name of a RayCronJob must consist of lower-case letters, digits and '-', start with a letter and not end with '-'",messageExpression="'metadata.name ' + self.metadata.name + ' must consist of lower-case letters, digits and -, start with a letter and not end with -, because it becomes the name of a Service'"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || has(self.spec)",optionalOldSelf=true,message="spec must be given"
type RayCronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says when to create a RayJob, and which.
	// +optional
	Spec RayCronJobSpec `json:"spec,omitempty"`
	// status says which tick was handled last.
	// +optional
	Status RayCronJobStatus `json:"status,omitempty"`
}

// RayCronJobList is a list of RayCronJobs.
//
// +kubebuilder:object:root=true
type RayCronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the RayCronJobs of the list.
	Items []RayCronJob `json:"items"`
}

// ConcurrencyPolicy says what happens at a tick while earlier runs have not finished.
//
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

const (
	// AllowConcurrent lets runs overlap.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent skips the tick.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent deletes the earlier runs once the new one is there.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// RayCronJobSpec is the desired state of a RayCronJob.
type RayCronJobSpec struct {
	// jobTemplate is the spec of the RayJobs that are created.
	JobTemplate RayJobSpec `json:"jobTemplate"`
	// jobTemplateMetadata are labels and annotations of the RayJobs that are created. Heliostat adds this field.
	// +optional
	JobTemplateMetadata *RayCronJobTemplateMetadata `json:"jobTemplateMetadata,omitempty"`
	// schedule is when to create a RayJob: five fields as in cron, or a word such as "@hourly", or "@every 30m".
	Schedule string `json:"schedule"`
	// timeZone is the time zone of the schedule, by its name in the tz database. Unset means UTC.
	// +optional
	// +kubebuilder:validation:MinLength=1
	TimeZone *string `json:"timeZone,omitempty"`
	// suspend stops the creation of RayJobs while it is true. RayJobs that exist are left alone. Ticks of that time are not
	// made up for.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// concurrencyPolicy says what happens at a tick while earlier runs have not finished: Allow (also meant when unset) lets
	// runs overlap, Forbid skips the tick, Replace deletes the earlier runs. Heliostat adds this field.
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// startingDeadlineSeconds is how many seconds after its time a missed tick may still be run. Unset sets no limit.
	// However many ticks were missed, only the newest is run. Heliostat adds this field.
	// +optional
	// +kubebuilder:validation:Minimum=1
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// successfulJobsHistoryLimit is how many RayJobs that succeeded are kept; older ones are deleted. Unset keeps all.
	// Heliostat adds this field.
	// +optional
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// failedJobsHistoryLimit is how many RayJobs that ended otherwise are kept; older ones are deleted. Unset keeps all.
	// Heliostat adds this field.
	// +optional
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// RayCronJobTemplateMetadata are the labels and annotations of the RayJobs of a RayCronJob.
type RayCronJobTemplateMetadata struct {
	// labels of the RayJobs, for example the name of a queue.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the RayJobs.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RayCronJobStatus is what was last done for a RayCronJob, and what comes next.
type RayCronJobStatus struct {
	// lastScheduleTime is the last tick for which a RayJob was created.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastHandledTime is the time up to which every tick was run or skipped. The next tick is the first one after it.
	// Heliostat adds this field.
	// +optional
	LastHandledTime *metav1.Time `json:"lastHandledTime,omitempty"`
	// lastSkipped tells of the ticks that were skipped last. Heliostat adds this field.
	// +optional
	LastSkipped *RayCronJobSkipped `json:"lastSkipped,omitempty"`
	// lastSuccessfulTime is when a RayJob last ended that succeeded. Heliostat adds this field.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// nextScheduleTime is the next tick. It is absent while the RayCronJob is suspended or its spec is invalid. Heliostat
	// adds this field.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// active are the RayJobs that have not finished, the newest 100 of them. Heliostat adds this field.
	// +optional
	// +listType=atomic
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// schedule is spec.schedule as it was last looked at. Heliostat adds this field.
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// timeZone is the time zone that the schedule is read in. Heliostat adds this field.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// observedGeneration is the metadata.generation that this status speaks of. Heliostat adds this field.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions of the RayCronJob: Valid, Suspended, Ready, Reconciling and Stalled. Heliostat adds this field.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// RayCronJobSkipped tells of ticks for which no RayJob was created.
type RayCronJobSkipped struct {
	// time is the newest of the ticks.
	Time metav1.Time `json:"time"`
	// count is how many ticks were skipped at once. It is not counted beyond 100.
	Count int32 `json:"count"`
	// reason is MissSchedule, JobAlreadyActive, Suspended or ScheduleChanged.
	Reason string `json:"reason"`
}
