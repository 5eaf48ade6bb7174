package sim

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// forever is the outcome of a job that does not end by itself.
const forever dashboard.JobStatus = ""

func oneCPU() resource.Quantity { return resource.MustParse("1") }

func jobScenarios() []scenario {
	job := func(edits ...func(*rayv1.RayJob)) func() []object {
		return func() []object { return []object{demoJob(edits...)} }
	}
	overHTTP := func(j *rayv1.RayJob) { j.Spec.SubmissionMode = rayv1.HTTPMode }
	retried := func(j *rayv1.RayJob) { j.Spec.BackoffLimit = ptr.To[int32](1) }
	return []scenario{
		{name: "a job runs to its end and its cluster goes", sameClocks: true, objects: job()},
		{name: "a job is submitted over HTTP", objects: job(overHTTP), usesHTTP: true},
		{name: "a job fails, and succeeds at the second attempt", sameClocks: true, objects: job(retried),
			outcomes: []dashboard.JobStatus{dashboard.JobFailed}},
		{name: "a job over HTTP fails twice", objects: job(overHTTP, retried), usesHTTP: true,
			outcomes: []dashboard.JobStatus{dashboard.JobFailed, dashboard.JobFailed}},
		{name: "a running job is suspended and resumed", objects: job(overHTTP), usesHTTP: true,
			outcomes: []dashboard.JobStatus{forever},
			changes: []change{editJob("suspend", func(j *rayv1.RayJob) { j.Spec.Suspend = true }),
				editJob("resume", func(j *rayv1.RayJob) { j.Spec.Suspend = false })}},
		{name: "a running job is deleted", objects: job(overHTTP), usesHTTP: true,
			outcomes: []dashboard.JobStatus{forever},
			changes:  []change{{"delete", func(w *world) { w.removeAll("RayJob", func(object) bool { return true }) }}}},
		{name: "a running job loses its head", sameClocks: true, objects: job(),
			outcomes: []dashboard.JobStatus{forever},
			changes:  []change{lose(rayv1.HeadGroupName)}},
	}
}

func demoJob(edits ...func(*rayv1.RayJob)) *rayv1.RayJob {
	spec := demoSpec()
	spec.WorkerGroupSpecs[0].Replicas = ptr.To[int32](1)
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"},
		Spec: rayv1.RayJobSpec{Entrypoint: "python main.py", SubmissionMode: rayv1.K8sJobMode, RayClusterSpec: &spec, ShutdownAfterJobFinishes: true}}
	for _, edit := range edits {
		edit(job)
	}
	return job
}

func editJob(what string, change func(*rayv1.RayJob)) scenarioChange {
	return scenarioChange{what, func(w *world) {
		if live := w.server.Get("RayJob", named("train")); live != nil {
			w.must(w.server.Change("user", live, "", func(o object) { change(o.(*rayv1.RayJob)) }))
		}
	}}
}
