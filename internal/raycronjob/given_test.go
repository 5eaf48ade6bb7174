package raycronjob

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

var created = at("2026-11-29T12:00:00Z")

// clockAt is the time on the day of the tests.
func clockAt(text string) time.Time { return at("2026-11-29T" + text + "Z") }

type edit = func(*Snapshot)

// given is a RayCronJob of every five minutes, made at 12:00 and looked at once, changed by edits.
func given(edits ...edit) Snapshot {
	cron := &rayv1.RayCronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "nightly", UID: "cron-uid", Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: rayv1.RayCronJobSpec{Schedule: "*/5 * * * *", JobTemplate: rayv1.RayJobSpec{
			Entrypoint: "python main.py", SubmissionMode: rayv1.K8sJobMode,
			RayClusterSpec: &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-head", Image: "img:1"}}}}}},
		}},
	}
	s := Snapshot{Cron: cron}
	// What the first look wrote, so that only what the edits change is news.
	s.Cron.Status = *statusAfter(Plan(s, rayjob.Settings{}, created), cron)
	for _, edit := range edits {
		edit(&s)
	}
	slices.SortFunc(s.Runs, byTick)
	return s
}

func spec(edit func(*rayv1.RayCronJobSpec)) edit {
	return func(s *Snapshot) { edit(&s.Cron.Spec) }
}

func status(edit func(*rayv1.RayCronJobStatus)) edit {
	return func(s *Snapshot) { edit(&s.Cron.Status) }
}

func scheduled(text string) edit {
	return spec(func(spec *rayv1.RayCronJobSpec) { spec.Schedule = text })
}

// from has the schedule, and was looked at with it when it was made.
func from(text string) edit {
	return func(s *Snapshot) {
		s.Cron.Spec.Schedule = text
		s.Cron.Status = rayv1.RayCronJobStatus{}
		s.Cron.Status = *statusAfter(Plan(*s, rayjob.Settings{}, created), s.Cron)
	}
}

func policy(policy rayv1.ConcurrencyPolicy) edit {
	return spec(func(spec *rayv1.RayCronJobSpec) { spec.ConcurrencyPolicy = policy })
}

func deadline(seconds int64) edit {
	return spec(func(spec *rayv1.RayCronJobSpec) { spec.StartingDeadlineSeconds = &seconds })
}

func suspended(s *Snapshot) { s.Cron.Spec.Suspend = ptr.To(true) }

func wasSuspended(s *Snapshot) {
	meta.SetStatusCondition(&s.Cron.Status.Conditions, metav1.Condition{Type: rayv1.ConditionRayCronJobSuspended, Status: metav1.ConditionTrue,
		Reason: rayv1.ReasonSuspended, ObservedGeneration: 1})
}

// ran has the status know of all ticks up to one, the last of which was run.
func ran(tick string) edit {
	return status(func(st *rayv1.RayCronJobStatus) {
		st.LastScheduleTime, st.LastHandledTime = ptr.To(metav1.NewTime(clockAt(tick))), ptr.To(metav1.NewTime(clockAt(tick)))
	})
}

// run adds the RayJob of a tick, as it is after the tick was recorded.
func run(tick string, state rayv1.JobDeploymentStatus, edits ...func(*rayv1.RayJob)) edit {
	return func(s *Snapshot) {
		job := newRun(s.Cron, clockAt(tick))
		job.UID = types.UID("uid-" + tick)
		job.Finalizers = []string{rayv1.FinalizerRayJob}
		job.Status.JobDeploymentStatus = state
		if rayv1.IsJobDeploymentTerminal(state) {
			job.Status.EndTime = ptr.To(metav1.NewTime(clockAt(tick).Add(time.Minute)))
		}
		if state == rayv1.JobDeploymentStatusComplete {
			job.Status.JobStatus = rayv1.JobStatusSucceeded
		}
		for _, edit := range edits {
			edit(job)
		}
		s.Runs = append(s.Runs, job)
	}
}

func unrecorded(job *rayv1.RayJob) {
	job.Finalizers = append(job.Finalizers, rayv1.FinalizerRayCronJobTick)
}
func deleted(job *rayv1.RayJob) { job.DeletionTimestamp = ptr.To(metav1.NewTime(created)) }

// statusAfter is the status that is stored after a plan.
func statusAfter(plan action.Plan, cron *rayv1.RayCronJob) *rayv1.RayCronJobStatus {
	if plan.Status == nil {
		return cron.Status.DeepCopy()
	}
	return &plan.Status.Object.(*rayv1.RayCronJob).Status
}

// done tells in short what a plan does: "create nightly-1", "delete nightly-1", "release nightly-1".
func done(plan action.Plan) string {
	var list []string
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case action.Create:
			list = append(list, "create "+a.Object.GetName())
		case action.Delete:
			list = append(list, "delete "+a.Object.GetName())
		case action.Finalizers:
			list = append(list, "release "+a.Object.GetName())
		default:
			list = append(list, "something else")
		}
	}
	return strings.Join(list, ", ")
}

// told are the reasons of the events of a plan.
func told(plan action.Plan) string {
	var list []string
	for _, event := range plan.Events {
		list = append(list, event.Reason)
	}
	return strings.Join(list, ", ")
}

// named is the name of the RayJob of a tick.
func named(tick string) string { return runName(given().Cron, clockAt(tick)) }

func conditions(st *rayv1.RayCronJobStatus) string {
	var list []string
	for _, kind := range []string{rayv1.ConditionValid, rayv1.ConditionRayCronJobSuspended, rayv1.ConditionReady, rayv1.ConditionReconciling, rayv1.ConditionStalled} {
		if c := meta.FindStatusCondition(st.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			list = append(list, c.Type+"/"+c.Reason)
		}
	}
	return strings.Join(list, " ")
}

func clockOf(moment *metav1.Time) string {
	if moment == nil {
		return ""
	}
	return moment.UTC().Format(time.TimeOnly)
}

func planAt(t *testing.T, now string, s Snapshot) (action.Plan, *rayv1.RayCronJobStatus) {
	t.Helper()
	before := s.Cron.DeepCopy()
	plan := Plan(s, rayjob.Settings{}, clockAt(now))
	if !equal(before, s.Cron) {
		t.Error("the plan changed what it was given")
	}
	return plan, statusAfter(plan, s.Cron)
}
