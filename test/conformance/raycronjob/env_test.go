package raycronjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// name is the name of the RayCronJob of a case.
const name = "nightly"

// env is what one case works with: a namespace of its own with an operator of its own, and the clock of that operator.
type env struct {
	*WithT
	harness.Cluster
	t        *testing.T
	ns       string
	clock    *handClock
	operator *harness.Operator
	touches  int
}

// newEnv makes a namespace. Jobs that are sent to Ray run until told.
func newEnv(t *testing.T) *env {
	c, ns := harness.Connect(t)
	c.Rays.OnUnknown(func(string) *fakedashboard.Dashboard {
		ray := fakedashboard.NewInProcess()
		ray.SetDefaultScript(fakedashboard.Steps("RUNNING")...)
		return ray
	})
	return &env{WithT: NewWithT(t), Cluster: c, t: t, ns: ns, clock: &handClock{at: time.Now()}}
}

type edit = func(*rayv1.RayCronJob)

func schedule(text string) edit { return func(c *rayv1.RayCronJob) { c.Spec.Schedule = text } }
func zone(name string) edit     { return func(c *rayv1.RayCronJob) { c.Spec.TimeZone = &name } }
func suspend(on bool) edit      { return func(c *rayv1.RayCronJob) { c.Spec.Suspend = &on } }
func called(name string) edit   { return func(c *rayv1.RayCronJob) { c.Name = name } }

func policy(policy rayv1.ConcurrencyPolicy) edit {
	return func(c *rayv1.RayCronJob) { c.Spec.ConcurrencyPolicy = policy }
}

func template(edit func(*rayv1.RayJobSpec)) edit {
	return func(c *rayv1.RayCronJob) { edit(&c.Spec.JobTemplate) }
}

// start starts an operator with the feature gate on.
func (e *env) start(options ...harness.Option) *harness.Operator {
	e.t.Helper()
	e.operator = e.Run(e.t, e.ns, append([]harness.Option{harness.Alone(), harness.Args("--feature-gates=RayCronJob=true"), harness.Clock(e.clock)}, options...)...)
	return e.operator
}

// newCron is a RayCronJob that is not stored yet.
func (e *env) newCron(edits ...edit) *rayv1.RayCronJob {
	job := harness.NewJob(e.ns, rayv1.HTTPMode).Spec
	job.RayClusterSpec.WorkerGroupSpecs = nil
	cron := &rayv1.RayCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: name}, Spec: rayv1.RayCronJobSpec{Schedule: "*/5 * * * *", JobTemplate: job}}
	for _, edit := range edits {
		edit(cron)
	}
	return cron
}

// stored makes the RayCronJob. By the operator's clock it is now the time of that.
func (e *env) stored(edits ...edit) *rayv1.RayCronJob {
	e.t.Helper()
	cron := e.newCron(edits...)
	e.make(cron)
	e.clock.set(cron.CreationTimestamp.Time, false)
	return cron
}

// given makes the RayCronJob, starts the operator unless it runs, and waits until the operator has looked at it.
func (e *env) given(edits ...edit) *rayv1.RayCronJob {
	e.t.Helper()
	cron := e.stored(edits...)
	if e.operator == nil {
		e.start()
	}
	e.looked(cron)
	return cron
}

func (e *env) make(object client.Object) {
	e.t.Helper()
	e.Expect(e.Create(e.t.Context(), object)).To(Succeed())
}

func (e *env) refresh(object client.Object) {
	e.t.Helper()
	e.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
}

// looked waits until the operator has looked at the present spec.
func (e *env) looked(cron *rayv1.RayCronJob) {
	e.t.Helper()
	e.Eventually(func() bool {
		e.refresh(cron)
		return cron.Status.ObservedGeneration == cron.Generation
	}).Should(BeTrue(), "the operator never looks at the RayCronJob")
}

// change edits the RayCronJob and waits until the operator has looked at that.
func (e *env) change(cron *rayv1.RayCronJob, edit edit) {
	e.t.Helper()
	base := cron.DeepCopy()
	edit(cron)
	e.Expect(e.Patch(e.t.Context(), cron, client.MergeFrom(base))).To(Succeed())
	e.looked(cron)
}

// at makes it that time, and the operator look.
func (e *env) at(cron *rayv1.RayCronJob, moment time.Time) {
	e.t.Helper()
	e.clock.set(moment, false)
	e.touch(cron)
}

