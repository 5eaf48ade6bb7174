package rayjob

import (
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

func suspendedOnShared(e *env) {
	cluster := e.standing("shared")
	ray := e.dashboardOf(cluster.Name)
	ray.SetStopScript(fakedashboard.Step{Status: "RUNNING", Reads: 2}, fakedashboard.Step{Status: "STOPPED"})
	fixed, _ := e.submitted(named("fixed"), overHTTP, onto(cluster.Name), givesUpCluster(0), func(j *rayv1.RayJob) { j.Spec.JobId = "mine" })
	drawn, _ := e.submitted(named("drawn"), overHTTP, onto(cluster.Name), givesUpCluster(0))
	first := drawn.Status.JobId
	for _, job := range []*rayv1.RayJob{fixed, drawn} {
		e.change(job, func(j *rayv1.RayJob) { j.Spec.Suspend = true })
	}
	for _, job := range []*rayv1.RayJob{fixed, drawn} {
		e.phase(job, rayv1.JobDeploymentStatusSuspended)
	}
	for _, id := range []string{"mine", first} {
		stopped, _ := ray.Job(id)
		e.Expect(stopped.Step.Status).To(Equal("STOPPED"))
	}
	e.Expect(e.isGone(cluster)).To(BeFalse())
	e.Expect(e.Pods(e.t, e.ns, nil)).To(HaveLen(1), "the head of the shared cluster")

	for _, job := range []*rayv1.RayJob{fixed, drawn} {
		e.change(job, func(j *rayv1.RayJob) { j.Spec.Suspend = false })
		e.runs(job)
		e.Expect(ray.Submissions(job.Status.JobId)).To(Equal(1))
	}
	e.Expect(fixed.Status.JobId).To(Equal("mine-2"))
	e.Expect(drawn.Status.JobId).ToNot(Equal(first))
}

func silentWhileSuspended(e *env) {
	job := e.given(overHTTP, givesUpCluster(0), func(j *rayv1.RayJob) { j.Spec.Suspend = true })
	e.phase(job, rayv1.JobDeploymentStatusSuspended)
	e.rest()
	before := len(e.operator.Traffic.All())
	e.Consistently(func() int { return len(e.operator.Traffic.All()) }, "12s", "1s").Should(Equal(before), "the operator asks or writes something")
	e.change(job, func(j *rayv1.RayJob) { j.Spec.Suspend = false })
	e.runs(job)
}

func flippedCluster(e *env) {
	e.start(harness.Transport(harness.DelayWatches(lagging)))
	flip := func(cluster *rayv1.RayCluster, suspend bool) {
		e.Edit(e.t, cluster, func(c *rayv1.RayCluster) { c.Spec.Suspend = &suspend })
	}
	held := harness.NewCluster(e.ns, "held")
	free := harness.NewCluster(e.ns, "free")
	e.make(held)
	e.make(free)
	pods := func(cluster *rayv1.RayCluster) []corev1.Pod {
		return e.Pods(e.t, e.ns, client.MatchingLabels{rayv1.LabelCluster: cluster.Name})
	}
	// What is said of a cluster is read before its Pods are counted: Pods that come later prove nothing.
	noLie := func(g Gomega, cluster *rayv1.RayCluster) {
		g.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
		suspended := cluster.Status.State == rayv1.ClusterStateSuspended && cluster.Status.ObservedGeneration == cluster.Generation
		if suspended && ptr.Deref(cluster.Spec.Suspend, false) {
			g.Expect(pods(cluster)).To(BeEmpty(), "RayCluster %s says that it is suspended", cluster.Name)
		}
	}
	// The pauses are of many lengths, none of them a multiple of how far the caches are behind.
	for i := range 12 {
		suspend := i%2 == 0
		flip(held, suspend)
		flip(free, !suspend)
		if pause := time.Duration(i%4) * 170 * time.Millisecond; pause > 0 {
			e.Consistently(func(g Gomega) {
				noLie(g, held)
				noLie(g, free)
			}, pause, "50ms").Should(Succeed())
		}
	}
	flip(held, true)
	flip(free, false)
	e.soon(func() any {
		noLie(e, held)
		return held.Status.State
	}).Should(Equal(rayv1.ClusterStateSuspended))
	e.BecomesReady(e.t, free)
	e.rest()
	noLie(e, held)
	e.Expect(pods(held)).To(BeEmpty())
	e.Expect(pods(free)).To(HaveLen(3))
}

func rulesWithoutDeadline(e *env) {
	only := func(status rayv1.JobStatus) edit {
		return func(j *rayv1.RayJob) {
			j.Spec.ActiveDeadlineSeconds = ptr.To[int32](3600)
			j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{DeletionRules: []rayv1.DeletionRule{{Policy: rayv1.DeleteCluster,
				Condition: rayv1.DeletionCondition{JobStatus: &status}}}}
		}
	}
	overdue := func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](1) }

	forFailed, _ := e.submitted(named("failed"), overHTTP, only(rayv1.JobStatusFailed))
	e.Expect(e.have(forFailed, rayv1.ConditionValid, metav1.ConditionTrue, rayv1.ReasonPartlyServed)).To(ContainSubstring("deadline"))
	cluster := e.cluster(forFailed)
	e.change(forFailed, overdue)
	e.fails(forFailed, rayv1.DeadlineExceeded)
	e.gone(cluster)

	forSuccess, _ := e.submitted(named("success"), overHTTP, only(rayv1.JobStatusSucceeded))
	e.Expect(e.have(forSuccess, rayv1.ConditionValid, metav1.ConditionTrue, rayv1.ReasonPartlyServed)).To(ContainSubstring("deadline"))
	cluster = e.cluster(forSuccess)
	e.change(forSuccess, overdue)
	e.fails(forSuccess, rayv1.DeadlineExceeded)
	e.warned(forSuccess, cluster.Name)
	e.rest()
	e.Expect(e.isGone(cluster)).To(BeFalse())
}

func deadlineOnShared(e *env) {
	cluster := e.standing("shared")
	ray := e.dashboardOf(cluster.Name)
	overdue := func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](1) }

	ray.SetStopScript(fakedashboard.Step{Status: "RUNNING", Reads: 2}, fakedashboard.Step{Status: "STOPPED"})
	stopped, _ := e.submitted(named("stopped"), overHTTP, onto(cluster.Name))
	e.change(stopped, overdue)
	e.fails(stopped, rayv1.DeadlineExceeded)
	e.Expect(stopped.Status.JobStatus).To(Equal(rayv1.JobStatusStopped))
	e.Expect(e.inRay(stopped, ray)).To(Equal("STOPPED"))

	// Ray has the last word: this one was faster than the request to stop it.
	ray.SetStopScript(fakedashboard.Steps("SUCCEEDED")...)
	lucky, _ := e.submitted(named("lucky"), overHTTP, onto(cluster.Name))
	e.change(lucky, overdue)
	e.phase(lucky, rayv1.JobDeploymentStatusComplete)
	e.Expect(lucky.Status.JobStatus).To(Equal(rayv1.JobStatusSucceeded))
	e.counts(lucky, 1, 0)
	e.rest()
	e.Expect(e.isGone(cluster)).To(BeFalse())
}
