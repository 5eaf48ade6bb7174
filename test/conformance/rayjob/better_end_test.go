package rayjob

import (
	"net/http"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// stopCases are about Ray jobs that must not run on when their RayJob ends, is suspended or goes.
func stopCases() []Case {
	return []Case{
		{Row: 79, Kind: better, Weak: []string{"RJ-W10"}, Theirs: "the finalizer stays for ever",
			Given: "a cluster that asks for a token, a job that runs", When: "the Secret is deleted, then the RayJob", Then: "the RayJob goes in bounded time",
			How: "stopping the Ray job is best effort for 30 s, then an event", Run: deletedWithoutSecret},
		{Row: 80, Kind: better, Weak: []string{"RJ-W11"}, Theirs: "one request, whose answer nobody looks at; the job runs on",
			Given: "clusterSelector, a job that runs; stopping it fails twice", When: "the RayJob is deleted", Then: "asked to stop again until it has stopped; an event tells the outcome",
			How: "waits for a final status for up to 30 s", Run: stopsInTheEnd},
		{Row: 81, Kind: better, Weak: []string{"RJ-W11"}, Theirs: "a request to stop every 3 s",
			Given: "a finalizer of somebody else on the RayJob, a job that runs", When: "the RayJob is deleted", Then: "one request to stop",
			How: "our finalizer goes, and with it our interest", Run: stopsOnce},
		{Row: 82, Kind: better, Weak: []string{"RJ-W12"}, Theirs: "the job runs on, jobStatus stays RUNNING",
			Given: "a cluster that is kept, a job that runs", When: "activeDeadlineSeconds are over", Then: "the Ray job is stopped; Failed, DeadlineExceeded, jobStatus STOPPED",
			How: "a deadline ends the job, not only the RayJob", Run: deadlineStops},
		{Row: 84, Kind: better, Weak: []string{"RJ-W13"}, Theirs: "Waiting looks at neither",
			Given: "two RayJobs in Waiting", When: "one is suspended, and activeDeadlineSeconds of the other one are over", Then: "Suspended without Pods; Failed, DeadlineExceeded",
			How: "every state honours both", Run: waitingEnds},
	}
}

func deletedWithoutSecret(e *env) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "mine", Labels: map[string]string{"ray.io/cluster": "mine"}},
		StringData: map[string]string{"auth_token": "t"}}
	e.make(secret)
	e.newRays(func(ray *fakedashboard.Dashboard) { ray.RequireToken("t") })
	job, ray := e.submitted(overHTTP, func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To(secret.Name)}
	})
	e.Expect(e.Delete(e.t.Context(), secret)).To(Succeed())
	before := job.DeepCopy()
	e.Expect(e.Delete(e.t.Context(), job)).To(Succeed())
	e.gone(job)
	if e.inRay(before, ray) != "STOPPED" {
		e.said(before, corev1.EventTypeWarning, "FailedToStopRayJob")
	}
}

func stopsInTheEnd(e *env) {
	cluster := e.standing("shared")
	job, ray := e.submitted(overHTTP, onto(cluster.Name))
	ray.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointStop, Times: 2, Code: http.StatusInternalServerError, Body: "Internal Server Error"})
	ray.SetStopScript(fakedashboard.Step{Status: "RUNNING", Reads: 2}, fakedashboard.Step{Status: "STOPPED"})
	before := job.DeepCopy()
	e.Expect(e.Delete(e.t.Context(), job)).To(Succeed())
	e.gone(job)
	e.Expect(e.inRay(before, ray)).To(Equal("STOPPED"))
	e.Expect(ray.Requests(fakedashboard.EndpointStop)).To(Equal(3))
	e.said(before, corev1.EventTypeNormal, "StoppedRayJob")
	e.Expect(e.isGone(cluster)).To(BeFalse())
}