// touch makes the operator look at the RayCronJob.
func (e *env) touch(cron *rayv1.RayCronJob) {
	e.t.Helper()
	e.touches++
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"touched":"%d"}}}`, e.touches)
	e.Expect(e.Patch(e.t.Context(), cron.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// tick is the first tick of every five minutes, as it is counted from when the RayCronJob was created, or a later one.
func tick(cron *rayv1.RayCronJob, later ...int) time.Time {
	const period = 5 * time.Minute
	first := cron.CreationTimestamp.UTC().Truncate(period).Add(period)
	for _, n := range later {
		first = first.Add(time.Duration(n) * period)
	}
	return first
}

// runName is the name of the RayJob of a tick.
func runName(cron *rayv1.RayCronJob, tick time.Time) string {
	return fmt.Sprintf("%s-%d", cron.Name, tick.Unix()/60)
}

// runs are the RayJobs of the namespace, from the oldest to the newest.
func (e *env) runs() []rayv1.RayJob {
	e.t.Helper()
	jobs := &rayv1.RayJobList{}
	e.Expect(e.List(e.t.Context(), jobs, client.InNamespace(e.ns))).To(Succeed())
	slices.SortFunc(jobs.Items, func(a, b rayv1.RayJob) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return jobs.Items
}

func (e *env) names() []string {
	var names []string
	for _, run := range e.runs() {
		names = append(names, run.Name)
	}
	return names
}

// ran waits until a tick is run and recorded, and nothing holds its RayJob for that any more.
func (e *env) ran(cron *rayv1.RayCronJob, tick time.Time) *rayv1.RayJob {
	e.t.Helper()
	run := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: runName(cron, tick)}}
	e.Eventually(func() error { return e.Get(e.t.Context(), client.ObjectKeyFromObject(run), run) }).Should(Succeed(), "the tick of %s is not run", tick)
	e.Eventually(func() []string {
		e.refresh(run)
		return run.Finalizers
	}).ShouldNot(ContainElement(rayv1.FinalizerRayCronJobTick), "the tick of %s is not recorded", tick)
	e.lastIs(cron, tick)
	return run
}

// lastIs waits until the status says that a tick was run last.
func (e *env) lastIs(cron *rayv1.RayCronJob, tick time.Time) {
	e.t.Helper()
	e.Eventually(func() string {
		e.refresh(cron)
		return text(cron.Status.LastScheduleTime)
	}).Should(Equal(tick.UTC().Format(time.RFC3339)), "status.lastScheduleTime")
}

// nextIs checks which tick is next.
func (e *env) nextIs(cron *rayv1.RayCronJob, tick time.Time) {
	e.t.Helper()
	e.Eventually(func() string {
		e.refresh(cron)
		return text(cron.Status.NextScheduleTime)
	}).Should(Equal(tick.UTC().Format(time.RFC3339)), "status.nextScheduleTime")
}

// skipped waits until the status says which ticks were skipped last.
func (e *env) skipped(cron *rayv1.RayCronJob, count int32, reason string, last time.Time) {
	e.t.Helper()
	e.Eventually(func() string {
		e.refresh(cron)
		s := ptr.Deref(cron.Status.LastSkipped, rayv1.RayCronJobSkipped{})
		return fmt.Sprint(s.Count, " ", s.Reason, " ", text(&s.Time))
	}).Should(Equal(fmt.Sprint(count, " ", reason, " ", last.UTC().Format(time.RFC3339))), "status.lastSkipped")
}

func text(moment *metav1.Time) string {
	if moment == nil {
		return ""
	}
	return moment.UTC().Format(time.RFC3339)
}

// rest waits until the operator has nothing more to do.
func (e *env) rest() {
	e.t.Helper()
	e.operator.Settle(e.t)
}

// nothing checks that no RayJob is made, however long one waits.
func (e *env) nothing() {
	e.t.Helper()
	e.rest()
	e.Expect(e.names()).To(BeEmpty())
}

// said waits for an event and returns its note.
func (e *env) said(about client.Object, eventType, reason string) string {
	e.t.Helper()
	note := ""
	e.Eventually(func() []string {
		var reasons []string
		for _, event := range e.Events(e.t, about) {
			reasons = append(reasons, event.Type+" "+event.Reason)
			if event.Type == eventType && event.Reason == reason {
				note = event.Note
			}
		}
		return reasons
	}).Should(ContainElement(eventType + " " + reason))
	return note
}

// have waits until a condition has the status and reason, and returns its message.
func (e *env) have(cron *rayv1.RayCronJob, kind string, status metav1.ConditionStatus, reason string) string {
	e.t.Helper()
	var c metav1.Condition
	e.Eventually(func() string {
		e.refresh(cron)
		c = ptr.Deref(meta.FindStatusCondition(cron.Status.Conditions, kind), metav1.Condition{})
		return string(c.Status) + "/" + c.Reason
	}).Should(Equal(string(status)+"/"+reason), "condition %s", kind)
	return c.Message
}

// invalid checks that the operator finds the stored spec wrong and says so, and makes no RayJob at the next tick.
func (e *env) invalid(said string, edits ...edit) {
	e.t.Helper()
	cron := e.given(edits...)
	e.Expect(e.said(cron, "Warning", "InvalidRayCronJobSpec")).To(ContainSubstring(said))
	e.Expect(e.have(cron, rayv1.ConditionValid, metav1.ConditionFalse, rayv1.ReasonSpecInvalid)).To(ContainSubstring(said))
	e.at(cron, tick(cron))
	e.nothing()
}

// refused checks that the API server does not take the object, with the text in its answer.
func (e *env) refused(object client.Object, text string) {
	e.t.Helper()
	err := e.Create(e.t.Context(), object)
	e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
	e.Expect(err.Error()).To(ContainSubstring(text))
}

// ends has a RayJob end, as its own controller would say it.
func (e *env) ends(run *rayv1.RayJob, status rayv1.JobStatus) {
	e.t.Helper()
	e.refresh(run)
	base := run.DeepCopy()
	run.Status.JobStatus, run.Status.JobDeploymentStatus = status, rayv1.JobDeploymentStatusComplete
	if status == rayv1.JobStatusFailed {
		run.Status.JobDeploymentStatus = rayv1.JobDeploymentStatusFailed
	}
	run.Status.EndTime = ptr.To(metav1.NewTime(e.clock.Now()))
	e.Expect(e.Status().Patch(e.t.Context(), run, client.MergeFrom(base))).To(Succeed())
}
