package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

const (
	// waitingLong is how long a RayJob may wait for its cluster, and a RayService for a new one.
	waitingLong = 5 * time.Minute
	// deletingLong is how long an object may be on its way out.
	deletingLong = 5 * time.Minute
)

// workRules are about jobs, schedules and services.
func workRules() []objectRule {
	return slices.Concat([]objectRule{
		{"job-runtime-env", Blocking, jobRule(isRuntimeEnv, "RuntimeEnvFailed", "Ray could not set up the runtime "+
			"environment of RayJob %[1]s.",
			"Correct spec.runtimeEnvYAML of RayJob %[1]s: each package, file and URL in it must be reachable from the Pods "+
				"of the cluster. Then create the RayJob anew.")},
		{"job-lost", Blocking, jobRule(because(rayv1.JobLost), "JobLost", "Ray had the job of RayJob %[1]s and lost it "+
			"together with its head, and how far it came is unknown.",
			"Create RayJob %[1]s anew; to have the next attempt made by itself set spec.backoffLimit, and to keep jobs "+
				"over the loss of a head set gcsFaultToleranceOptions in spec.rayClusterSpec.")},
		{"job-submission-failed", Blocking, jobRule(because(rayv1.SubmissionFailed), "SubmissionFailed", "The submitter of "+
			"RayJob %[1]s could not hand the job to Ray.",
			"Read the log of the submitter with \"kubectl logs -l job-name=%[1]s\", correct spec.entrypoint or "+
				"spec.submitterPodTemplate of RayJob %[1]s and create it anew.")},
		{"job-deadline-exceeded", Blocking, jobRule(because(rayv1.DeadlineExceeded, rayv1.PreRunningDeadlineExceeded), "DeadlineExceeded",
			"The job of RayJob %[1]s took longer than it was allowed to.",
			"Raise spec.activeDeadlineSeconds or spec.preRunningDeadlineSeconds of RayJob %[1]s, or find out what the job "+
				"waited for, and create it anew.")},
		{"job-app-failed", Blocking, jobRule(because(rayv1.AppFailed), "AppFailed", "The program of RayJob %[1]s ended "+
			"with an error.",
			"Read the driver's log, the last lines of which stand in status.postMortem.log of RayJob %[1]s, correct the "+
				"program and create the RayJob anew.")},
		{"job-failed", Blocking, jobRule(failedOtherwise, "JobFailed", "The operator gave up the job of "+
			"RayJob %[1]s.", "Correct what status.message of RayJob %[1]s names and create it anew.")},
		{"job-cluster-missing", Blocking, jobClusterMissing},
		{"deletion-stuck", Blocking, deletionStuck},
		{"job-retrying", Passing, jobRetrying},
		{"submitter-failed", Passing, submitterFailed},
		{"job-status-unknown", Passing, jobStatusUnknown},
		{"job-waiting", Passing, jobWaiting},
		{"job-queued", Note, queued},
		{"job-waits-for-user", Note, jobWaitsForUser},
		{"losses-reported", Note, lossesReported},
	}, cronRules(), serveRules())
}

// because returns a test for the reasons of a RayJob's failure.
func because(reasons ...rayv1.JobFailedReason) func(*rayv1.RayJob) bool {
	return func(job *rayv1.RayJob) bool { return slices.Contains(reasons, job.Status.Reason) && !isRuntimeEnv(job) }
}

func failedOtherwise(job *rayv1.RayJob) bool {
	known := because(rayv1.JobLost, rayv1.SubmissionFailed, rayv1.DeadlineExceeded, rayv1.PreRunningDeadlineExceeded, rayv1.AppFailed)
	return !known(job) && !isRuntimeEnv(job)
}

// runtimeEnvFailed are the words for an environment that could not be set up. That it is spoken of at all says nothing: each driver's log
// does so.
var runtimeEnvFailed = regexp.MustCompile(`(?i)runtime[_ ]?env(?:ironment)?s? (?:set-?up|creation|preparation)\w*:? (?:has )?(?:failed|failure|error)|` +
	`(?:fail(?:ed|ure)|error|could not|cannot|unable) (?:to|in|while|when)? ?(?:set(?:ting)?[- ]?up|creat(?:e|ing)|prepar(?:e|ing)|install(?:ing)?) (?:the |a )?runtime[_ ]?env|` +
	`RuntimeEnvSetupError`)

