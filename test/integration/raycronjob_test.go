package integration

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// ahead is the machine's clock, an hour ahead.
type ahead struct{ clock.RealClock }

func (a ahead) Now() time.Time                       { return a.RealClock.Now().Add(time.Hour) }
func (a ahead) Since(moment time.Time) time.Duration { return a.Now().Sub(moment) }

func cronJobs() harness.Option { return harness.Args("--feature-gates=RayCronJob=true") }

// TestRayCronJobsNeedNoMoreRightsThanTheChartGives: a tick is run and recorded, and its RayJob is deleted when it has ended.
func TestRayCronJobsNeedNoMoreRightsThanTheChartGives(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns, harness.Alone(), cronJobs(), harness.Clock(ahead{}), chartRights(t, c, ns))

	cron := &rayv1.RayCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nightly"}, Spec: rayv1.RayCronJobSpec{
		Schedule: "* * * * *", SuccessfulJobsHistoryLimit: ptr.To[int32](0), ConcurrencyPolicy: rayv1.ForbidConcurrent,
		JobTemplate: harness.NewJob(ns, rayv1.HTTPMode).Spec}}
	g.Expect(c.Create(t.Context(), cron)).To(Succeed())
	g.Eventually(func() *metav1.Time {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(cron), cron)).To(Succeed())
		return cron.Status.LastScheduleTime
	}).ShouldNot(BeNil())
	jobs := &rayv1.RayJobList{}
	g.Expect(c.List(t.Context(), jobs, client.InNamespace(ns))).To(Succeed())
	g.Expect(jobs.Items).To(HaveLen(1))

	run := &jobs.Items[0]
	base := run.DeepCopy()
	run.Status.JobDeploymentStatus, run.Status.JobStatus = rayv1.JobDeploymentStatusComplete, rayv1.JobStatusSucceeded
	g.Expect(c.Status().Patch(t.Context(), run, client.MergeFrom(base))).To(Succeed())
	g.Eventually(func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(run), run) }).ShouldNot(Succeed())
}

// TestWhatARayCronJobLeftIsLetGoByTheNextLeader: the RayCronJob went while nobody led, and its RayJob still waits for it.
func TestWhatARayCronJobLeftIsLetGoByTheNextLeader(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	run := harness.NewJob(ns, rayv1.HTTPMode)
	run.Finalizers = []string{rayv1.FinalizerRayCronJobTick}
	run.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue)
	run.OwnerReferences = []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: rayv1.KindRayCronJob, Name: "gone", UID: "of-the-one-that-is-gone", Controller: ptr.To(true)}}
	g.Expect(c.Create(t.Context(), run)).To(Succeed())
	c.Run(t, ns, cronJobs())
	g.Eventually(func() []string {
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(run), run)).To(Succeed())
		return run.Finalizers
	}).Should(BeEmpty())
}
