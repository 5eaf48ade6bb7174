package fakedashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ServeHTTP answers as a dashboard does, or as the next fault says.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.isDown() {
		panic(http.ErrAbortHandler)
	}
	// Reading everything first lets the server notice a caller that goes away while the answer is held back.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	endpoint, id := route(r)
	if endpoint == EndpointSubmit {
		id = d.countAttempt(body)
	}
	d.count(endpoint, body)

	answer := func(w http.ResponseWriter) { d.answer(w, r, endpoint, id, body) }
	if fault, hit := d.takeFault(endpoint, id); hit {
		d.misbehave(w, r, fault, answer)
		return
	}
	answer(w)
}

// route tells what a request asks for, and for which job.
func route(r *http.Request) (Endpoint, string) {
	// The escaped path is used because a submission id may contain a slash.
	path := r.URL.EscapedPath()
	switch r.Method + " " + path {
	case "GET /api/version":
		return EndpointVersion, ""
	case "GET /api/gcs_healthz":
		return EndpointHealth, ""
	case "GET /api/jobs/":
		return EndpointList, ""
	case "POST /api/jobs/":
		return EndpointSubmit, ""
	case "GET /api/serve/applications/":
		return EndpointServe, ""
	case "PUT /api/serve/applications/":
		return EndpointPutServe, ""
	}
	if kind, ok := strings.CutPrefix(path, "/api/v0/"); ok && r.Method == http.MethodGet {
		return Endpoint(kind), ""
	}
	rest, ok := strings.CutPrefix(path, "/api/jobs/")
	if !ok {
		return "", ""
	}
	escaped, verb, _ := strings.Cut(rest, "/")
	id, err := url.PathUnescape(escaped)
	if err != nil {
		return "", ""
	}
	switch r.Method + " " + verb {
	case "GET ":
		return EndpointGet, id
	case "DELETE ":
		return EndpointDelete, id
	case "POST stop":
		return EndpointStop, id
	case "GET logs":
		return EndpointLogs, id
	}
	return "", ""
}

func (d *Dashboard) count(endpoint Endpoint, body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests[endpoint]++
	if endpoint == EndpointPutServe {
		d.lastServePut = body
	}
}

