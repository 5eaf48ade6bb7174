package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// errNoHead is the answer where no head is ready.
var errNoHead = errors.New("connect: connection refused")

// stopTime is how long Ray takes to end a driver that was asked to stop.
const stopTime = 3 * time.Second

// Outcomes of jobs that do not end by themselves.
const (
	// forever is a driver that runs until it is stopped.
	forever dashboard.JobStatus = ""
	// untilStopped is one that succeeds just when it is to be stopped.
	untilStopped dashboard.JobStatus = "until stopped"
	// unstoppable is one that Ray cannot stop.
	unstoppable dashboard.JobStatus = "unstoppable"
)

// rayJob is a job as one life of a head knows it. It is lost with that life.
type rayJob struct {
	dashboard.JobDetails
	// session is the life of the head, cluster the one that it belongs to.
	session string
	cluster types.UID
	ends    dashboard.JobStatus
	// stopAt is when the driver that was asked to stop will have ended; zero for others.
	stopAt time.Duration
	// foreign jobs were submitted by nobody whom a RayJob stands for.
	foreign bool
}

// sessionOf names the life of a head as Ray does: it is another one after each start of the container.
func sessionOf(head *corev1.Pod) string {
	return fmt.Sprintf("session_%s_%d", head.UID, rayContainer(head).RestartCount)
}

// rayContainer is the status of the container in which Ray runs.
func rayContainer(pod *corev1.Pod) corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return corev1.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[0]
}

// headAt returns the head Pod that answers at the address of a head Service, or nil.
func (w *world) headAt(address string) *corev1.Pod {
	name, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ".")
	found := w.server.Get("Service", named(name))
	if found == nil {
		return nil
	}
	service := found.(*corev1.Service)
	for _, stored := range w.server.List("Pod") {
		pod := stored.(*corev1.Pod)
		if selects(service, pod) && answers(pod) && (podReady(pod) || service.Spec.PublishNotReadyAddresses) {
			return pod
		}
	}
	return nil
}

func selects(service *corev1.Service, pod *corev1.Pod) bool {
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			return false
		}
	}
	return true
}

// answers tells whether Ray in a Pod does. One whose probe fails may.
func answers(pod *corev1.Pod) bool {
	container := rayContainer(pod)
	return pod.DeletionTimestamp == nil && (container.Ready || container.Started != nil)
}

func podReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (w *world) jobOn(head *corev1.Pod, id string) *rayJob {
	for _, job := range w.rayJobs {
		if job.session == sessionOf(head) && job.SubmissionID == id {
			return job
		}
	}
	return nil
}

// startJob is what Ray does with a submission under an id that it does not know.
func (w *world) startJob(head *corev1.Pod, id string, metadata map[string]string) {
	job := w.newJob(head, id, metadata)
	job.ends = dashboard.JobSucceeded
	if w.started < len(w.scenario.outcomes) {
		job.ends = w.scenario.outcomes[w.started]
	}
	w.started++
	w.note("Ray starts job %s", id)
	w.count("submission")
	w.judgeSubmission(job)
}

// startForeign is what Ray does with a submission of someone whom no RayJob stands for.
func (w *world) startForeign(head *corev1.Pod, id string) {
	job := w.newJob(head, id, nil)
	job.ends, job.foreign = forever, true
	w.note("Ray starts job %s of someone else", id)
}

func (w *world) newJob(head *corev1.Pod, id string, metadata map[string]string) *rayJob {
	job := &rayJob{session: sessionOf(head)}
	if owner := metav1.GetControllerOf(head); owner != nil {
		job.cluster = owner.UID
	}
	job.Type, job.SubmissionID, job.Status, job.StartTime, job.Metadata = dashboard.JobTypeSubmission, id, dashboard.JobPending, w.now(), metadata
	w.rayJobs = append(w.rayJobs, job)
	w.progressed++
	return job
}

// canProgress tells whether a job goes on now.
func (w *world) canProgress(job *rayJob) bool {
	switch {
	case job.Status.Terminal(), w.gone(job):
		return false
	case job.stopAt > 0 && job.ends != unstoppable:
		return w.mono >= job.stopAt || job.byItself()
	default:
		return job.byItself()
	}
}

