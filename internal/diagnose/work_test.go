package diagnose

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func TestJobs(t *testing.T) {
	failed := func(reason rayv1.JobFailedReason, message string) func(*Snapshot) {
		return func(s *Snapshot) {
			status := &s.Jobs[0].Status
			status.JobDeploymentStatus, status.JobStatus, status.Reason, status.Message = rayv1.JobDeploymentStatusFailed, rayv1.JobStatusFailed, reason, message
			s.SubmitterJobs = nil
		}
	}
	submitterFails := func(s *Snapshot) {
		s.SubmitterJobs[0].Status = batchv1.JobStatus{Failed: 3, Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}
	}
	phase := func(p rayv1.JobDeploymentStatus) func(*Snapshot) {
		return func(s *Snapshot) { s.Jobs[0].Status.JobDeploymentStatus, s.Jobs[0].Status.JobStatus = p, "" }
	}
	testWhole(t, map[string]wholeCase{
		"a program that fails":             {failed(rayv1.AppFailed, "exit code 1"), []string{"job-app-failed RayJob train"}},
		"a job that was lost":              {failed(rayv1.JobLost, "head demo-head is gone"), []string{"job-lost RayJob train"}},
		"a submission that failed":         {failed(rayv1.SubmissionFailed, "submitter failed"), []string{"job-submission-failed RayJob train"}},
		"a deadline":                       {failed(rayv1.DeadlineExceeded, "too long"), []string{"job-deadline-exceeded RayJob train"}},
		"the deadline before the start":    {failed(rayv1.PreRunningDeadlineExceeded, "too long"), []string{"job-deadline-exceeded RayJob train"}},
		"a status that could not be asked": {failed(rayv1.JobStatusCheckTimeoutExceeded, "no answer"), []string{"job-failed RayJob train"}},
		"an environment":                   {failed(rayv1.AppFailed, "runtime_env setup failed: pip install"), []string{"job-runtime-env RayJob train"}},
		"an environment, by Ray's error type": {func(s *Snapshot) {
			failed(rayv1.AppFailed, "")(s)
			s.Jobs[0].Status.PostMortem = &rayv1.RayJobPostMortem{Attempt: 1, ErrorType: "RUNTIME_ENV_SETUP_FAILURE"}
		}, []string{"job-runtime-env RayJob train"}},
		"an environment that could not be made":    {failed(rayv1.AppFailed, "RuntimeEnvSetupError: Failed to set up runtime environment."), []string{"job-runtime-env RayJob train"}},
		"a program that speaks of its environment": {failed(rayv1.AppFailed, "KeyError: runtime_env"), []string{"job-app-failed RayJob train"}},
		"a program whose log speaks of its environment": {failed(rayv1.AppFailed, "Job entrypoint command failed, last lines:\nrunning with runtime_env setup failed=0"),
			[]string{"job-app-failed RayJob train"}},
		"another kind of error, by Ray's error type": {func(s *Snapshot) {
			failed(rayv1.AppFailed, "runtime_env setup failed")(s)
			s.Jobs[0].Status.PostMortem = &rayv1.RayJobPostMortem{Attempt: 1, ErrorType: "JOB_ENTRYPOINT_COMMAND_ERROR"}
		}, []string{"job-app-failed RayJob train"}},
		"a job that succeeded": {func(s *Snapshot) {
			s.Jobs[0].Status.JobDeploymentStatus, s.Jobs[0].Status.JobStatus = rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded
		}, nil},
		"a retry": {phase(rayv1.JobDeploymentStatusRetrying), []string{"job-retrying RayJob train"}},
		"a submitter that failed while the job runs": {submitterFails, []string{"submitter-failed Job train"}},
		"a submitter that failed with its job": {func(s *Snapshot) {
			failed(rayv1.SubmissionFailed, "no")(s)
			s.SubmitterJobs = healthy().SubmitterJobs
			submitterFails(s)
		}, []string{"job-submission-failed RayJob train"}},
		"a cluster that is not there": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusInitializing)(s)
			s.Jobs[0].Spec.ClusterSelector[rayv1.LabelCluster], s.Jobs[0].Status.RayClusterName = "gone", "gone"
		}, []string{"job-cluster-missing RayJob train"}},
		"clusters that could not be read": {func(s *Snapshot) {
			s.Clusters, s.Gaps = nil, []Gap{{What: "rayclusters", Why: "forbidden"}}
		}, nil},
		"a cluster that is not ready for long": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusInitializing)(s)
			set(&demo(s).Status.Conditions, rayv1.ConditionReady, "False", rayv1.ReasonPodsNotReady, "group small: 0 of 1 ready")
		}, []string{"job-waiting RayJob train"}},
		"a cluster that is ready, and Ray that does not take the job": {phase(rayv1.JobDeploymentStatusInitializing), []string{"job-waiting RayJob train"}},
		"a dashboard that does not answer": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusInitializing)(s)
			s.Dashboards["demo"] = Dashboard{Error: "no answer"}
		}, []string{"dashboard-silent RayCluster demo"}},
		"a cluster that is in trouble": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusInitializing)(s)
			workerOf(s).Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-worker", State: waiting("ImagePullBackOff", "")}
		}, nil},
		"a cluster that a quota stops": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusInitializing)(s)
			refusedWith(quotaText)(s)
		}, []string{"quota-exceeded RayCluster demo"}},
		"a cluster that starts": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusInitializing)(s)
			s.Jobs[0].Status.StartTime = ptr.To(ago(2 * time.Minute))
		}, nil},
		"a user who has to submit": {phase(rayv1.JobDeploymentStatusWaiting), []string{"job-waits-for-user RayJob train"}},
		"a queue": {func(s *Snapshot) {
			phase(rayv1.JobDeploymentStatusSuspended)(s)
			s.Jobs[0].Spec.Suspend, s.Jobs[0].Labels = true, map[string]string{labelQueue: "team"}
		}, []string{"job-queued RayJob train"}},
		"Ray that cannot be asked": {func(s *Snapshot) {
			s.Jobs[0].Status.JobStatusCheckFailureStartTime = ptr.To(ago(5 * time.Minute))
		}, []string{"job-status-unknown RayJob train"}},
		"Ray that cannot be asked for a moment": {func(s *Snapshot) {
			s.Jobs[0].Status.JobStatusCheckFailureStartTime = ptr.To(ago(10 * time.Second))
		}, nil},
	})
}

