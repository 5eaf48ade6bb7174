package integration

import (
	"slices"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// onDemo has a job run on RayCluster demo.
func onDemo(j *rayv1.RayJob) {
	j.Spec.RayClusterSpec, j.Spec.ClusterSelector = nil, map[string]string{rayv1.LabelCluster: "demo"}
}

// runs is a job that goes on and on, and ends it with a step after that.
func runs(d *fakedashboard.Dashboard) {
	d.SetDefaultScript(fakedashboard.Steps("PENDING", "RUNNING")...)
}

func ends(steps ...fakedashboard.Step) func(*fakedashboard.Dashboard) {
	return func(d *fakedashboard.Dashboard) {
		d.SetDefaultScript(append(fakedashboard.Steps("PENDING", "RUNNING"), steps...)...)
	}
}

// given makes RayJob train and waits until it has a cluster, of which nothing runs yet.
func (s *scene) given(mode rayv1.JobSubmissionMode, edits ...func(*rayv1.RayJob)) *rayv1.RayJob {
	s.t.Helper()
	job := harness.NewJob(s.ns, mode)
	for _, edit := range edits {
		edit(job)
	}
	s.make(job)
	s.g.Eventually(func() string {
		s.g.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
		return job.Status.RayClusterName
	}).ShouldNot(BeEmpty())
	return job
}

// job makes RayJob train and waits until Ray has begun it.
func (s *scene) job(mode rayv1.JobSubmissionMode, script func(*fakedashboard.Dashboard), edits ...func(*rayv1.RayJob)) *rayv1.RayJob {
	s.t.Helper()
	job := s.given(mode, edits...)
	ray := s.dashboard(job.Status.RayClusterName)
	script(ray)
	if mode == rayv1.K8sJobMode {
		s.submitter(job)
		ray.PutJob(fakedashboard.Job{SubmissionID: job.Status.JobId, Step: fakedashboard.Step{Status: "RUNNING"}})
	}
	s.until("begun", job, func() bool { return job.Status.JobStatus != "" && job.Status.JobStatus != rayv1.JobStatusPending })
	return job
}

// submitter waits for the Job that submits.
func (s *scene) submitter(job *rayv1.RayJob) *batchv1.Job {
	s.t.Helper()
	submitter := &batchv1.Job{ObjectMeta: s.meta(job.Name)}
	s.until("submitted", submitter, func() bool { return submitter.UID != "" })
	return submitter
}

func (s *scene) is(job *rayv1.RayJob, phase rayv1.JobDeploymentStatus) {
	s.t.Helper()
	s.until("in phase "+string(phase), job, func() bool { return job.Status.JobDeploymentStatus == phase })
}

// failing returns a fault of a job that runs and then fails with a step.
func failing(step fakedashboard.Step, edits ...func(*rayv1.RayJob)) func(*scene) {
	step.Status = "FAILED"
	return func(s *scene) { s.is(s.job(rayv1.HTTPMode, ends(step), edits...), rayv1.JobDeploymentStatusFailed) }
}

// training is fault with the same object for each.
func training(faults ...fault) []fault {
	for i := range faults {
		faults[i].of = "rayjob/train"
	}
	return faults
}

func jobFaults() []fault {
	return slices.Concat(endedJobFaults(), waitingJobFaults())
}

func endedJobFaults() []fault {
	return training(
		fault{name: "a package that does not exist", want: "job-runtime-env", inject: failing(fakedashboard.Step{ErrorType: "RUNTIME_ENV_SETUP_FAILURE",
			Message: "runtime_env setup failed: no matching distribution found for nonsense"})},
		fault{name: "a program that ends with an error", want: "job-app-failed", inject: failing(fakedashboard.Step{ErrorType: "JOB_ENTRYPOINT_COMMAND_ERROR"})},
		fault{name: "a head that starts anew", want: "job-lost", inject: func(s *scene) {
			job := s.job(rayv1.HTTPMode, runs)
			s.dashboard(job.Status.RayClusterName).Restart()
			s.is(job, rayv1.JobDeploymentStatusFailed)
		}},
		fault{name: "a submitter that cannot submit", want: "job-submission-failed", inject: func(s *scene) {
			job := s.given(rayv1.K8sJobMode)
			s.FinishJob(s.t, s.submitter(job), batchv1.JobFailed)
			s.is(job, rayv1.JobDeploymentStatusFailed)
		}},
		fault{name: "a job that takes too long", want: "job-deadline-exceeded", inject: func(s *scene) {
			job := s.given(rayv1.HTTPMode, func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](1) })
			s.is(job, rayv1.JobDeploymentStatusFailed)
		}},
	)
}

