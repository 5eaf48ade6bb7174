package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// RayCronJobSpec is the desired state of a RayCronJob.
type RayCronJobSpec struct {
	// jobTemplate is the spec of the RayJobs that are created.
	JobTemplate RayJobSpec `json:"jobTemplate"`
	// schedule is when to create a RayJob: five fields as in cron, or a word such as "@hourly", or "@every 30m".
	Schedule string `json:"schedule"`
	// timeZone is the time zone of the schedule, by its name in the tz database. Unset means the operator's own.
	// +optional
	// +kubebuilder:validation:MinLength=1
	TimeZone *string `json:"timeZone,omitempty"`
	// suspend stops the creation of RayJobs while it is true. RayJobs that exist are left alone.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// RayCronJobStatus is what was last done for a RayCronJob.
type RayCronJobStatus struct {
	// lastScheduleTime is the last tick for which a RayJob was created.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}
