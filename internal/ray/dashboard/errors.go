package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// What Ray's answers mean to a caller. The errors of this package are compared with errors.Is; the full answer is kept
// in a *StatusError.
var (
	// ErrNotFound says that the Ray cluster which answered knows no job of that id. It is never returned for a 404 that
	// something other than Ray's job API produced.
	ErrNotFound = errors.New("the job is unknown to Ray")
	// ErrAlreadyExists says that a job of that submission id was accepted before. Whether it is ours must be seen from
	// the metadata of the job.
	ErrAlreadyExists = errors.New("a job with this submission id already exists")
	// ErrNoAgent says that the head has no agent yet that could start the job. Nothing was recorded; try again later.
	ErrNoAgent = errors.New("no Ray agent is available to take the job")
	// ErrRefused says that Ray looked at the request and will not take it, however often it is repeated.
	ErrRefused = errors.New("Ray refused the request as invalid")
	// ErrServeSilent says that the dashboard is there, but the controller of Ray Serve, or the GCS behind it, gives no
	// answer. Nothing is known about the applications; ask again later.
	ErrServeSilent = errors.New("the controller of Ray Serve gives no answer")
	// ErrNoServe says that Ray Serve is not installed in the image of the head.
	ErrNoServe = errors.New("Ray Serve is not installed on the head")
	// ErrUnauthorized says that the authentication token is missing or wrong.
	ErrUnauthorized = errors.New("Ray refused the authentication token")
	// ErrUnexpectedAnswer says that something answered with success, but not in the way Ray does.
	ErrUnexpectedAnswer = errors.New("the answer is not one that Ray gives")
	// ErrNotRay says that the API server of Kubernetes, through which the call went, did not get it to Ray: the Service is
	// missing or has no endpoints, or the operator may not use the proxy. Nothing is known about the job.
	ErrNotRay = errors.New("the API server answered in Ray's stead")
)

// Fragments of Ray's error texts. Ray reports most failures as status 500, so the text is the only thing that tells
// what is permanent from what is not.
const (
	// Before it stands "Job" and the id, which no other part of a cluster says.
	textJob           = "Job "
	textNoSuchJob     = "does not exist"
	textDuplicate     = "Please use a different submission_id"
	textNoAgent       = "No available agent to submit job"
	textRefusedInside = "Request failed with status code 400"
	textServeSilent   = "Failed to get a response from the controller"
	textNoServe       = "Serve dependencies are not installed"
)

// maxErrorText is how many bytes of an answer are quoted in an error. Errors end up in conditions and events, while Ray
// answers many failures with a whole Python traceback.
const maxErrorText = 512

// CallError is a call to which there was no answer. Of a call that writes it leaves open whether Ray has performed it.
type CallError struct {
	// Call is the method and the path that were called, such as "GET /api/jobs/raysubmit_1".
	Call string
	// BaseURL is the address of the dashboard.
	BaseURL string
	// Err is what went wrong.
	Err error
}

// Error names the call, the dashboard and what went wrong.
func (e *CallError) Error() string {
	return fmt.Sprintf("calling %s at %s: %v", e.Call, e.BaseURL, e.Err)
}

// Unwrap returns what went wrong.
func (e *CallError) Unwrap() error { return e.Err }

// StatusError is an answer with a status code other than 2xx.
type StatusError struct {
	// Call is the method and the path that were called, such as "GET /api/jobs/raysubmit_1". Error leaves it out if empty.
	Call string
	// Code is the HTTP status code.
	Code int
	// Text is the body of the answer, cut to 512 bytes.
	Text string

	kind error
}

// Error names the call, what its answer means and the answer itself.
func (e *StatusError) Error() string {
	answer := fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code))
	if e.Text != "" {
		answer += ": " + e.Text
	}
	if e.kind != nil {
		answer = fmt.Sprintf("%v (%s)", e.kind, answer)
	}
	if e.Call != "" {
		answer = e.Call + ": " + answer
	}
	return answer
}

// Unwrap returns the meaning of the answer, or nil if it has none that this package knows.
func (e *StatusError) Unwrap() error { return e.kind }

// answered returns the error for an answer with a code other than 2xx. The meaning is looked for in the whole body,
// because Ray puts the decisive sentence at the end of a traceback.
func answered(call string, code int, body []byte, meanings ...meaning) error {
	if message, ok := kubernetesSays(body); ok {
		return &StatusError{Call: call, Code: code, Text: shorten(message), kind: ErrNotRay}
	}
	e := &StatusError{Call: call, Code: code, Text: shorten(string(body))}
	if code == http.StatusUnauthorized || code == http.StatusForbidden {
		e.kind = ErrUnauthorized
		return e
	}
	for _, m := range meanings {
		if m.code == code && strings.HasPrefix(string(body), m.begins) && strings.Contains(string(body), m.text) {
			e.kind = m.kind
			return e
		}
	}
	return e
}

// meaning says what an answer of this code that contains this text, and begins in this way, stands for.
type meaning struct {
	code   int
	begins string
	text   string
	kind   error
}

// noSuchJob is what Ray says about a job that it does not know.
func noSuchJob() meaning {
	return meaning{code: http.StatusNotFound, begins: textJob, text: textNoSuchJob, kind: ErrNotFound}
}

// traceback is how Python begins to tell of an exception.
const traceback = "Traceback (most recent call last)"

// shorten makes a body fit for an error: of a Python traceback only the exception is kept, which comes last, and
// everything is cut to maxErrorText bytes without splitting a character.
func shorten(text string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "?"))
	if strings.Contains(text, traceback) {
		text = exception(text)
	}
	if len(text) <= maxErrorText {
		return text
	}
	const gap = " ..."
	end := maxErrorText - len(gap)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + gap
}

// exception returns the last part of a traceback, from the line that names the exception. That line is not indented and
// begins with a dotted name and a colon. The text is returned as it is if there is no such line.
func exception(text string) string {
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		name, _, found := strings.Cut(lines[i], ": ")
		if found && name != "" && !strings.ContainsAny(name, " \t(") {
			return strings.TrimRight(strings.Join(lines[i:], "\n"), "\n.")
		}
	}
	return text
}