func TestDeletionAndLosses(t *testing.T) {
	deleted := func(since time.Duration, finalizers ...string) func(*Snapshot) {
		return func(s *Snapshot) { demo(s).DeletionTimestamp, demo(s).Finalizers = ptr.To(ago(since)), finalizers }
	}
	loss := func(lost int32) func(*Snapshot) {
		return func(s *Snapshot) {
			demo(s).Status.Recoveries = []rayv1.RayClusterRecovery{{Pod: "demo-small-worker-a", Cause: "OOMKilled", State: rayv1.RecoveryComplete,
				Actors: &rayv1.RecoveryCounts{Lost: lost, Restored: 2}, LostActors: []string{"Counter"}}}
		}
	}
	testWhole(t, map[string]wholeCase{
		"a finalizer for long":      {deleted(10*time.Minute, rayv1.FinalizerGCSFTRedisCleanup), []string{"deletion-stuck RayCluster demo"}},
		"a finalizer of others":     {deleted(10*time.Minute, "example.com/x"), []string{"deletion-stuck RayCluster demo"}},
		"a finalizer for a moment":  {deleted(time.Minute, rayv1.FinalizerGCSFTRedisCleanup), nil},
		"no finalizer, only Pods":   {deleted(10 * time.Minute), nil},
		"actors that were lost":     {loss(1), []string{"losses-reported RayCluster demo"}},
		"actors that all came back": {loss(0), nil},
	})
}