// countAttempt returns the submission id in the body of a submission, and counts it.
func (d *Dashboard) countAttempt(body []byte) string {
	var request struct {
		SubmissionID string `json:"submission_id"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts[request.SubmissionID]++
	return request.SubmissionID
}

// answer is what a dashboard in good health does.
func (d *Dashboard) answer(w http.ResponseWriter, r *http.Request, endpoint Endpoint, id string, body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.admit(w, r, endpoint) {
		return
	}
	switch endpoint {
	case EndpointVersion:
		sendJSON(w, map[string]any{"version": "4", "ray_version": d.version, "ray_commit": "0000000", "session_name": d.sessionName()})
	case EndpointHealth:
		sendText(w, http.StatusOK, "success")
	case EndpointSubmit:
		d.submit(w, body)
	case EndpointServe:
		d.reportServe(w, r)
	case EndpointPutServe:
		d.putServe(w, body)
	case EndpointList:
		all := []any{}
		for _, job := range d.jobs {
			all = append(all, job.wire())
		}
		sendJSON(w, all)
	case EndpointNodes, EndpointActors, EndpointGroups:
		d.listState(w, endpoint)
	case EndpointGet, EndpointStop, EndpointDelete, EndpointLogs:
		job, ok := d.jobs[id]
		if !ok {
			sendText(w, http.StatusNotFound, fmt.Sprintf("Job %s does not exist", id))
			return
		}
		d.answerJob(w, endpoint, job)
	default:
		sendText(w, http.StatusNotFound, "404: Not Found")
	}
}

// admit refuses browsers and callers without the token, as Ray does.
func (d *Dashboard) admit(w http.ResponseWriter, r *http.Request, endpoint Endpoint) bool {
	browser := strings.HasPrefix(r.UserAgent(), "Mozilla") || r.Header.Get("Origin") != "" || r.Header.Get("Referer") != ""
	if browser && r.Method != http.MethodGet {
		sendText(w, http.StatusMethodNotAllowed, "Method Not Allowed for browser traffic.")
		return false
	}
	if d.token == "" || endpoint == EndpointHealth {
		return true
	}
	given := r.Header.Get("Authorization")
	if given == "" {
		given = r.Header.Get("X-Ray-Authorization")
	}
	switch given {
	case "Bearer " + d.token:
		return true
	case "":
		sendText(w, http.StatusUnauthorized, "Unauthorized: Missing authentication token")
	default:
		sendText(w, http.StatusForbidden, "Forbidden: Invalid authentication token")
	}
	return false
}

// submitBody has all the keys that Ray takes; any other is refused.
type submitBody struct {
	Entrypoint          *string            `json:"entrypoint"`
	SubmissionID        string             `json:"submission_id"`
	JobID               string             `json:"job_id"`
	RuntimeEnv          map[string]any     `json:"runtime_env"`
	Metadata            map[string]string  `json:"metadata"`
	EntrypointNumCPUs   *float64           `json:"entrypoint_num_cpus"`
	EntrypointNumGPUs   *float64           `json:"entrypoint_num_gpus"`
	EntrypointMemory    *int64             `json:"entrypoint_memory"`
	EntrypointResources map[string]float64 `json:"entrypoint_resources"`
	EntrypointLabels    map[string]string  `json:"entrypoint_label_selector"`
}

func (d *Dashboard) submit(w http.ResponseWriter, body []byte) {
	if !json.Valid(body) {
		sendText(w, http.StatusInternalServerError, "500 Internal Server Error\n\nServer got itself in trouble")
		return
	}
	var request submitBody
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		sendText(w, http.StatusBadRequest, pythonTraceback("TypeError: JobSubmitRequest: "+err.Error()))
		return
	}
	if request.Entrypoint == nil {
		sendText(w, http.StatusBadRequest, pythonTraceback("TypeError: JobSubmitRequest.__init__() missing 1 required positional argument: 'entrypoint'"))
		return
	}
	id := request.SubmissionID
	if id == "" {
		id = fmt.Sprintf("raysubmit_%016d", len(d.submissions)+1)
	}
	if _, taken := d.jobs[id]; taken {
		sendText(w, http.StatusInternalServerError, pythonTraceback(fmt.Sprintf(
			"ValueError: Job with submission_id %s already exists. Please use a different submission_id.\n.", id)))
		return
	}
	job := &Job{SubmissionID: id, Entrypoint: *request.Entrypoint, Metadata: request.Metadata, RuntimeEnv: request.RuntimeEnv,
		NumCPUs: request.EntrypointNumCPUs, NumGPUs: request.EntrypointNumGPUs, Resources: request.EntrypointResources, StartTime: time.Now()}
	script, ok := d.scripts[id]
	if !ok {
		script = d.defaultScript
	}
	job.follow(script)
	d.jobs[id] = job
	d.submissions[id]++
	sendJSON(w, map[string]any{"job_id": id, "submission_id": id})
}

// answerJob serves the endpoints that are about one existing job.
func (d *Dashboard) answerJob(w http.ResponseWriter, endpoint Endpoint, job *Job) {
	ended := terminal(job.Step.Status)
	switch endpoint {
	case EndpointGet:
		sendJSON(w, job.wire())
		job.advance()
	case EndpointStop:
		if !ended {
			job.follow(d.stopScript)
		}
		sendJSON(w, map[string]any{"stopped": !ended})
	case EndpointDelete:
		if !ended {
			sendText(w, http.StatusInternalServerError, pythonTraceback(fmt.Sprintf(
				"RuntimeError: Attempted to delete job '%s', but it is in a non-terminal state %s.", job.SubmissionID, job.Step.Status)))
			return
		}
		delete(d.jobs, job.SubmissionID)
		sendJSON(w, map[string]any{"deleted": true})
	case EndpointLogs:
		sendJSON(w, map[string]any{"logs": "Running entrypoint for job " + job.SubmissionID + ": " + job.Entrypoint + "\n"})
	}
}

// wire is the job as Ray writes it, with null for what there is not.
func (j *Job) wire() map[string]any {
	out := map[string]any{
		"type": "SUBMISSION", "job_id": nil, "submission_id": j.SubmissionID, "driver_info": nil,
		"status": j.Step.Status, "entrypoint": j.Entrypoint, "message": j.Step.Message, "error_type": nil,
		"start_time": j.StartTime.UnixMilli(), "end_time": nil, "metadata": nil, "runtime_env": nil,
		"driver_agent_http_address": nil, "driver_node_id": nil, "driver_exit_code": nil,
	}
	if j.Step.ErrorType != "" {
		out["error_type"] = j.Step.ErrorType
	}
	if !j.EndTime.IsZero() {
		out["end_time"] = j.EndTime.UnixMilli()
	}
	if j.Metadata != nil {
		out["metadata"] = j.Metadata
	}
	if j.RuntimeEnv != nil {
		out["runtime_env"] = j.RuntimeEnv
	}
	if j.Step.ExitCode != nil {
		out["driver_exit_code"] = *j.Step.ExitCode
	}
	return out
}

func sendJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	encoded, err := json.Marshal(value)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(encoded)
}

func sendText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}
