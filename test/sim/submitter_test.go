package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// submitterName is the container that submits, in a submitter Pod and in a head Pod.
const submitterName = "ray-job-submitter"

// mishap is what becomes of a submitter Pod by itself.
type mishap string

const (
	// failsEarly ends it before it has submitted.
	failsEarly mishap = "fails before it has submitted"
	// failsLate ends it after that.
	failsLate mishap = "fails after it has submitted"
	// neverEnds lets it run on when the job has ended.
	neverEnds mishap = "never ends"
)

// script is how far the script in a submitter container has come.
type script struct {
	mishap mishap
	// job is the one whose log it follows.
	job *rayJob
}

// jobController is what the controller of Jobs does next with a submitter Job.
func (w *world) jobController(job *batchv1.Job) *deed {
	if len(job.Status.Conditions) > 0 || job.DeletionTimestamp != nil || ptr.Deref(job.Spec.Suspend, false) {
		return nil
	}
	var live, succeeded bool
	for _, pod := range w.podsOf(job) {
		succeeded = succeeded || pod.Status.Phase == corev1.PodSucceeded
		live = live || pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed
	}
	switch made := w.podsMade[job.UID]; {
	case succeeded:
		return w.jobEnds(job, batchv1.JobComplete)
	case live:
		return nil
	case made > int(ptr.Deref(job.Spec.BackoffLimit, 6)):
		return w.jobEnds(job, batchv1.JobFailed)
	default:
		return &deed{"the Job controller makes a Pod", func() {
			if stored := w.server.Get("Job", named(job.Name)); stored != nil && stored.GetUID() == job.UID {
				w.podsMade[job.UID]++
				w.must(w.server.Add(submitterPod(job, made)))
			}
		}}
	}
}

func submitterPod(job *batchv1.Job, number int) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%d", job.UID, number)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	return pod
}

func (w *world) jobEnds(job *batchv1.Job, how batchv1.JobConditionType) *deed {
	return &deed{"submitter Job: " + string(how), func() {
		w.must(w.server.Change("job controller", job, "status", func(o object) {
			o.(*batchv1.Job).Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.now())}}
		}))
	}}
}

func (w *world) podsOf(owner object) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, stored := range w.server.List("Pod") {
		if metav1.IsControlledBy(stored, owner) {
			pods = append(pods, stored.(*corev1.Pod))
		}
	}
	return pods
}

// submitterIn returns the index of the container that submits, or a negative number.
func submitterIn(pod *corev1.Pod) int {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "Job" && !emptiesRedis(pod) {
		return 0
	}
	return slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == submitterName })
}

// submitter is what the script in a submitter container does next. It goes on while its Pod is being deleted.
func (w *world) submitter(pod *corev1.Pod) *deed {
	index := submitterIn(pod)
	if index < 0 || pod.Status.Phase != corev1.PodRunning || pod.Status.ContainerStatuses[index].State.Running == nil {
		return nil
	}
	act := func(what string, do func()) *deed {
		return &deed{pod.Name + ": the submitter " + what, func() {
			if live := w.server.Get("Pod", named(pod.Name)); live != nil && live.GetUID() == pod.UID {
				do()
			}
		}}
	}
	end := func(what string, code int32) *deed { return act(what, func() { w.endSubmitter(pod, index, code) }) }
	s, container := w.scriptOf(pod), pod.Spec.Containers[index]
	head := w.headFor(pod, container)
	inSidecar := index > 0
	switch {
	case s.job != nil && s.mishap == failsLate:
		return end("fails", 1)
	case s.job != nil && (head == nil || sessionOf(head) != s.job.session):
		return end("cannot follow the log any more", 1)
	case s.job != nil && s.job.Status.Terminal() && s.mishap != neverEnds:
		return end("ends", exitCode(index, s.job))
	case s.job != nil, head == nil:
		return nil
	case s.mishap == failsEarly:
		return end("fails before it has submitted", 1)
	case inSidecar && pod.Annotations[rayv1.AnnotationSubmitTo] == "" && w.plan.broken != noAdmission:
		return nil
	}
	// From here to the submission nothing else happens: the script needs no time for that.
	guarded := len(container.Args) > 0
	if inSidecar && w.plan.broken != noAdmission && pod.Annotations[rayv1.AnnotationSubmitTo] != sessionOf(head) {
		return end("finds another life of the head", 1)
	}
	known := w.jobOn(head, valueOf(container, "RAY_JOB_SUBMISSION_ID"))
	switch {
	case known != nil && !guarded:
		return end("is told that the id is taken", 1)
	case known != nil:
		return act("follows the log", func() { s.job = known })
	case guarded && w.plan.broken != noGuard && !meantFor(container, head):
		return end("finds another life of the head", 1)
	default:
		return act("submits", func() {
			w.startJob(head, valueOf(container, "RAY_JOB_SUBMISSION_ID"), marksIn(container))
			s.job = w.rayJobs[len(w.rayJobs)-1]
		})
	}
}

