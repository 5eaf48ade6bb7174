package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// jobsPath ends with a slash, which Ray insists on.
const jobsPath = "/api/jobs/"

// SubmitRequest is a job to run. Fields that are empty or nil are not sent, since Ray refuses keys that its release does
// not know.
type SubmitRequest struct {
	// Entrypoint is the command line, which a shell on the driver's node runs. Required.
	Entrypoint string `json:"entrypoint"`
	// SubmissionID makes the submission repeatable: Ray takes each id only once. Required here, although Ray would draw
	// one, because a submission with an unknown outcome could not be looked up otherwise.
	SubmissionID string `json:"submission_id"`
	// RuntimeEnv is Ray's runtime environment: working_dir, pip, env_vars and so on.
	RuntimeEnv map[string]any `json:"runtime_env,omitempty"`
	// Metadata is attached to the job as it is.
	Metadata map[string]string `json:"metadata,omitempty"`
	// EntrypointNumCPUs is the number of logical CPUs that the driver takes.
	EntrypointNumCPUs *float64 `json:"entrypoint_num_cpus,omitempty"`
	// EntrypointNumGPUs is the number of logical GPUs that the driver takes.
	EntrypointNumGPUs *float64 `json:"entrypoint_num_gpus,omitempty"`
	// EntrypointMemory is the memory that the driver takes, in bytes.
	EntrypointMemory *int64 `json:"entrypoint_memory,omitempty"`
	// EntrypointResources are custom logical resources that the driver takes.
	EntrypointResources map[string]float64 `json:"entrypoint_resources,omitempty"`
}

// GetJob asks for the job of that submission id (or of that inner id, in hex). The error is ErrNotFound if the Ray
// cluster does not know it. That can mean "not submitted yet" as well as "lost with the head": only the caller knows
// whether the submission had been accepted.
func (c *Client) GetJob(ctx context.Context, id string) (*JobDetails, error) {
	ask, err := jobCall(http.MethodGet, id, "", noSuchJob())
	if err != nil {
		return nil, err
	}
	ask.timeout = c.readTimeout
	body, err := c.do(ctx, ask)
	if err != nil {
		return nil, err
	}
	var answer jobAnswer
	if err := decode(ask, body, &answer); err != nil {
		return nil, err
	}
	details, err := answer.details(id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ask, err)
	}
	return details, nil
}

// SubmitJob submits the job and returns its submission id. The error is
//   - ErrAlreadyExists if that submission id is taken. Ask GetJob for it and compare the metadata to learn by whom;
//   - ErrNoAgent if the head cannot start jobs yet; nothing was recorded, so try again;
//   - ErrRefused if the request is invalid and will stay so.
//
// After any other error, a time-out above all, the job may have been accepted or not. GetJob tells.
func (c *Client) SubmitJob(ctx context.Context, request SubmitRequest) (string, error) {
	if request.Entrypoint == "" || request.SubmissionID == "" {
		return "", errors.New("submitting a job: entrypoint and submission id are required")
	}
	// The order matters: what Ray's agent refuses is wrapped, so that the text of a duplicate can appear inside that of
	// an invalid request.
	submit := call{method: http.MethodPost, path: jobsPath, body: request, timeout: c.writeTimeout, meanings: []meaning{
		{code: http.StatusInternalServerError, text: textDuplicate, kind: ErrAlreadyExists},
		{code: http.StatusBadRequest, text: textDuplicate, kind: ErrAlreadyExists},
		{code: http.StatusInternalServerError, text: textNoAgent, kind: ErrNoAgent},
		{code: http.StatusInternalServerError, text: textRefusedInside, kind: ErrRefused},
		{code: http.StatusBadRequest, kind: ErrRefused},
	}}
	body, err := c.do(ctx, submit)
	if err != nil {
		return "", err
	}
	var answer struct {
		JobID        string `json:"job_id"`
		SubmissionID string `json:"submission_id"`
	}
	if err := decode(submit, body, &answer); err != nil {
		return "", err
	}
	id := answer.SubmissionID
	if id == "" {
		id = answer.JobID
	}
	if id != request.SubmissionID {
		return "", fmt.Errorf("%s: %w: it names job %q instead of %q", submit, ErrUnexpectedAnswer, id, request.SubmissionID)
	}
	return id, nil
}

// StopJob asks Ray to stop the job and reports whether a signal was sent; false usually means that the job has ended
// already. The job has stopped only once GetJob says so. The error is ErrNotFound if the job is unknown, and ErrRefused
// if it is a program that connected by itself, which Ray cannot stop.
func (c *Client) StopJob(ctx context.Context, id string) (bool, error) {
	var answer struct {
		Stopped *bool `json:"stopped"`
	}
	stop, err := c.changeJob(ctx, http.MethodPost, id, "/stop", &answer)
	if err != nil {
		return false, err
	}
	if answer.Stopped == nil {
		return false, fmt.Errorf("%s: %w: it does not say whether the job was stopped", stop, ErrUnexpectedAnswer)
	}
	return *answer.Stopped, nil
}

// DeleteJob removes the record of a job that has ended; its logs stay, and its submission id is free again. The error is
// ErrNotFound if the job is unknown, and ErrRefused if it is a program that connected by itself. For a job that has not
// ended Ray answers with status 500, which is returned as a *StatusError.
func (c *Client) DeleteJob(ctx context.Context, id string) error {
	var answer struct {
		Deleted bool `json:"deleted"`
	}
	remove, err := c.changeJob(ctx, http.MethodDelete, id, "", &answer)
	if err != nil {
		return err
	}
	if !answer.Deleted {
		return fmt.Errorf("%s: %w: it does not say that the job was deleted", remove, ErrUnexpectedAnswer)
	}
	return nil
}

// changeJob performs a write on an existing job and fills answer from what comes back.
func (c *Client) changeJob(ctx context.Context, method, id, suffix string, answer any) (call, error) {
	change, err := jobCall(method, id, suffix,
		noSuchJob(),
		meaning{code: http.StatusBadRequest, kind: ErrRefused})
	if err != nil {
		return change, err
	}
	change.timeout = c.writeTimeout
	body, err := c.do(ctx, change)
	if err != nil {
		return change, err
	}
	return change, decode(change, body, answer)
}

// jobCall is a call about one job. An empty id is refused, for it would name the list of all jobs.
func jobCall(method, id, suffix string, meanings ...meaning) (call, error) {
	if id == "" {
		return call{}, fmt.Errorf("calling %s %s: the id of the job is empty", method, jobsPath)
	}
	return call{method: method, path: jobsPath + url.PathEscape(id) + suffix, meanings: meanings}, nil
}