// isRuntimeEnv goes by Ray's own word for the kind of error where there is one, else by the first line of what it said: the rest is the
// log of a program, which may speak of anything.
func isRuntimeEnv(job *rayv1.RayJob) bool {
	said := job.Status.Message
	if p := job.Status.PostMortem; p != nil && p.Attempt == job.Status.Attempt {
		if p.ErrorType != "" {
			return strings.Contains(strings.ToUpper(p.ErrorType), "RUNTIME_ENV")
		}
		said = cmp.Or(p.Message, said)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return runtimeEnvFailed.MatchString(first)
}

// jobRule returns a rule about RayJobs that failed. The name of the RayJob is put into cause and next as their argument 1.
func jobRule(is func(*rayv1.RayJob) bool, reason, cause, next string) func(*Snapshot) []Finding {
	return func(s *Snapshot) []Finding {
		var findings []Finding
		for _, job := range s.failed() {
			if !is(job) {
				continue
			}
			o := jobObject(job)
			message := fmt.Sprintf("status.reason is %s", cmp.Or(string(job.Status.Reason), "empty"))
			if job.Status.Message != "" {
				message += ": " + shortened(job.Status.Message)
			}
			findings = append(findings, Finding{Reason: reason, Object: o.String(),
				Message: message, Cause: fmt.Sprintf(cause, o.meta.Name), Next: fmt.Sprintf(next, o.meta.Name)})
		}
		return findings
	}
}

// failed are the RayJobs that ended as failed. Of a schedule only the last run that has ended counts.
func (s *Snapshot) failed() []*rayv1.RayJob {
	jobs := s.Jobs
	if s.CronJob != nil {
		jobs = lastEnded(jobs)
	}
	return slices.DeleteFunc(slices.Clone(jobs), func(job *rayv1.RayJob) bool {
		return job.Status.JobDeploymentStatus != rayv1.JobDeploymentStatusFailed || job.DeletionTimestamp != nil
	})
}

func lastEnded(jobs []*rayv1.RayJob) []*rayv1.RayJob {
	ended := slices.DeleteFunc(slices.Clone(jobs), func(job *rayv1.RayJob) bool { return !jobObject(job).ended })
	if len(ended) == 0 {
		return nil
	}
	return []*rayv1.RayJob{slices.MaxFunc(ended, func(a, b *rayv1.RayJob) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })}
}

// going are the RayJobs that have not ended and are not told to wait.
func (s *Snapshot) going() []*rayv1.RayJob {
	return slices.DeleteFunc(slices.Clone(s.Jobs), func(job *rayv1.RayJob) bool {
		o := jobObject(job)
		return o.ended || o.suspended || !o.ours() || job.DeletionTimestamp != nil || s.youngerThan(job.CreationTimestamp, settling)
	})
}

func jobRetrying(s *Snapshot) []Finding {
	var findings []Finding
	for _, job := range s.going() {
		if job.Status.JobDeploymentStatus != rayv1.JobDeploymentStatusRetrying {
			continue
		}
		o := jobObject(job)
		findings = append(findings, Finding{Reason: rayv1.ReasonRetrying, Object: o.String(),
			Message: shortened(cmp.Or(job.Status.Message, "an attempt failed")),
			Cause:   fmt.Sprintf("An attempt of %s failed, and what is left of it is taken down before the next one.", o),
			Next:    fmt.Sprintf("Wait for the next attempt; why the last one failed stands in status.postMortem of %s.", o)})
	}
	return findings
}

func jobClusterMissing(s *Snapshot) []Finding {
	var findings []Finding
	for _, job := range s.going() {
		name := job.Spec.ClusterSelector[rayv1.LabelCluster]
		if name == "" || s.cluster(name) != nil || s.gapIn("cluster") {
			continue
		}
		o := jobObject(job)
		findings = append(findings, Finding{Reason: rayv1.ReasonRayClusterNotFound, Object: o.String(),
			Message: fmt.Sprintf("there is no RayCluster %s", name),
			Cause: fmt.Sprintf("spec.clusterSelector of %s names RayCluster %s, which does not exist in its "+
				"namespace.", o, name),
			Next: fmt.Sprintf("Create RayCluster %s, or create %s anew with the name of one that \"kubectl get "+
				"rayclusters\" shows in spec.clusterSelector.", name, o)})
	}
	return findings
}

// gapIn tells whether a part of the snapshot could not be read whose name holds a word.
func (s *Snapshot) gapIn(word string) bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return strings.Contains(strings.ToLower(g.What), word) })
}