func TestSchedules(t *testing.T) {
	cron := func(change func(*Snapshot, *rayv1.RayCronJob)) func(*Snapshot) {
		return func(s *Snapshot) {
			s.CronJob = &rayv1.RayCronJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "ns", Generation: 1, CreationTimestamp: ago(24 * time.Hour)},
				Spec:   rayv1.RayCronJobSpec{Schedule: "0 3 * * *"},
				Status: rayv1.RayCronJobStatus{ObservedGeneration: 1, LastScheduleTime: ptr.To(ago(9 * time.Hour))}}
			change(s, s.CronJob)
		}
	}
	skipped := func(reason string, since time.Duration) func(*Snapshot) {
		return cron(func(_ *Snapshot, c *rayv1.RayCronJob) {
			c.Status.LastSkipped = &rayv1.RayCronJobSkipped{Time: ago(since), Count: 1, Reason: reason}
		})
	}
	stalled := func(text string) func(*Snapshot) {
		return cron(func(_ *Snapshot, c *rayv1.RayCronJob) {
			set(&c.Status.Conditions, rayv1.ConditionStalled, "True", rayv1.ReasonFailedToCreateRayJob, text)
		})
	}
	testWhole(t, map[string]wholeCase{
		"one that works": {cron(func(*Snapshot, *rayv1.RayCronJob) {}), nil},
		"one of KubeRay, which has no such field": {cron(func(s *Snapshot, c *rayv1.RayCronJob) {
			kubeRay(s)
			c.Status.ObservedGeneration = 0
		}), nil},
		"no schedule": {cron(func(_ *Snapshot, c *rayv1.RayCronJob) { c.Spec.Schedule = "at three" }), []string{"schedule-invalid RayCronJob nightly"}},
		"no schedule, and the operator says so": {cron(func(_ *Snapshot, c *rayv1.RayCronJob) {
			c.Spec.Schedule = "at three"
			set(&c.Status.Conditions, rayv1.ConditionValid, "False", rayv1.ReasonSpecInvalid, "spec.schedule: at three")
		}), []string{"spec-invalid RayCronJob nightly"}},
		"an interval":                           {cron(func(_ *Snapshot, c *rayv1.RayCronJob) { c.Spec.Schedule = "@every 30m" }), nil},
		"one that is suspended":                 {cron(func(_ *Snapshot, c *rayv1.RayCronJob) { c.Spec.Suspend = ptr.To(true) }), []string{"schedule-suspended RayCronJob nightly"}},
		"a tick that was missed":                {skipped(rayv1.SkippedMissed, time.Hour), []string{"run-missed RayCronJob nightly"}},
		"a tick while a run goes on":            {skipped(rayv1.SkippedActive, time.Hour), []string{"run-missed RayCronJob nightly"}},
		"a tick while it was suspended":         {skipped(rayv1.SkippedSuspended, time.Hour), nil},
		"a tick before the last run":            {skipped(rayv1.SkippedMissed, 33*time.Hour), nil},
		"a RayJob that is not taken":            {stalled("spec.entrypoint: too long"), []string{"run-refused RayCronJob nightly"}},
		"a RayJob that a webhook does not take": {stalled(`admission webhook "w" denied the request: no`), []string{"admission-denied RayCronJob nightly"}},
		"an old run that failed, and a new one that did not": {cron(func(s *Snapshot, _ *rayv1.RayCronJob) {
			old := s.Jobs[0].DeepCopy()
			old.Name, old.CreationTimestamp = "nightly-1", ago(48*time.Hour)
			old.Status.JobDeploymentStatus, old.Status.Reason = rayv1.JobDeploymentStatusFailed, rayv1.AppFailed
			latest := old.DeepCopy()
			latest.Name, latest.CreationTimestamp = "nightly-2", ago(24*time.Hour)
			latest.Status.JobDeploymentStatus, latest.Status.Reason = rayv1.JobDeploymentStatusComplete, ""
			s.Jobs = append(s.Jobs, old, latest)
		}), nil},
		"the last run failed": {cron(func(s *Snapshot, _ *rayv1.RayCronJob) {
			last := s.Jobs[0].DeepCopy()
			last.Name = "nightly-1"
			last.Status.JobDeploymentStatus, last.Status.Reason = rayv1.JobDeploymentStatusFailed, rayv1.AppFailed
			s.Jobs = append(s.Jobs, last)
		}), []string{"job-app-failed RayJob nightly-1"}},
	})
}

