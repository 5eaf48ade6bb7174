package rayjob

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

const (
	// dashboardPatience is how long a submitter waits for the dashboard, in seconds.
	dashboardPatience = 300
	// logTries is how often a submitter begins to follow the log.
	logTries = 5
	// maxArgument is how long one argument of a program may be on Linux, in bytes.
	maxArgument = 128<<10 - 1
)

// The programs below are given to python in single quotes, so they hold none.
const (
	// pythonHealthy succeeds when the dashboard at the first argument says that it can reach the GCS.
	pythonHealthy = `import sys, urllib.request; ` +
		`sys.exit(b"success" not in urllib.request.urlopen(sys.argv[1] + "/api/gcs_healthz", timeout=10).read())`

	// pythonPatience lets a program ask again while nobody answers. What the dashboard refuses is not asked for again.
	pythonPatience = `import json, os, sys, time, urllib.request
def patiently(ask, seconds=300):
    end = time.monotonic() + seconds
    while True:
        try: return ask()
        except OSError as e:
            if getattr(e, "code", 500) < 500 or time.monotonic() > end: raise
            print("The Ray dashboard does not answer, trying again:", e, flush=True)
            time.sleep(2)
`
	// pythonSameHead fails unless the head at the first argument is in the session that the second one names, or that is "any".
	pythonSameHead = pythonPatience + `token, path = os.environ.get("RAY_AUTH_TOKEN"), os.environ.get("RAY_AUTH_TOKEN_PATH", "/var/run/secrets/ray.io/serviceaccount/token")
if not token and os.path.exists(path): token = open(path).read().strip()
headers = {"x-ray-authorization": "Bearer " + token} if token else {}
request = urllib.request.Request(sys.argv[1] + "/api/version", headers=headers)
session = json.load(patiently(lambda: urllib.request.urlopen(request, timeout=30))).get("session_name")
if sys.argv[2] not in (session, "any"): sys.exit("The head of the Ray cluster was replaced (session %s instead of %s). The job is not submitted to the new one." % (session, sys.argv[2]))`

	// pythonClient is the beginning of programs that use Ray's own client, which knows tokens and uploads local files.
	pythonClient = pythonPatience + `from ray.job_submission import JobSubmissionClient
client = patiently(lambda: JobSubmissionClient(sys.argv[1], headers=json.loads(os.environ.get("RAY_JOB_HEADERS", "null"))), 30)
`
	// pythonSubmit submits what the second argument holds, once: if the answer were lost and the head replaced, a second
	// try would run the job on the new head, which nobody follows.
	pythonSubmit = pythonClient + `client.submit_job(**json.loads(sys.argv[2]))
print("The job is submitted.")`

	// pythonVerdict waits for the end of the job that the second argument names, and fails unless it succeeded.
	pythonVerdict = pythonClient + `status = lambda: patiently(lambda: client.get_job_status(sys.argv[2]))
while status() not in ("STOPPED", "SUCCEEDED", "FAILED"): time.sleep(2)
sys.exit(status() != "SUCCEEDED")`
)

// submitScript waits for the dashboard, submits unless Ray has the job already, and follows the log. When the life of
// the head that is to take the job is on record, no other head is given it.
func submitScript(job *rayv1.RayJob) (string, error) {
	address := "http://" + job.Status.DashboardURL
	submit, err := submitCommand(job, address, "--no-wait")
	if err != nil {
		return "", err
	}
	if s := job.Status.Submission; s != nil && s.SessionName != "" {
		submit = python(pythonSameHead, address, s.SessionName) + " ; " + submit
	}
	id := argument(job.Status.JobId)
	return bounded(strings.Join([]string{
		waitForDashboard(address),
		"if ! ray job status --address", word(address), id, ">/dev/null 2>&1 ; then", submit, "; fi ;",
		followLog(word(address), id),
	}, " "))
}

// sidecarScript does the same within the head's own Pod, as soon as the operator lets it: the life of this head is on record
// then. It ends when the job has ended, and fails unless the job succeeded.
func sidecarScript(job *rayv1.RayJob, port int32) (string, error) {
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	submit, err := submitCommand(job, address, "")
	if err != nil {
		return "", err
	}
	steps := []string{
		waitForDashboard(fmt.Sprintf("http://localhost:%d", port)),
		waitForAdmission(), python(pythonSameHead, address), `"$(cat ` + admissionFile + `)" ;`,
		submit, ";",
	}
	if !cliCarries(job) {
		steps = append(steps, followLog(address, argument(job.Status.JobId)), ";")
	}
	steps = append(steps, python(pythonVerdict, address, job.Status.JobId))
	return bounded(strings.Join(steps, " "))
}

// waitForDashboard is shell text that ends the script when the dashboard does not answer for too long.
func waitForDashboard(address string) string {
	return fmt.Sprintf(`until %s >/dev/null 2>&1 ; do if [ $SECONDS -ge %d ] ; then echo %s >&2 ; exit 1 ; fi ; echo %s ; sleep 2 ; done ;`,
		python(pythonHealthy, address), dashboardPatience,
		ray.SingleQuote(fmt.Sprintf("The Ray dashboard at %s did not become healthy within %d seconds.", address, dashboardPatience)),
		ray.SingleQuote("Waiting for the Ray dashboard at "+address+" ..."))
}