func submitterFailed(s *Snapshot) []Finding {
	var findings []Finding
	for _, submitter := range s.SubmitterJobs {
		owner := metav1.GetControllerOf(submitter)
		failed := slices.ContainsFunc(submitter.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
		})
		if owner == nil || !failed {
			continue
		}
		job := named(s.Jobs, owner.Name)
		if job == nil || job.Status.JobStatus != rayv1.JobStatusRunning || jobObject(job).ended {
			continue
		}
		findings = append(findings, Finding{Reason: "SubmitterFailed", Object: "Job " + submitter.Name,
			Message: fmt.Sprintf("it failed, and Ray says that the job of RayJob %s runs", job.Name),
			Cause: fmt.Sprintf("Job %s, which submits RayJob %s and prints its log, has failed after the job was "+
				"handed to Ray.", submitter.Name, job.Name),
			Next: fmt.Sprintf("Nothing has to be done for the job; follow its log with \"ray job logs %s --follow\" "+
				"against the dashboard of RayCluster %s, and see \"kubectl logs job/%s\" for why "+
				"the submitter failed.", job.Status.JobId, job.Status.RayClusterName, submitter.Name)})
	}
	return findings
}

func jobStatusUnknown(s *Snapshot) []Finding {
	var findings []Finding
	for _, job := range s.going() {
		since := job.Status.JobStatusCheckFailureStartTime
		cluster := s.cluster(job.Status.RayClusterName)
		if since == nil || s.youngerThan(*since, settling) || cluster != nil && s.clusterTroubled(cluster) {
			continue
		}
		o := jobObject(job)
		message := "Ray cannot be asked for the status of its job"
		if c := o.condition(rayv1.ConditionReconciling, metav1.ConditionTrue); c != nil && c.Reason == rayv1.ReasonRayDoesNotAnswer && c.Message != "" {
			message = shortened(c.Message)
		}
		findings = append(findings, Finding{Reason: rayv1.ReasonRayDoesNotAnswer, Object: o.String(), Message: message,
			Cause: fmt.Sprintf("The operator cannot reach the dashboard of RayCluster %s, so it does not know how the job "+
				"of %s stands.", job.Status.RayClusterName, o),
			Next: fmt.Sprintf("Check that the head of RayCluster %s is ready and that no NetworkPolicy keeps the "+
				"operator's namespace from its dashboard port.",
				job.Status.RayClusterName)})
	}
	return findings
}

// jobWaiting is silent where the cluster is in trouble: then that is what the job waits for, and other rules tell of it.
func jobWaiting(s *Snapshot) []Finding {
	var findings []Finding
	for _, job := range s.going() {
		cluster := s.cluster(job.Status.RayClusterName)
		if !s.startsLate(job) || s.operatorDown() || s.verdict(jobObject(job)) != "" || cluster == nil ||
			clusterObject(cluster).suspended || s.clusterTroubled(cluster) || len(s.firstWaiters())+len(dashboardSilent(s)) > 0 {
			continue
		}
		findings = append(findings, waitsFor(jobObject(job), clusterObject(cluster)))
	}
	return findings
}

// waitsFor tells whether a job waits for the Pods of its cluster or for Ray on them.
func waitsFor(job, cluster object) Finding {
	finding := Finding{Reason: rayv1.ReasonWaitingForCluster, Object: job.String(), Message: cluster.String() + " is not ready",
		Cause: fmt.Sprintf("%s has waited long for %s, of which not all Pods are ready.", job, cluster),
		Next: fmt.Sprintf("Run \"kubectl get pods -l %s=%s\" and see which is not ready; to have such a job given up, set "+
			"spec.preRunningDeadlineSeconds of %s.", rayv1.LabelCluster, cluster.meta.Name, job)}
	if c := cluster.condition(rayv1.ConditionReady, metav1.ConditionFalse); c != nil && c.Message != "" {
		// The counts in it change while the Pods come, so it is no part of the message.
		finding.Cause = fmt.Sprintf("%s has waited long for %s, which is not ready: %s.", job, cluster, strings.TrimSuffix(shortened(c.Message), "."))
	}
	if cluster.condition(rayv1.ConditionReady, metav1.ConditionTrue) == nil {
		return finding
	}
	finding.Reason, finding.Message = rayv1.ReasonWaitingForRay, cluster.String()+" is ready, and Ray on it has not taken the job"
	finding.Cause = fmt.Sprintf("%s has waited long for Ray on %s to answer, although all Pods are ready.", job, cluster)
	finding.Next = fmt.Sprintf("See the log of the operator for %s, and whether a NetworkPolicy keeps the operator's namespace from port 8265 of "+
		"the head of %s.", job, cluster)
	return finding
}

// startsLate tells whether a job has waited long for its cluster.
func (s *Snapshot) startsLate(job *rayv1.RayJob) bool {
	begun := job.CreationTimestamp
	if job.Status.StartTime != nil {
		begun = *job.Status.StartTime
	}
	phase := job.Status.JobDeploymentStatus
	return (phase == rayv1.JobDeploymentStatusNew || phase == rayv1.JobDeploymentStatusInitializing) && !s.youngerThan(begun, waitingLong)
}