func waitingJobFaults() []fault {
	return training(
		fault{name: "a cluster that nobody has made", want: "job-cluster-missing", later: longWait, inject: func(s *scene) {
			job := edited(harness.NewJob(s.ns, rayv1.HTTPMode), onDemo)
			s.make(job)
			s.until("looked at", job, func() bool { return job.Status.ObservedGeneration != 0 })
		}},
		fault{name: "an attempt of which something is left", want: "job-retrying", later: longWait, inject: func(s *scene) {
			job := s.job(rayv1.HTTPMode, runs, func(j *rayv1.RayJob) { j.Spec.BackoffLimit = ptr.To[int32](1) })
			cluster := &rayv1.RayCluster{ObjectMeta: s.meta(job.Status.RayClusterName)}
			s.g.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
			s.patch(cluster, func() { cluster.Finalizers = append(cluster.Finalizers, "example.com/hold") })
			s.dashboard(cluster.Name).SetStep(job.Status.JobId, fakedashboard.Step{Status: "FAILED"})
			s.is(job, rayv1.JobDeploymentStatusRetrying)
		}},
		fault{name: "a submitter that fails while its job runs", want: "submitter-failed", inject: func(s *scene) {
			job := s.job(rayv1.K8sJobMode, runs)
			s.FinishJob(s.t, s.submitter(job), batchv1.JobFailed)
		}},
		fault{name: "a dashboard that does not answer any more", want: "job-status-unknown", later: longWait, also: []string{"dashboard-silent"}, inject: func(s *scene) {
			job := s.job(rayv1.HTTPMode, runs)
			s.dashboard(job.Status.RayClusterName).Down()
			s.until("unanswered", job, func() bool { return job.Status.JobStatusCheckFailureStartTime != nil })
		}},
		fault{name: "a head behind a gate that nobody opens", want: "job-waiting", later: after(6 * time.Minute), inject: func(s *scene) {
			job := s.given(rayv1.HTTPMode, func(j *rayv1.RayJob) {
				j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/balanced"}}
			})
			s.SetPod(s.t, s.pods(harness.HeadOf(job.Status.RayClusterName), 1)[0], harness.Ready, gated)
		}},
		fault{name: "a queue in which there is no room", want: "job-queued", inject: func(s *scene) {
			job := edited(harness.NewJob(s.ns, rayv1.HTTPMode), func(j *rayv1.RayJob) {
				j.Spec.Suspend, j.Labels = true, map[string]string{"kueue.x-k8s.io/queue-name": "small"}
				j.Spec.ShutdownAfterJobFinishes = true
			})
			s.make(job)
			s.is(job, rayv1.JobDeploymentStatusSuspended)
		}},
		fault{name: "a user who does not submit", want: "job-waits-for-user", later: longWait, inject: func(s *scene) {
			s.is(s.given(rayv1.InteractiveMode), rayv1.JobDeploymentStatusWaiting)
		}},
		fault{name: "a head without a port for the dashboard", want: "stalled", inject: func(s *scene) {
			job := s.given(rayv1.HTTPMode, func(j *rayv1.RayJob) {
				j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "gcs-server", ContainerPort: 6379}}
			})
			s.until("looked at", job, func() bool { return job.Status.ObservedGeneration != 0 })
		}},
	)
}

// gated is a Pod that is ready but for its gate.
func gated(pod *corev1.Pod) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
		}
	}
}

// edited edits a job before it is made.
func edited(job *rayv1.RayJob, edits ...func(*rayv1.RayJob)) *rayv1.RayJob {
	for _, edit := range edits {
		edit(job)
	}
	return job
}
