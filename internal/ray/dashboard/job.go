package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

// JobStatus is where a job stands, in Ray's words.
type JobStatus string

// The states that Ray reports. The last three are final.
const (
	JobPending   JobStatus = "PENDING"
	JobRunning   JobStatus = "RUNNING"
	JobStopped   JobStatus = "STOPPED"
	JobSucceeded JobStatus = "SUCCEEDED"
	JobFailed    JobStatus = "FAILED"
)

// Known reports whether the status is one that Ray has. An answer with another one is not believed.
func (s JobStatus) Known() bool {
	switch s {
	case JobPending, JobRunning, JobStopped, JobSucceeded, JobFailed:
		return true
	}
	return false
}

// Terminal reports whether the job has ended. Such a status never changes again.
func (s JobStatus) Terminal() bool {
	return s == JobStopped || s == JobSucceeded || s == JobFailed
}

// JobType tells a job that was submitted from a program that connected by itself.
type JobType string

// The types of jobs that Ray reports.
const (
	JobTypeSubmission JobType = "SUBMISSION"
	JobTypeDriver     JobType = "DRIVER"
)

// ErrorType is Ray's reason for a failed job. Older releases give none.
type ErrorType string

// The reasons that Ray gives. Only ErrorEntrypointCommand is the fault of the program that was run; all the others come
// from the platform below it.
const (
	ErrorRuntimeEnvSetup         ErrorType = "RUNTIME_ENV_SETUP_FAILURE"
	ErrorSupervisorStartTimeout  ErrorType = "JOB_SUPERVISOR_ACTOR_START_TIMEOUT"
	ErrorSupervisorStart         ErrorType = "JOB_SUPERVISOR_ACTOR_START_FAILURE"
	ErrorSupervisorUnschedulable ErrorType = "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE"
	ErrorSupervisorDied          ErrorType = "JOB_SUPERVISOR_ACTOR_DIED"
	ErrorSupervisorUnknown       ErrorType = "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE"
	ErrorEntrypointStart         ErrorType = "JOB_ENTRYPOINT_COMMAND_START_ERROR"
	ErrorEntrypointCommand       ErrorType = "JOB_ENTRYPOINT_COMMAND_ERROR"
)

// JobDetails is what Ray tells of one job. The runtime environment is left out on purpose: it may hold credentials, and
// no decision needs it.
type JobDetails struct {
	Type JobType
	// JobID is Ray's inner id, in hex. Empty until the driver has connected.
	JobID string
	// SubmissionID is the id under which the job was submitted. Empty for a job of type DRIVER.
	SubmissionID string
	Status       JobStatus
	Entrypoint   string
	// Message explains the status. That of a failed job ends with up to 20,000 characters of the driver's log.
	Message string
	// ErrorType is empty unless the job failed and this Ray release gives reasons.
	ErrorType ErrorType
	// StartTime and EndTime are by the clock of the head; zero if not reached yet.
	StartTime time.Time
	EndTime   time.Time
	// Metadata is what the submitter attached, by which it can recognise its job.
	Metadata map[string]string
	// DriverExitCode is nil until the driver has ended by itself.
	DriverExitCode *int32
	// DriverNodeID is the hex id of the Ray node on which the driver runs.
	DriverNodeID string
	// DriverNodeIP and DriverPID are empty until the driver has connected.
	DriverNodeIP string
	DriverPID    string
}

// Clone returns a copy that shares nothing changeable with d. The clone of nil is nil.
func (d *JobDetails) Clone() *JobDetails {
	if d == nil {
		return nil
	}
	clone := *d
	clone.Metadata = maps.Clone(d.Metadata)
	if d.DriverExitCode != nil {
		code := *d.DriverExitCode
		clone.DriverExitCode = &code
	}
	return &clone
}

// jobAnswer is a job as Ray writes it.
type jobAnswer struct {
	Type           string         `json:"type"`
	JobID          string         `json:"job_id"`
	SubmissionID   string         `json:"submission_id"`
	Status         string         `json:"status"`
	Entrypoint     string         `json:"entrypoint"`
	Message        string         `json:"message"`
	ErrorType      string         `json:"error_type"`
	StartTime      *float64       `json:"start_time"`
	EndTime        *float64       `json:"end_time"`
	Metadata       map[string]any `json:"metadata"`
	DriverExitCode *float64       `json:"driver_exit_code"`
	DriverNodeID   string         `json:"driver_node_id"`
	DriverInfo     struct {
		NodeIP string `json:"node_ip_address"`
		PID    string `json:"pid"`
	} `json:"driver_info"`
}

// details checks that the answer is the job that was asked for, by its submission id or its inner id.
func (a jobAnswer) details(id string) (*JobDetails, error) {
	if a.SubmissionID != id && a.JobID != id {
		return nil, fmt.Errorf("%w: it is about job %q", ErrUnexpectedAnswer, a.SubmissionID)
	}
	if !JobStatus(a.Status).Known() {
		return nil, fmt.Errorf("%w: it says that the job is %q", ErrUnexpectedAnswer, a.Status)
	}
	details := &JobDetails{
		Type:         JobType(a.Type),
		JobID:        a.JobID,
		SubmissionID: a.SubmissionID,
		Status:       JobStatus(a.Status),
		Entrypoint:   a.Entrypoint,
		Message:      a.Message,
		ErrorType:    ErrorType(a.ErrorType),
		StartTime:    fromMillis(a.StartTime),
		EndTime:      fromMillis(a.EndTime),
		Metadata:     texts(a.Metadata),
		DriverNodeID: a.DriverNodeID,
		DriverNodeIP: a.DriverInfo.NodeIP,
		DriverPID:    a.DriverInfo.PID,
	}
	if a.DriverExitCode != nil {
		code := int32(*a.DriverExitCode)
		details.DriverExitCode = &code
	}
	return details, nil
}

// fromMillis turns milliseconds since the epoch into a time; nothing and zero into the zero time.
func fromMillis(millis *float64) time.Time {
	if millis == nil || *millis <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(*millis)).UTC()
}

// texts turns the values into text. Ray takes only text from us, but a job that someone else submitted is told as it is.
func texts(values map[string]any) map[string]string {
	if values == nil {
		return nil
	}
	out := make(map[string]string, len(values))
	for key, value := range values {
		text, ok := value.(string)
		if !ok {
			encoded, err := json.Marshal(value)
			if err != nil {
				continue
			}
			text = string(encoded)
		}
		out[key] = text
	}
	return out
}
