package rayjob

import (
	"strconv"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
	"github.com/heliostat-io/heliostat/test/harness"
)

// graceOf is how long a submitter may go on after its job has ended.
func graceOf(limit time.Duration) harness.Option {
	return harness.Env("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", seconds(limit))
}

// silenceOf is how long Ray may not answer before the attempt counts as failed.
func silenceOf(limit time.Duration) harness.Option {
	return harness.Env("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", seconds(limit))
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// overHTTP lets the operator submit: nobody has to play a submitter.
func overHTTP(j *rayv1.RayJob) { j.Spec.SubmissionMode = rayv1.HTTPMode }

// named gives the RayJob another name.
func named(name string) edit { return func(j *rayv1.RayJob) { j.Name = name } }

// tries is the number of further attempts.
func tries(more int32) edit { return func(j *rayv1.RayJob) { j.Spec.BackoffLimit = &more } }

// givesUpCluster has the cluster deleted some seconds after the end.
func givesUpCluster(after int32) edit {
	return func(j *rayv1.RayJob) { j.Spec.ShutdownAfterJobFinishes, j.Spec.TTLSecondsAfterFinished = true, after }
}

// nonsense makes the spec invalid, whatever else is in it.
func nonsense(j *rayv1.RayJob) { j.Spec.RuntimeEnvYAML = "- this is a list" }

// repaired takes nonsense back.
func repaired(j *rayv1.RayJob) { j.Spec.RuntimeEnvYAML = "" }

// onto has the RayJob run on a cluster that is there already.
func onto(cluster string) edit {
	return func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec, j.Spec.ClusterSelector = nil, map[string]string{rayv1.LabelCluster: cluster}
	}
}

// standing makes a RayCluster that is nobody's, starts the operator unless it runs, and has the cluster ready.
func (e *env) standing(name string) *rayv1.RayCluster {
	e.t.Helper()
	cluster := harness.NewCluster(e.ns, name, func(c *rayv1.RayCluster) { c.Spec.WorkerGroupSpecs = nil })
	e.make(cluster)
	if e.operator == nil {
		e.start()
	}
	e.BecomesReady(e.t, cluster)
	return cluster
}

// dashboardOf is the dashboard of a RayCluster, whether or not it was asked yet.
func (e *env) dashboardOf(cluster string) *fakedashboard.Dashboard {
	host := cluster + "-head-svc." + e.ns + ".svc.cluster.local:8265"
	if e.Rays.Dashboard(host) == nil {
		ray := fakedashboard.NewInProcess()
		ray.SetDefaultScript(fakedashboard.Steps("RUNNING")...)
		e.Rays.Add(host, ray)
	}
	return e.Rays.Dashboard(host)
}

// asked waits until Ray was asked for a job so many times more.
func (e *env) asked(ray *fakedashboard.Dashboard, times int) {
	e.t.Helper()
	before := ray.Requests(fakedashboard.EndpointGet)
	e.soon(func() any { return ray.Requests(fakedashboard.EndpointGet) - before }).Should(BeNumerically(">=", times), "Ray is not asked any more")
}

// stays checks that the RayJob stays in the phase while Ray is asked several times more.
func (e *env) stays(job *rayv1.RayJob, ray *fakedashboard.Dashboard, phase rayv1.JobDeploymentStatus) {
	e.t.Helper()
	const times = 4
	before := ray.Requests(fakedashboard.EndpointGet)
	e.follow(job, func(s *rayv1.RayJobStatus) any {
		return s.JobDeploymentStatus != phase || ray.Requests(fakedashboard.EndpointGet) >= before+times
	}).Should(BeTrue(), "Ray is not asked any more")
	e.Expect(job.Status.JobDeploymentStatus).To(Equal(phase), e.told(job))
}

// endedAgo plays the Job controller: the submitter became Complete or Failed a minute ago.
func (e *env) endedAgo(submitter *batchv1.Job, condition batchv1.JobConditionType) {
	e.t.Helper()
	e.FinishJob(e.t, submitter, condition)
	for i := range submitter.Status.Conditions {
		submitter.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Minute))
	}
	e.Expect(e.Status().Update(e.t.Context(), submitter)).To(Succeed())
}

// changeStatus edits the status of the RayJob behind the operator's back.
func (e *env) changeStatus(job *rayv1.RayJob, edit func(*rayv1.RayJobStatus)) {
	e.t.Helper()
	e.refresh(job)
	base := job.DeepCopy()
	edit(&job.Status)
	e.Expect(e.Status().Patch(e.t.Context(), job, client.MergeFrom(base))).To(Succeed())
}

// warned waits for a Warning event whose note contains the text.
func (e *env) warned(about client.Object, text string) {
	e.t.Helper()
	e.soon(func() any {
		var notes []string
		for _, event := range e.Events(e.t, about) {
			if event.Type == corev1.EventTypeWarning {
				notes = append(notes, event.Note)
			}
		}
		return notes
	}).Should(ContainElement(ContainSubstring(text)))
}

// inRay is the status of the job of the present attempt in Ray.
func (e *env) inRay(job *rayv1.RayJob, ray *fakedashboard.Dashboard) string {
	found, ok := ray.Job(job.Status.JobId)
	if !ok {
		return "(unknown)"
	}
	return found.Step.Status
}

// foreignOwner is a controller owner that exists and is not the RayJob of the case.
func (e *env) foreignOwner() metav1.OwnerReference {
	e.t.Helper()
	other := e.newJob(named("other"), func(j *rayv1.RayJob) { j.Spec.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) })
	e.make(other)
	return *metav1.NewControllerRef(other, rayv1.GroupVersion.WithKind(rayv1.KindRayJob))
}

// sidecarEnds has the container end that submits in SidecarMode.
func (e *env) sidecarEnds(head *corev1.Pod, code int32) {
	e.t.Helper()
	reason := map[bool]string{true: "Completed", false: "Error"}[code == 0]
	e.SetPod(e.t, head, harness.Exited("ray-job-submitter", reason, code))
}