// followLog is shell text that follows the log of a job to its end, and begins again a few times when a busy dashboard does not
// answer: the job is submitted by then, and a submitter that fails would be made anew for its log alone.
func followLog(address, id string) string {
	return fmt.Sprintf("tries=1 ; until ray job logs --address %s --follow %s ; do if [ $tries -ge %d ] ; then exit 1 ; fi ; "+
		"tries=$((tries+1)) ; sleep 2 ; done", address, id, logTries)
}

// waitForAdmission is shell text that waits for as long as it takes: the operator lets the script go on, or ends the attempt.
func waitForAdmission() string {
	return fmt.Sprintf("until [ -s %s ] ; do echo %s ; sleep 2 ; done ;", admissionFile,
		ray.SingleQuote("Waiting for the operator to record which head takes the job ..."))
}

// submitCommand is shell text for the submission. Ray's command line is used for what it carries without a change; it
// joins the words of the entrypoint again, and in another way from release to release. Ray's client takes everything.
func submitCommand(job *rayv1.RayJob, address, waiting string) (string, error) {
	request, err := submitRequest(job)
	if err != nil {
		return "", err
	}
	if !cliCarries(job) {
		text, err := asciiJSON(request)
		if err != nil {
			return "", fmt.Errorf("the submission cannot be written as JSON: %w", err)
		}
		return python(pythonSubmit, address, text), nil
	}
	words := []string{"ray job submit --address", word(address)}
	if waiting != "" {
		words = append(words, waiting)
	}
	flags, err := submitFlags(job, request)
	if err != nil {
		return "", err
	}
	words = append(words, flags...)
	return strings.Join(append(words, "--", job.Spec.Entrypoint), " "), nil
}

func submitFlags(job *rayv1.RayJob, request dashboard.SubmitRequest) ([]string, error) {
	var flags []string
	if len(request.RuntimeEnv) > 0 {
		text, err := asciiJSON(request.RuntimeEnv)
		if err != nil {
			return nil, fmt.Errorf("spec.runtimeEnvYAML cannot be written as JSON: %w", err)
		}
		flags = append(flags, "--runtime-env-json", doubleQuoted(text))
	}
	metadata, err := asciiJSON(request.Metadata)
	if err != nil {
		return nil, fmt.Errorf("spec.metadata cannot be written as JSON: %w", err)
	}
	flags = append(flags, "--metadata-json", doubleQuoted(metadata), "--submission-id", word(request.SubmissionID))
	if n := request.EntrypointNumCPUs; n != nil {
		flags = append(flags, fmt.Sprintf("--entrypoint-num-cpus %f", *n))
	}
	if n := request.EntrypointNumGPUs; n != nil {
		flags = append(flags, fmt.Sprintf("--entrypoint-num-gpus %f", *n))
	}
	if job.Spec.EntrypointResources != "" {
		flags = append(flags, "--entrypoint-resources", doubleQuoted(job.Spec.EntrypointResources))
	}
	return flags, nil
}

// plainWords are words between single blanks that mean the same with and without quotes to every shell.
var plainWords = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+( [A-Za-z0-9_@%+=:,./-]+)*$`)

// cliCarries tells whether the arguments of Ray's command line can carry the submission without any change.
func cliCarries(job *rayv1.RayJob) bool {
	return plainWords.MatchString(job.Spec.Entrypoint) && isASCII(job.Spec.EntrypointResources)
}

// word is shell text for exactly this one word.
func word(text string) string {
	if plainWords.MatchString(text) && !strings.Contains(text, " ") {
		return text
	}
	return ray.SingleQuote(text)
}

// argument is shell text for a positional argument of Ray's command line, which must not be taken for an option.
func argument(text string) string {
	if strings.HasPrefix(text, "-") {
		return "-- " + word(text)
	}
	return word(text)
}

// doubleQuoted is shell text for exactly this one word, in the quotes that clients are used to around JSON.
func doubleQuoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(text) + `"`
}

// python is shell text that runs a program with arguments.
func python(program string, arguments ...string) string {
	text := "python -c " + ray.SingleQuote(program)
	for _, a := range arguments {
		text += " " + word(a)
	}
	return text
}

// asciiJSON writes a value as JSON that survives every locale.
func asciiJSON(value any) (string, error) {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, r := range strings.TrimSuffix(plain.String(), "\n") {
		switch {
		case r < utf8.RuneSelf:
			text.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&text, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	return text.String(), nil
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// bounded refuses a script that no shell could be given.
func bounded(script string) (string, error) {
	if len(script) > maxArgument {
		return "", fmt.Errorf("the submission takes a script of %d bytes, and Linux lets a program have no argument of more than %d: "+
			"shorten spec.entrypoint and spec.runtimeEnvYAML, or use spec.submissionMode HTTPMode", len(script), maxArgument)
	}
	return script, nil
}

// runScript makes a container run a script of bash. Each $ is doubled, which keeps Kubernetes from replacing $(NAME), so
// that bash is given the script as it is.
func runScript(container *corev1.Container, script string, settings Settings) {
	options := "-ce"
	if settings.LoginShell {
		options = "-cel"
	}
	container.Command = []string{"/bin/bash", options, "--"}
	container.Args = []string{strings.ReplaceAll(script, "$", "$$")}
}
