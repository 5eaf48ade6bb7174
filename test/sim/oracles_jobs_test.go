package sim

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/internal/rayjob"
	"github.com/heliostat-io/heliostat/test/sim/kube"
)

// The entries of a job's metadata that name the RayJob and the attempt which it was submitted for.
const (
	markOwner   = "heliostat.io/rayjob-uid"
	markAttempt = "heliostat.io/attempt"
)

// remember keeps for which RayJob an object was made, because the objects between them may go before it.
func (w *world) remember(o object) {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return
	}
	if owner.Kind == "RayJob" {
		w.watch.madeFor[o.GetUID()] = owner.UID
	} else if job, ok := w.watch.madeFor[owner.UID]; ok {
		w.watch.madeFor[o.GetUID()] = job
	}
}

// rayJobOf is the RayJob with that UID, or nil when it is gone.
func (w *world) rayJobOf(uid types.UID) *rayv1.RayJob {
	for _, stored := range w.server.List("RayJob") {
		if stored.GetUID() == uid {
			return stored.(*rayv1.RayJob)
		}
	}
	return nil
}

// judgeJobs judges a write as far as RayJobs are concerned.
func (w *world) judgeJobs(write kube.Write) {
	switch o := cmpObject(write).(type) {
	case *rayv1.RayJob:
		if write.Verb == kube.Patch && write.After != nil {
			w.judgeStatus(write.Before.(*rayv1.RayJob), write.After.(*rayv1.RayJob), write.Sender)
		}
	case *rayv1.RayCluster:
		w.judgeCluster(write, o)
	case *batchv1.Job:
		if write.Verb == kube.Create {
			w.judgeChild(o)
		}
	}
}

// cmpObject is the object that a write is about.
func cmpObject(write kube.Write) object {
	if write.After != nil {
		return write.After
	}
	return write.Before
}

// judgeCluster checks that clusters of users are left alone, and that those of RayJobs are made for an attempt.
func (w *world) judgeCluster(write kube.Write, cluster *rayv1.RayCluster) {
	owner := metav1.GetControllerOf(cluster)
	switch {
	case write.Verb == kube.Create && owner != nil:
		w.judgeChild(cluster)
	case owner != nil:
	case write.Verb == kube.Delete:
		w.fail("RayCluster %s, which belongs to a user, is deleted", cluster.Name)
	case write.After != nil && write.Before != nil && write.After.GetGeneration() != write.Before.GetGeneration():
		w.fail("the spec of RayCluster %s, which belongs to a user, is changed", cluster.Name)
	}
}

// judgeChild checks that a cluster or submitter is made for an attempt that is under way.
func (w *world) judgeChild(child object) {
	job := w.rayJobOf(metav1.GetControllerOf(child).UID)
	if job == nil {
		return // the garbage collector takes it away again
	}
	under := []rayv1.JobDeploymentStatus{rayv1.JobDeploymentStatusInitializing, rayv1.JobDeploymentStatusRunning}
	if !slices.Contains(under, job.Status.JobDeploymentStatus) {
		w.fail("%s is made for a RayJob that is %s", w.role(child), job.Status.JobDeploymentStatus)
	}
}

// judgeStatus checks each step of a RayJob against what is true.
func (w *world) judgeStatus(before, after *rayv1.RayJob, sender kube.Sender) {
	old, now := &before.Status, &after.Status
	if equality.Semantic.DeepEqual(old, now) {
		return
	}
	same := old.JobId == now.JobId && old.RayClusterName == now.RayClusterName
	if same && rayv1.IsJobTerminal(old.JobStatus) && old.JobStatus != now.JobStatus {
		w.fail("RayJob %s: Ray said that job %s is %s, and now it is said to be %q", after.Name, now.JobId, old.JobStatus, now.JobStatus)
	}
	if rayv1.IsJobDeploymentTerminal(old.JobDeploymentStatus) && old.JobDeploymentStatus != now.JobDeploymentStatus {
		w.fail("RayJob %s was %s and is now %s", after.Name, old.JobDeploymentStatus, now.JobDeploymentStatus)
	}
	w.judgeCounters(after, old, now)
	w.judgeTruth(after, old, now, sender)
	if now.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspended && old.JobDeploymentStatus != now.JobDeploymentStatus {
		for _, stored := range w.server.List("Pod") {
			if w.watch.madeFor[stored.GetUID()] == after.UID {
				w.fail("RayJob %s is suspended, but Pod %s is there", after.Name, stored.GetName())
			}
		}
	}
}