// exitCode is that of a script at the end of a job: a sidecar runs the blocking command, which tells of a failure.
func exitCode(index int, job *rayJob) int32 {
	if index > 0 && job.Status != dashboard.JobSucceeded {
		return 1
	}
	return 0
}

func (w *world) scriptOf(pod *corev1.Pod) *script {
	s := w.scripts[pod.UID]
	if s == nil {
		s = &script{}
		if n := len(w.scripts); n < len(w.scenario.submitters) {
			s.mishap = w.scenario.submitters[n]
		}
		w.scripts[pod.UID] = s
	}
	return s
}

// headFor is the head that a submitter talks to: a sidecar to its own.
func (w *world) headFor(pod *corev1.Pod, container corev1.Container) *corev1.Pod {
	if len(pod.Spec.Containers) > 1 && container.Name == submitterName {
		if answers(pod) {
			return pod
		}
		return nil
	}
	return w.headAt(valueOf(container, "RAY_DASHBOARD_ADDRESS"))
}

// endSubmitter ends the container, and its Pod if there is no other container in it.
func (w *world) endSubmitter(pod *corev1.Pod, index int, code int32) {
	w.must(w.server.Change("kubelet", pod, "status", func(o object) {
		p := o.(*corev1.Pod)
		status := &p.Status.ContainerStatuses[index]
		status.Ready = false
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(w.now())}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}
		switch {
		case len(p.Status.ContainerStatuses) > 1:
		case code == 0:
			p.Status.Phase = corev1.PodSucceeded
		default:
			p.Status.Phase = corev1.PodFailed
		}
	}))
}

func valueOf(container corev1.Container, name string) string {
	for _, env := range container.Env {
		if env.Name == name {
			return env.Value
		}
	}
	return ""
}

// meantFor tells whether the script of a container is for this life of a head. One that names none is for any.
func meantFor(container corev1.Container, head *corev1.Pod) bool {
	named := regexp.MustCompile(`session_[-a-z0-9]+_[0-9]+`).FindString(strings.Join(container.Args, " "))
	return named == "" || named == sessionOf(head)
}

// marksIn are the entries of the metadata in a script by which an operator knows its jobs again.
func marksIn(container corev1.Container) map[string]string {
	marks := map[string]string{}
	for _, found := range regexp.MustCompile(`(heliostat\.io/[-a-z]+)\\?": ?\\?"([^"\\]+)`).FindAllStringSubmatch(strings.Join(container.Args, " "), -1) {
		marks[found[1]] = found[2]
	}
	return marks
}

// killSubmitter ends a submitter Pod that runs, as when its node has no memory left, and tells whether it did. It leaves
// each Job one try, and Pods alone that have their own mishap.
func (w *world) killSubmitter() bool {
	for _, stored := range w.server.List("Job") {
		job := stored.(*batchv1.Job)
		if len(w.scenario.submitters) > 0 || w.podsMade[job.UID] > int(ptr.Deref(job.Spec.BackoffLimit, 6)) || len(job.Spec.Template.Spec.Containers[0].Args) == 0 {
			continue
		}
		for _, pod := range w.podsOf(job) {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				w.endSubmitter(pod, 0, 137)
				return true
			}
		}
	}
	return false
}
