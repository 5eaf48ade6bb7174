package rayjob

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
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

// name is the name of the RayJob of a case.
const name = "train"

// env is what one case works with: a namespace of its own with an operator of its own, and the Rays that it reaches.
type env struct {
	*WithT
	harness.Cluster
	t        *testing.T
	ns       string
	operator *harness.Operator
	// noKubelet leaves all Pods pending.
	noKubelet bool
	// turned is when Kubernetes did its work the last time.
	turned time.Time
}

// newEnv makes a namespace. Dashboards answer as soon as they are asked; jobs that are sent to them run until told.
func newEnv(t *testing.T) *env {
	c, ns := harness.Connect(t)
	e := &env{WithT: NewWithT(t), Cluster: c, t: t, ns: ns}
	e.newRays(func(ray *fakedashboard.Dashboard) {})
	return e
}

// newRays prepares each dashboard before it is first asked.
func (e *env) newRays(prepare func(*fakedashboard.Dashboard)) {
	e.Rays.OnUnknown(func(string) *fakedashboard.Dashboard {
		ray := fakedashboard.NewInProcess()
		ray.SetDefaultScript(fakedashboard.Steps("RUNNING")...)
		prepare(ray)
		return ray
	})
}

type edit = func(*rayv1.RayJob)

// mode sets the submission mode.
func mode(mode rayv1.JobSubmissionMode) edit {
	return func(j *rayv1.RayJob) { j.Spec.SubmissionMode = mode }
}

// start starts the operator.
func (e *env) start(options ...harness.Option) {
	e.t.Helper()
	e.operator = e.Run(e.t, e.ns, append([]harness.Option{harness.Alone()}, options...)...)
}

// given makes the RayJob, and starts the operator unless it runs.
func (e *env) given(edits ...edit) *rayv1.RayJob {
	e.t.Helper()
	job := e.newJob(edits...)
	e.make(job)
	if e.operator == nil {
		e.start()
	}
	return job
}

// newJob is a RayJob that is not stored yet.
func (e *env) newJob(edits ...edit) *rayv1.RayJob {
	job := harness.NewJob(e.ns, rayv1.K8sJobMode)
	job.Name = name
	job.Spec.RayClusterSpec.WorkerGroupSpecs = []rayv1.WorkerGroupSpec{harness.WorkerGroup("a", 1)}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func (e *env) make(object client.Object) {
	e.t.Helper()
	e.Expect(e.Create(e.t.Context(), object)).To(Succeed())
}

// read fetches an object of the namespace by name.
func (e *env) read(object client.Object, name string) error {
	return e.Get(e.t.Context(), types.NamespacedName{Namespace: e.ns, Name: name}, object)
}

// change edits the RayJob.
func (e *env) change(job *rayv1.RayJob, edit edit) {
	e.t.Helper()
	base := job.DeepCopy()
	edit(job)
	e.Expect(e.Patch(e.t.Context(), job, client.MergeFrom(base))).To(Succeed())
}

// changeSeen edits the RayJob and waits until the operator has looked at it.
func (e *env) changeSeen(job *rayv1.RayJob, edit edit) {
	e.t.Helper()
	e.change(job, edit)
	generation := job.Generation
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.ObservedGeneration }).Should(Equal(generation), "the operator never looks at the change")
}

// turn lets Kubernetes do its work: Pods run, and what has lost its owner goes.
func (e *env) turn() {
	e.t.Helper()
	if !e.noKubelet {
		e.Kubelet(e.t, e.ns)
	}
	e.CollectGarbage(e.t, e.ns)
}

// soon looks again and again while Kubernetes works.
func (e *env) soon(look func() any) AsyncAssertion {
	e.t.Helper()
	return e.Eventually(func() any {
		// A turn is many requests, and many cases take turns at once.
		if now := time.Now(); now.Sub(e.turned) >= 500*time.Millisecond {
			e.turned = now
			e.turn()
		}
		return look()
	}).WithPolling(200 * time.Millisecond)
}

// follow looks at the status of the RayJob again and again while Kubernetes works.
func (e *env) follow(job *rayv1.RayJob, look func(*rayv1.RayJobStatus) any) AsyncAssertion {
	e.t.Helper()
	return e.soon(func() any {
		e.refresh(job)
		return look(&job.Status)
	})
}

// refresh reads the RayJob anew.
func (e *env) refresh(job *rayv1.RayJob) {
	e.t.Helper()
	e.Expect(e.Get(e.t.Context(), client.ObjectKeyFromObject(job), job)).To(Succeed())
}

// phase waits until the RayJob is in a phase.
func (e *env) phase(job *rayv1.RayJob, want rayv1.JobDeploymentStatus) {
	e.t.Helper()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobDeploymentStatus }).Should(Equal(want), func() string {
		return "status: " + e.told(job)
	})
}