func queued(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range s.objects() {
		queue := o.meta.Labels[labelQueue]
		if !o.suspended || o.ended || queue == "" || o.kind == rayv1.KindRayCronJob {
			continue
		}
		findings = append(findings, Finding{Reason: "Queued", Object: o.String(),
			Message: fmt.Sprintf("it is suspended and its label %s is %s", labelQueue, queue),
			Cause:   fmt.Sprintf("Kueue holds %s back in the queue %s until there is room for it.", o, queue),
			Next: fmt.Sprintf("Run \"kubectl get workloads\" and \"kubectl describe localqueue %s\" to see what it "+
				"waits for.", queue)})
	}
	return findings
}

func jobWaitsForUser(s *Snapshot) []Finding {
	var findings []Finding
	for _, job := range s.going() {
		if job.Status.JobDeploymentStatus != rayv1.JobDeploymentStatusWaiting {
			continue
		}
		o := jobObject(job)
		findings = append(findings, Finding{Reason: rayv1.ReasonWaitingForUser, Object: o.String(),
			Message: "spec.submissionMode is InteractiveMode and spec.jobId is empty",
			Cause:   fmt.Sprintf("The cluster of %s is ready and waits for somebody to submit a job.", o),
			Next: fmt.Sprintf("Submit a job to the dashboard of RayCluster %s and write its submission id into "+
				"spec.jobId of %s.", job.Status.RayClusterName, o)})
	}
	return findings
}

func deletionStuck(s *Snapshot) []Finding {
	var findings []Finding
	for _, o := range s.objects() {
		if o.meta.DeletionTimestamp == nil || len(o.meta.Finalizers) == 0 || s.youngerThan(*o.meta.DeletionTimestamp, deletingLong) {
			continue
		}
		finalizers := list(o.meta.Finalizers)
		findings = append(findings, Finding{Reason: "DeletionStuck", Object: o.String(), Message: "it is being deleted, " +
			"and finalizers hold it: " + finalizers,
			Cause: fmt.Sprintf("%s stays until whoever set %s has done its work and taken it away.", o, finalizers),
			Next:  finalizerNext(o)})
	}
	return findings
}

func finalizerNext(o object) string {
	command := fmt.Sprintf("Take it out of metadata.finalizers of %s by hand only if what it stands for is done or "+
		"not wanted.", o)
	switch o.meta.Finalizers[0] {
	case rayv1.FinalizerGCSFTRedisCleanup:
		return fmt.Sprintf("See whether the Job that empties Redis runs: \"kubectl get jobs,pods -l "+
			"%s=%s\". %s", rayv1.LabelCluster, o.meta.Name, command)
	case rayv1.FinalizerRayJob, rayv1.FinalizerRayCronJobTick, rayv1.FinalizerRayService:
		return fmt.Sprintf("See whether the operator runs, and what its log says about %s. %s", o.meta.Name, command)
	default:
		return fmt.Sprintf("See whether the controller behind %s runs. %s", o.meta.Finalizers[0], command)
	}
}

func lossesReported(s *Snapshot) []Finding {
	var findings []Finding
	for _, cluster := range s.Clusters {
		for _, loss := range cluster.Status.Recoveries {
			text := lossText(loss)
			if text == "" {
				continue
			}
			findings = append(findings, Finding{Reason: "Lost", Object: "RayCluster " + cluster.Name,
				Message: fmt.Sprintf("with Pod %s (%s): %s", loss.Pod, loss.Cause, text),
				Cause: fmt.Sprintf("Pod %s of RayCluster %s was lost, and not all that ran on it "+
					"came back.", loss.Pod, cluster.Name),
				Next: fmt.Sprintf("Submit lost jobs again and create lost actors again; max_restarts of an actor, and "+
					"gcsFaultToleranceOptions of RayCluster %s, let them come back by themselves.",
					cluster.Name)})
		}
	}
	return findings
}

// lossText says what is gone for good, or nothing.
func lossText(loss rayv1.RayClusterRecovery) string {
	var parts []string
	add := func(what string, counts *rayv1.RecoveryCounts, names []string) {
		if counts == nil || counts.Lost == 0 {
			return
		}
		part := fmt.Sprintf("%d %s lost", counts.Lost, what)
		if len(names) > 0 {
			part += " (" + list(names) + ")"
		}
		parts = append(parts, part)
	}
	add("actors", loss.Actors, loss.LostActors)
	add("placement groups", loss.PlacementGroups, nil)
	add("jobs", loss.Jobs, loss.LostJobs)
	return strings.Join(parts, ", ")
}
