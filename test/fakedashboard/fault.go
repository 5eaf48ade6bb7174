package fakedashboard

import (
	"net/http"
	"net/http/httptest"
	"time"
)

// Endpoint names what a request asks for.
type Endpoint string

// The endpoints that the dashboard serves.
const (
	EndpointVersion Endpoint = "version"
	EndpointHealth  Endpoint = "health"
	EndpointSubmit  Endpoint = "submit"
	EndpointList    Endpoint = "list"
	EndpointGet     Endpoint = "get"
	EndpointStop    Endpoint = "stop"
	EndpointDelete  Endpoint = "delete"
	EndpointLogs    Endpoint = "logs"
	// EndpointServe is the report of Serve, EndpointPutServe a config for it.
	EndpointServe    Endpoint = "serve"
	EndpointPutServe Endpoint = "put-serve"
	// EndpointNodes and its like are lists of the State API.
	EndpointNodes  Endpoint = "nodes"
	EndpointActors Endpoint = "actors"
	EndpointGroups Endpoint = "placement_groups"
)

// Fault is a misbehaviour. The first one that fits a request is used.
type Fault struct {
	// Endpoint and JobID say which requests are hit; empty means all. The id of a submission is in its body.
	Endpoint Endpoint
	JobID    string
	// Times is how many requests are hit; 0 means all until ClearFaults.
	Times int
	// TakesEffect makes the dashboard do what it was asked before it misbehaves: a submission is accepted although the
	// caller will not hear of it.
	TakesEffect bool
	// Delay holds the answer back.
	Delay time.Duration
	// Never keeps the caller waiting until it gives up.
	Never bool
	// Code and Body replace the answer; a Code of 0 keeps the real one.
	Code int
	Body string
}

// NoAgent is the answer of a head whose agent is not there yet.
func NoAgent(times int) Fault {
	return Fault{Endpoint: EndpointSubmit, Times: times, Code: http.StatusInternalServerError,
		Body: "No available agent to submit job, please try again later."}
}

// RefusedByAgent is how Ray passes on that its agent found a submission invalid.
func RefusedByAgent(cause string) Fault {
	return Fault{Endpoint: EndpointSubmit, Code: http.StatusInternalServerError, Body: pythonTraceback(
		"RuntimeError: Request failed with status code 400: " + pythonTraceback("ValueError: "+cause) + ".")}
}

// ServeSilent is the answer of a dashboard that gets none from the controller of Serve, as while the GCS is away.
func ServeSilent(times int) Fault {
	return Fault{Endpoint: EndpointServe, Times: times, Code: http.StatusServiceUnavailable,
		Body: "Failed to get a response from the controller. The GCS may be down, please retry later: ray::ServeController.get_serve_instance_details()"}
}

// NoServe is the answer of a head without Serve in its image.
func NoServe() Fault {
	return Fault{Endpoint: EndpointServe, Code: http.StatusNotImplemented,
		Body: `Serve dependencies are not installed. Please run ` + "`pip install \"ray[serve]\"`."}
}

// Inject adds a fault.
func (d *Dashboard) Inject(fault Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, &fault)
}

// ClearFaults ends all faults. Requests that are waiting already keep waiting.
func (d *Dashboard) ClearFaults() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = nil
}

// takeFault returns the fault that hits this request and counts it.
func (d *Dashboard) takeFault(endpoint Endpoint, jobID string) (Fault, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, fault := range d.faults {
		if fault.Endpoint != "" && fault.Endpoint != endpoint || fault.JobID != "" && fault.JobID != jobID {
			continue
		}
		if fault.Times == 1 {
			d.faults = append(d.faults[:i:i], d.faults[i+1:]...)
		} else if fault.Times > 1 {
			fault.Times--
		}
		return *fault, true
	}
	return Fault{}, false
}

// misbehave answers the request as the fault says.
func (d *Dashboard) misbehave(w http.ResponseWriter, r *http.Request, fault Fault, answer func(http.ResponseWriter)) {
	recorder := httptest.NewRecorder()
	if fault.TakesEffect {
		answer(recorder)
	}
	if fault.Never {
		d.wait(r, nil)
		panic(http.ErrAbortHandler)
	}
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		if !d.wait(r, timer.C) {
			panic(http.ErrAbortHandler)
		}
	}
	if fault.Code != 0 {
		w.WriteHeader(fault.Code)
		_, _ = w.Write([]byte(fault.Body))
		return
	}
	if !fault.TakesEffect {
		answer(w)
		return
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

// wait returns true once the timer has fired, and false if the caller or the test ended before.
func (d *Dashboard) wait(r *http.Request, timer <-chan time.Time) bool {
	select {
	case <-timer:
		return true
	case <-r.Context().Done():
	case <-d.closed:
	}
	return false
}

// pythonTraceback dresses an exception up as Ray sends it.
func pythonTraceback(exception string) string {
	return "Traceback (most recent call last):\n" +
		"  File \"/usr/lib/python3/site-packages/ray/dashboard/modules/job/job_head.py\", line 419, in submit_job\n" +
		"    resp = await job_agent_client.submit_job_internal(submit_request)\n" +
		exception + "\n"
}