func stopsOnce(e *env) {
	job, ray := e.submitted(overHTTP)
	e.change(job, func(j *rayv1.RayJob) { j.Finalizers = append(j.Finalizers, "test.heliostat.io/hold") })
	e.Expect(e.Delete(e.t.Context(), job)).To(Succeed())
	e.soon(func() any { return e.inRay(job, ray) }).Should(Equal("STOPPED"))
	e.soon(func() any {
		e.refresh(job)
		return job.Finalizers
	}).Should(Equal([]string{"test.heliostat.io/hold"}))
	e.Consistently(func() int { return ray.Requests(fakedashboard.EndpointStop) }, "7s", "1s").Should(Equal(1))
	e.change(job, func(j *rayv1.RayJob) { j.Finalizers = nil })
	e.gone(job)
}

func deadlineStops(e *env) {
	job, ray := e.submitted(overHTTP)
	e.change(job, func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](1) })
	e.fails(job, rayv1.DeadlineExceeded)
	e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusStopped))
	e.Expect(e.inRay(job, ray)).To(Equal("STOPPED"))
	e.Expect(ray.Requests(fakedashboard.EndpointStop)).To(Equal(1))
	e.rest()
	e.Expect(e.clusters()).To(HaveLen(1), "nothing asks for the deletion of the cluster")
	e.counts(job, 0, 1)
}

func waitingEnds(e *env) {
	held := e.given(named("held"), mode(rayv1.InteractiveMode), givesUpCluster(0))
	late := e.given(named("late"), mode(rayv1.InteractiveMode))
	e.phase(held, rayv1.JobDeploymentStatusWaiting)
	e.phase(late, rayv1.JobDeploymentStatusWaiting)

	cluster := held.Status.RayClusterName
	e.change(held, func(j *rayv1.RayJob) { j.Spec.Suspend = true })
	e.phase(held, rayv1.JobDeploymentStatusSuspended)
	e.Expect(held.Status.RayClusterName).To(BeEmpty())
	e.Expect(e.Pods(e.t, e.ns, client.MatchingLabels{rayv1.LabelCluster: cluster})).To(BeEmpty())

	e.change(late, func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](1) })
	e.fails(late, rayv1.DeadlineExceeded)
}

// endCases are about ends to which the clean-up of KubeRay has nothing to say.
func endCases() []Case {
	return []Case{
		{Row: 87, Kind: better, Weak: []string{"RJ-W15"}, Theirs: "the cluster stays for ever",
			Given: "onSuccess and onFailure DeleteCluster, shutdownAfterJobFinishes", When: "the user stops the Ray job", Then: "Complete, STOPPED; the cluster is deleted",
			How: "every end is a success or a failure", Run: func(e *env) {
				policy := &rayv1.DeletionPolicy{Policy: ptr.To(rayv1.DeleteCluster)}
				job, _ := e.submitted(overHTTP, givesUpCluster(1), func(j *rayv1.RayJob) {
					j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{OnSuccess: policy, OnFailure: policy}
				})
				cluster := e.cluster(job)
				e.raySays(job, rayv1.JobStatusStopped)
				e.phase(job, rayv1.JobDeploymentStatusComplete)
				e.Expect(job.Status.JobStatus).To(Equal(rayv1.JobStatusStopped))
				e.gone(cluster)
			}},
		{Row: 88, Kind: better, Weak: []string{"RJ-W15"}, Theirs: "nothing is deleted",
			Given: "clusterSelector, a rule DeleteSelf", When: "the job succeeds", Then: "the RayJob is deleted, the cluster is kept",
			How: "the clean-up looks at what the RayJob made", Run: func(e *env) {
				cluster := e.standing("shared")
				job, ray := e.submitted(overHTTP, onto(cluster.Name), func(j *rayv1.RayJob) {
					j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{DeletionRules: []rayv1.DeletionRule{{Policy: rayv1.DeleteSelf,
						Condition: rayv1.DeletionCondition{JobStatus: ptr.To(rayv1.JobStatusSucceeded)}}}}
				})
				ray.SetStep(job.Status.JobId, fakedashboard.Step{Status: "SUCCEEDED"})
				e.gone(job)
				e.rest()
				e.Expect(e.isGone(cluster)).To(BeFalse())
			}},
	}
}