// jobStatus waits until the RayJob has Ray's word for its job.
func (e *env) jobStatus(job *rayv1.RayJob, want rayv1.JobStatus) {
	e.t.Helper()
	e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobStatus }).Should(Equal(want), func() string {
		return "status: " + e.told(job)
	})
}

// told is what the status says in short.
func (e *env) told(job *rayv1.RayJob) string {
	s := &job.Status
	return string(s.JobDeploymentStatus) + " " + string(s.JobStatus) + " " + string(s.Reason) + ": " + s.Message
}

// fails waits until the RayJob has failed, and checks the reason.
func (e *env) fails(job *rayv1.RayJob, reason rayv1.JobFailedReason) {
	e.t.Helper()
	e.phase(job, rayv1.JobDeploymentStatusFailed)
	e.Expect(job.Status.Reason).To(Equal(reason), e.told(job))
}

// counts checks how many attempts succeeded and failed.
func (e *env) counts(job *rayv1.RayJob, succeeded, failed int32) {
	e.t.Helper()
	e.Expect([]int32{ptr.Deref(job.Status.Succeeded, -1), ptr.Deref(job.Status.Failed, -1)}).To(Equal([]int32{succeeded, failed}),
		"succeeded and failed attempts")
}

// have waits until a condition has the status and, unless empty, the reason, and returns its message.
func (e *env) have(job *rayv1.RayJob, kind string, status metav1.ConditionStatus, reason string) string {
	e.t.Helper()
	var c metav1.Condition
	e.follow(job, func(s *rayv1.RayJobStatus) any {
		c = ptr.Deref(meta.FindStatusCondition(s.Conditions, kind), metav1.Condition{})
		if reason == "" {
			return string(c.Status)
		}
		return string(c.Status) + "/" + c.Reason
	}).Should(Equal(map[bool]string{true: string(status), false: string(status) + "/" + reason}[reason == ""]), "condition %s", kind)
	return c.Message
}

// said waits for an event about the object and returns its note.
func (e *env) said(about client.Object, eventType, reason string) string {
	e.t.Helper()
	note := ""
	e.soon(func() any {
		events := e.Events(e.t, about)
		i := slices.IndexFunc(events, func(event eventsv1.Event) bool { return event.Reason == reason && event.Type == eventType })
		if i >= 0 {
			note = events[i].Note
		}
		return e.EventReasons(e.t, about)
	}).Should(ContainElement(reason))
	return note
}

// rest waits until the operator writes no more.
func (e *env) rest() {
	e.t.Helper()
	e.operator.Settle(e.t)
}

// cluster waits for the RayCluster of the present attempt and returns it.
func (e *env) cluster(job *rayv1.RayJob) *rayv1.RayCluster {
	e.t.Helper()
	cluster := &rayv1.RayCluster{}
	e.follow(job, func(s *rayv1.RayJobStatus) any {
		if s.RayClusterName == "" {
			return "no name yet"
		}
		return e.read(cluster, s.RayClusterName)
	}).Should(BeNil())
	return cluster
}

// clusters are all RayClusters of the namespace.
func (e *env) clusters() []rayv1.RayCluster {
	e.t.Helper()
	list := &rayv1.RayClusterList{}
	e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns))).To(Succeed())
	return list.Items
}

// jobs are all Jobs of the namespace.
func (e *env) jobs() []batchv1.Job {
	e.t.Helper()
	list := &batchv1.JobList{}
	e.Expect(e.List(e.t.Context(), list, client.InNamespace(e.ns))).To(Succeed())
	return list.Items
}

// submitter waits for the Job that submits and returns it.
func (e *env) submitter(job *rayv1.RayJob) *batchv1.Job {
	e.t.Helper()
	submitter := &batchv1.Job{}
	e.soon(func() any { return e.read(submitter, job.Name) }).Should(BeNil())
	e.Expect(metav1.IsControlledBy(submitter, job)).To(BeTrue())
	return submitter
}

// gone waits until an object is no longer there.
func (e *env) gone(object client.Object) {
	e.t.Helper()
	key := client.ObjectKeyFromObject(object)
	e.soon(func() any { return apierrors.IsNotFound(e.Get(e.t.Context(), key, object)) }).Should(BeTrue(), "%T %s is still there", object, key)
}

// isGone tells whether an object of that UID is no longer there.
func (e *env) isGone(object client.Object) bool {
	e.t.Helper()
	now := object.DeepCopyObject().(client.Object)
	err := e.Get(e.t.Context(), client.ObjectKeyFromObject(object), now)
	e.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return apierrors.IsNotFound(err) || now.GetUID() != object.GetUID()
}

// container is the first container of a template.
func container(template corev1.PodTemplateSpec) corev1.Container { return template.Spec.Containers[0] }