// judgeCounters checks that an attempt is counted once, when it ends.
func (w *world) judgeCounters(job *rayv1.RayJob, old, now *rayv1.RayJobStatus) {
	sum := func(s *rayv1.RayJobStatus) int32 { return ptr.Deref(s.Failed, 0) + ptr.Deref(s.Succeeded, 0) }
	ends := now.JobDeploymentStatus == rayv1.JobDeploymentStatusRetrying || rayv1.IsJobDeploymentTerminal(now.JobDeploymentStatus)
	ended := ends && old.JobDeploymentStatus != now.JobDeploymentStatus
	counts := sum(now) - sum(old)
	switch {
	case counts != 0 && !ended:
		w.fail("RayJob %s: failed %s and succeeded %s change in phase %s", job.Name, number(now.Failed), number(now.Succeeded), now.JobDeploymentStatus)
	case ended && counts != 1 && now.JobStatus != rayv1.JobStatusStopped:
		w.fail("RayJob %s: an attempt ends as %s and %d are counted", job.Name, now.JobDeploymentStatus, counts)
	case counts == 1:
		key := fmt.Sprintf("%s/%s/%s", job.UID, now.RayClusterName, now.JobId)
		if w.watch.counted[key] && now.RayClusterName != "" {
			w.fail("RayJob %s: an attempt is counted twice", job.Name)
		}
		w.watch.counted[key] = true
	}
}

// judgeTruth checks that what a RayJob says of its job is, or was, what Ray says.
func (w *world) judgeTruth(job *rayv1.RayJob, old, now *rayv1.RayJobStatus, sender kube.Sender) {
	known := w.jobsOf(job, now)
	told := dashboard.JobStatus(now.JobStatus)
	if now.JobStatus != old.JobStatus && told.Terminal() && now.Reason != rayv1.DeadlineExceeded &&
		!slices.ContainsFunc(known, func(j *rayJob) bool { return j.Status == told }) {
		w.fail("RayJob %s says that job %s is %s, which Ray never said", job.Name, now.JobId, told)
	}
	failed := now.JobDeploymentStatus == rayv1.JobDeploymentStatusRetrying || now.JobDeploymentStatus == rayv1.JobDeploymentStatusFailed
	if !failed || old.JobDeploymentStatus == now.JobDeploymentStatus {
		return
	}
	if p := w.process(sender.Name); old.JobStatus == rayv1.JobStatusSucceeded || p != nil && p.uid == sender.UID && p.poller.saw[now.JobId] {
		w.fail("RayJob %s: Ray said that job %s has succeeded, and the attempt is said to have failed: %s", job.Name, now.JobId, now.Reason)
	}
	for _, j := range known {
		head := w.headOf(j)
		lives := head != nil && answers(head) && !j.Status.Terminal() && w.server.Get("RayCluster", named(now.RayClusterName)) != nil
		if lives && (now.Reason == rayv1.JobLost || now.Reason == rayv1.SubmissionFailed || now.Reason == rayv1.AppFailed) {
			w.fail("RayJob %s: job %s runs, and the attempt is said to have failed: %s, %s", job.Name, now.JobId, now.Reason, now.Message)
		}
	}
}