// byItself tells whether a job goes on without being stopped.
func (job *rayJob) byItself() bool {
	return job.Status == dashboard.JobPending || job.ends.Terminal()
}

// progress moves a job on by one state. A driver that is being stopped may still get to its own end before.
func (w *world) progress(job *rayJob) {
	stopped := job.stopAt > 0 && w.mono >= job.stopAt && job.ends != unstoppable
	switch {
	case stopped && job.ends == untilStopped:
		job.Status, job.EndTime = dashboard.JobSucceeded, w.now()
	case stopped:
		job.Status, job.EndTime = dashboard.JobStopped, w.now()
	case job.Status == dashboard.JobPending:
		job.Status = dashboard.JobRunning
	default:
		job.Status, job.EndTime = job.ends, w.now()
	}
	w.progressed++
	w.note("Ray: job %s is %s", job.SubmissionID, job.Status)
}

// gone tells whether the life of the head that has a job is over, and the job with it.
func (w *world) gone(job *rayJob) bool { return w.headOf(job) == nil }

// headOf is the head in that life, or nil when it is over.
func (w *world) headOf(job *rayJob) *corev1.Pod {
	for _, stored := range w.server.List("Pod") {
		if pod := stored.(*corev1.Pod); pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && sessionOf(pod) == job.session {
			return pod
		}
	}
	return nil
}

// reply is status code and body of an answer.
type reply struct {
	code int
	body string
}

// dashboard answers a request as Ray's dashboard does.
func (w *world) dashboard(method string, to *url.URL, body []byte) (any, error) {
	head := w.headAt(to.Host)
	if head == nil || w.mono < w.raySilent {
		return nil, errNoHead
	}
	path, isJob := strings.CutPrefix(to.Path, "/api/jobs/")
	id, isStop := strings.CutSuffix(path, "/stop")
	switch {
	case to.Path == "/api/version":
		return reply{http.StatusOK, fmt.Sprintf(`{"version":"4","ray_version":"2.52.0","session_name":%q}`, sessionOf(head))}, nil
	case method == http.MethodPut && to.Path == "/api/serve/applications/":
		return w.takeConfig(head, body), nil
	case method == http.MethodPost && isJob && path == "":
		return w.takeSubmission(head, body), nil
	case !isJob, method == http.MethodPost != isStop, method != http.MethodPost && method != http.MethodGet:
		return reply{http.StatusMethodNotAllowed, "405: Method Not Allowed"}, nil
	}
	job := w.jobOn(head, id)
	if job == nil {
		return reply{http.StatusNotFound, fmt.Sprintf("Job %s does not exist", id)}, nil
	}
	if isStop {
		return w.stopJob(job), nil
	}
	return reply{http.StatusOK, text(map[string]any{"type": job.Type, "submission_id": id, "status": job.Status, "metadata": job.Metadata,
		"start_time": job.StartTime.UnixMilli()})}, nil
}

func (w *world) takeSubmission(head *corev1.Pod, body []byte) reply {
	var request dashboard.SubmitRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return reply{http.StatusInternalServerError, err.Error()}
	}
	id := request.SubmissionID
	if w.jobOn(head, id) != nil {
		return reply{http.StatusInternalServerError,
			fmt.Sprintf("Job with submission_id %s already exists. Please use a different submission_id.", id)}
	}
	w.startJob(head, id, request.Metadata)
	return reply{http.StatusOK, fmt.Sprintf(`{"job_id":%q,"submission_id":%q}`, id, id)}
}

// stopJob asks the driver to end, which takes a while.
func (w *world) stopJob(job *rayJob) reply {
	running := !job.Status.Terminal()
	if running && job.stopAt == 0 {
		job.stopAt = w.mono + stopTime
		w.note("Ray: job %s is to stop", job.SubmissionID)
	}
	w.judgeStop(job)
	return reply{http.StatusOK, fmt.Sprintf(`{"stopped":%t}`, running)}
}