func TestServices(t *testing.T) {
	service := func(kind string, status metav1.ConditionStatus, reason, message string) func(*Snapshot) {
		return func(s *Snapshot) { set(&s.Service.Status.Conditions, kind, status, reason, message) }
	}
	app := func(a rayv1.AppStatus) func(*Snapshot) {
		return func(s *Snapshot) { s.Service.Status.ActiveServiceStatus.ApplicationStatuses["default"] = a }
	}
	deploying := func(message string) func(*Snapshot) {
		return app(rayv1.AppStatus{Status: rayv1.AppStatusDeploying, ServeDeploymentStatuses: map[string]rayv1.ServeDeploymentStatus{
			"model": {Status: "UPDATING", Message: message}}})
	}
	upgrade := func(s *Snapshot) {
		service(rayv1.ConditionUpgradeInProgress, "True", rayv1.ReasonBothActivePendingClustersExist, "")(s)
		s.Service.Status.PendingServiceStatus = rayv1.RayServiceStatus{RayClusterName: "demo", ApplicationStatuses: map[string]rayv1.AppStatus{
			"default": {Status: rayv1.AppStatusDeploying}}}
	}
	chat := func(id string) []string { return []string{id + " RayService chat"} }
	testWhole(t, map[string]wholeCase{
		"an application that cannot start": {app(rayv1.AppStatus{Status: rayv1.AppStatusDeployFailed, Message: "no module chat"}), chat("serve-app-unhealthy")},
		"an application with a sick deployment": {app(rayv1.AppStatus{Status: rayv1.AppStatusUnhealthy, ServeDeploymentStatuses: map[string]rayv1.ServeDeploymentStatus{
			"model": {Status: rayv1.DeploymentStatusUnhealthy, Message: "health check failed"}}}), chat("serve-app-unhealthy")},
		"an application that starts":         {app(rayv1.AppStatus{Status: rayv1.AppStatusDeploying}), nil},
		"an application that waits for room": {deploying("Deployment 'model' has 1 replicas that have taken more than 30s to be scheduled."), nil},
		"an application whose environment fails": {deploying("Exception when allocating Replica: Failed to set up runtime environment."),
			chat("serve-app-starting")},
		"an application that starts for long": {func(s *Snapshot) {
			app(rayv1.AppStatus{Status: rayv1.AppStatusDeploying})(s)
			service(rayv1.ConditionRayServiceReady, "False", rayv1.ReasonInitializing, "")(s)
		}, chat("serve-app-starting")},
		"an upgrade whose application fails": {func(s *Snapshot) {
			upgrade(s)
			s.Service.Status.PendingServiceStatus.ApplicationStatuses["default"] = rayv1.AppStatus{Status: rayv1.AppStatusDeploying, Message: "ImportError: no module"}
		}, chat("serve-app-starting")},
		"a start on a cluster in trouble": {func(s *Snapshot) {
			deploying("Exception when allocating Replica")(s)
			workerOf(s).Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-worker", State: waiting("ImagePullBackOff", "")}
		}, nil},
		"a config that is refused":    {service(rayv1.ConditionConfigApplied, "False", rayv1.ReasonConfigRefused, "no field x"), chat("serve-config-refused")},
		"a config on its way":         {service(rayv1.ConditionConfigApplied, "False", rayv1.ReasonConfigPending, ""), nil},
		"a start that took too long":  {service(rayv1.ConditionRayServiceReady, "False", rayv1.ReasonInitializingTimeout, ""), chat("serve-start-timeout")},
		"no Gateway API":              {service(rayv1.ConditionStalled, "True", rayv1.ReasonGatewayAPIMissing, "not installed"), chat("serve-gateway")},
		"a Gateway that nobody takes": {service(rayv1.ConditionStalled, "True", rayv1.ReasonGatewayNotReady, "not accepted"), chat("serve-gateway")},
		"no port for Serve":           {service(rayv1.ConditionStalled, "True", rayv1.ReasonServiceMissing, "no port"), chat("serve-gateway")},
		"an upgrade that was given up": {func(s *Snapshot) {
			s.Service.Status.AbandonedUpgrade = &rayv1.RayServiceAbandonedUpgrade{RayClusterName: "chat-b", Reason: rayv1.ReasonUpgradeTimeout, Message: "Pods not ready"}
		}, chat("upgrade-abandoned")},
		"an upgrade that takes long": {upgrade, chat("upgrade-waiting")},
		"an upgrade that has begun": {func(s *Snapshot) {
			upgrade(s)
			s.Service.Status.Conditions[len(s.Service.Status.Conditions)-1].LastTransitionTime = ago(time.Minute)
		}, nil},
		"an upgrade to a cluster in trouble": {func(s *Snapshot) {
			upgrade(s)
			workerOf(s).Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "ray-worker", State: waiting("ImagePullBackOff", "")}
		}, nil},
		"nobody who takes requests": {service(rayv1.ConditionRayServiceReady, "False", rayv1.ReasonZeroServeEndpoints, ""), []string{"serve-no-endpoints Service chat-serve-svc"}},
		"no endpoint of Serve":      {func(s *Snapshot) { s.Slices[1].Endpoints = nil }, []string{"serve-no-endpoints Service chat-serve-svc"}},
		"no endpoint of Serve while the application starts": {func(s *Snapshot) {
			s.Slices[1].Endpoints = nil
			app(rayv1.AppStatus{Status: rayv1.AppStatusDeploying})(s)
		}, nil},
		"no endpoint of Serve because the application is sick": {func(s *Snapshot) {
			s.Slices[1].Endpoints = nil
			app(rayv1.AppStatus{Status: rayv1.AppStatusUnhealthy})(s)
		}, chat("serve-app-unhealthy")},
	})
}