// jobsOf are the jobs that Ray had or has for the present attempt of a RayJob.
func (w *world) jobsOf(job *rayv1.RayJob, status *rayv1.RayJobStatus) []*rayJob {
	var jobs []*rayJob
	for _, j := range w.rayJobs {
		if j.SubmissionID == status.JobId && !j.foreign && (j.Metadata[markOwner] == "" || j.Metadata[markOwner] == string(job.UID)) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// judgeSubmission checks that Ray is given each submission once, and for an attempt that is under way.
func (w *world) judgeSubmission(job *rayJob) {
	given := func(what string) {
		w.watch.submitted[what]++
		if w.watch.submitted[what] > 1 {
			w.fail("Ray was given %s a second time", what)
		}
	}
	given(fmt.Sprintf("job %s of cluster %s", job.SubmissionID, job.cluster))
	owner, attempt := job.Metadata[markOwner], job.Metadata[markAttempt]
	if owner == "" {
		return
	}
	given(fmt.Sprintf("attempt %s of %s", attempt, owner))
	live := w.rayJobOf(types.UID(owner))
	switch {
	case live == nil:
		w.fail("Ray was given job %s when its RayJob was gone", job.SubmissionID)
	case rayv1.IsJobDeploymentTerminal(live.Status.JobDeploymentStatus), live.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusSuspended:
		w.fail("Ray was given job %s when RayJob %s was %s", job.SubmissionID, live.Name, live.Status.JobDeploymentStatus)
	case fmt.Sprint(live.Status.Attempt) != attempt:
		w.fail("Ray was given job %s of attempt %s during attempt %d", job.SubmissionID, attempt, live.Status.Attempt)
	}
}

// judgeStop checks that nobody else's job is stopped.
func (w *world) judgeStop(job *rayJob) {
	if job.foreign {
		w.fail("job %s of someone else is stopped", job.SubmissionID)
	}
}

// judgeJobsAtEnd checks what must hold when the world has settled.
func (w *world) judgeJobsAtEnd() {
	for _, stored := range w.server.List("RayJob") {
		job := stored.(*rayv1.RayJob)
		if why := w.unfinished(job); why != "" {
			w.fail("RayJob %s stays %s for ever: %s", job.Name, job.Status.JobDeploymentStatus, why)
		}
		if rayv1.IsJobDeploymentTerminal(job.Status.JobDeploymentStatus) {
			w.judgeLeftovers(job)
		}
	}
	for _, job := range w.rayJobs {
		if why := w.forgotten(job); why != "" {
			w.fail("job %s runs on: %s", job.SubmissionID, why)
		}
	}
	for _, told := range w.gaveUp {
		if w.plan.length == 0 && !w.scenario.stuck && !slices.Contains(w.scenario.outcomes, unstoppable) {
			w.fail("one incident was enough for this: %s", told)
		}
	}
}

// unfinished says why a RayJob must not stay as it is, or nothing.
func (w *world) unfinished(job *rayv1.RayJob) string {
	status := &job.Status
	runs := slices.ContainsFunc(w.jobsOf(job, status), func(j *rayJob) bool { return !j.Status.Terminal() && !w.gone(j) })
	interactive := job.Spec.SubmissionMode == rayv1.InteractiveMode
	stalled := meta.IsStatusConditionTrue(status.Conditions, rayv1.ConditionStalled)
	switch {
	case job.DeletionTimestamp != nil:
		return "it is deleted"
	case rayv1.IsJobDeploymentTerminal(status.JobDeploymentStatus), stalled:
		return ""
	case job.Spec.Suspend && status.JobDeploymentStatus != rayv1.JobDeploymentStatusSuspended && w.valid(job):
		return "it is to be suspended"
	}
	switch status.JobDeploymentStatus {
	case rayv1.JobDeploymentStatusSuspended:
		if !job.Spec.Suspend {
			return "it is to be resumed"
		}
	case rayv1.JobDeploymentStatusValidationFailed:
		if w.valid(job) {
			return "its spec is valid"
		}
	case rayv1.JobDeploymentStatusWaiting:
		if job.Spec.JobId != "" {
			return "the user has submitted"
		}
	case rayv1.JobDeploymentStatusRunning:
		if !runs && !interactive {
			return "no job of it runs"
		}
	case rayv1.JobDeploymentStatusInitializing:
		if cluster := w.server.Get("RayCluster", named(status.RayClusterName)); cluster != nil && cluster.(*rayv1.RayCluster).Status.State == rayv1.ClusterStateReady {
			return "its cluster is ready"
		}
	default:
		return "that is no state to stay in"
	}
	return ""
}

// judgeLeftovers checks what is left of a RayJob that has ended.
func (w *world) judgeLeftovers(job *rayv1.RayJob) {
	for _, stored := range w.server.List("Pod") {
		pod := stored.(*corev1.Pod)
		owner := metav1.GetControllerOf(pod)
		if w.watch.madeFor[pod.UID] == job.UID && owner.Kind == "Job" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			w.fail("RayJob %s has ended as %s, but its submitter %s runs", job.Name, job.Status.JobDeploymentStatus, pod.Name)
		}
	}
	if !job.Spec.ShutdownAfterJobFinishes || job.Spec.DeletionStrategy != nil {
		return
	}
	for _, cluster := range w.server.List("RayCluster") {
		if metav1.IsControlledBy(cluster, job) {
			w.fail("RayJob %s has ended as %s, but RayCluster %s is there", job.Name, job.Status.JobDeploymentStatus, cluster.GetName())
		}
	}
}

// forgotten says why a job must not run on, or nothing.
func (w *world) forgotten(job *rayJob) string {
	told := slices.ContainsFunc(w.gaveUp, func(event string) bool { return strings.Contains(event, job.SubmissionID) })
	if job.foreign || job.Status.Terminal() || w.gone(job) || told {
		return ""
	}
	var owner *rayv1.RayJob
	for _, stored := range w.server.List("RayJob") {
		if o := stored.(*rayv1.RayJob); slices.Contains(w.jobsOf(o, &o.Status), job) {
			owner = o
		}
	}
	switch {
	case owner == nil:
		return "no RayJob stands for it"
	case owner.Status.JobDeploymentStatus == rayv1.JobDeploymentStatusRunning:
		return ""
	default:
		return strings.TrimSpace(fmt.Sprintf("RayJob %s is %s", owner.Name, owner.Status.JobDeploymentStatus))
	}
}

func (w *world) valid(job *rayv1.RayJob) bool { return rayjob.Validate(job, jobSettings()) == nil }
