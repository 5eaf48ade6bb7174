package sim

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

func oneCPU() resource.Quantity { return resource.MustParse("1") }

func overHTTP(j *rayv1.RayJob)    { j.Spec.SubmissionMode = rayv1.HTTPMode }
func retried(j *rayv1.RayJob)     { j.Spec.BackoffLimit = ptr.To[int32](1) }
func inSidecar(j *rayv1.RayJob)   { j.Spec.SubmissionMode = rayv1.SidecarMode }
func keepAfter(j *rayv1.RayJob)   { j.Spec.ShutdownAfterJobFinishes = false }
func interactive(j *rayv1.RayJob) { j.Spec.SubmissionMode = rayv1.InteractiveMode }

// trains is a RayJob alone.
func trains(edits ...func(*rayv1.RayJob)) func() []object {
	return func() []object { return []object{demoJob(edits...)} }
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
	return scenarioChange{what: what, make: func(w *world) {
		if live := w.server.Get("RayJob", named("train")); live != nil {
			w.must(w.server.Change("user", live, "", func(o object) { change(o.(*rayv1.RayJob)) }))
		}
	}}
}

func suspendJob() change {
	return editJob("suspend", func(j *rayv1.RayJob) { j.Spec.Suspend = true })
}

func resumeJob() change {
	return editJob("resume", func(j *rayv1.RayJob) { j.Spec.Suspend = false })
}

// deleteAll deletes what a user may delete of a kind, with grace.
func deleteAll(kind string) change {
	return change{what: "delete every " + kind, make: func(w *world) {
		for _, stored := range w.server.List(kind) {
			w.must(w.server.Remove("user", stored, false))
		}
	}}
}

// theJobsEnd lets all drivers that run until then come to an end.
func theJobsEnd(how dashboard.JobStatus) change {
	return change{what: "the drivers end", make: func(w *world) {
		for _, job := range w.rayJobs {
			if !job.foreign {
				job.ends = how
			}
		}
	}}
}

// restartHeads lets Ray start anew in every head Pod.
func restartHeads() change {
	return change{what: "the containers of the heads are restarted", make: func(w *world) {
		for _, pod := range w.heads() {
			w.restart(pod)
		}
	}}
}

func jobScenarios() []scenario {
	scenarios := plainJobScenarios()
	scenarios = append(scenarios, lostJobScenarios()...)
	scenarios = append(scenarios, rushScenarios()...)
	scenarios = append(scenarios, submitterScenarios()...)
	scenarios = append(scenarios, modeScenarios()...)
	scenarios = append(scenarios, selectedScenarios()...)
	scenarios = append(scenarios, endScenarios()...)
	for i := range scenarios {
		scenarios[i].ofJobs = i > 0 // in the first one, everything matters
		// While a cache shows a cluster that is gone, it is given its Service again. A job that ends before a refused Service of
		// its own is tried again does without it.
		scenarios[i].chance = append(scenarios[i].chance, "create Service train~-head-svc", "create Service train-head-svc")
	}
	return scenarios
}

func plainJobScenarios() []scenario {
	long := []dashboard.JobStatus{forever}
	return []scenario{
		{name: "a job runs to its end and its cluster goes", objects: trains()},
		{name: "a job is submitted over HTTP", objects: trains(overHTTP), usesHTTP: true},
		{name: "a job fails, and succeeds at the second attempt", objects: trains(retried),
			outcomes: []dashboard.JobStatus{dashboard.JobFailed}},
		{name: "a job over HTTP fails twice", objects: trains(overHTTP, retried), usesHTTP: true,
			outcomes: []dashboard.JobStatus{dashboard.JobFailed, dashboard.JobFailed}},
		{name: "a running job over HTTP is suspended and resumed", anyTime: true, objects: trains(overHTTP), usesHTTP: true,
			outcomes: []dashboard.JobStatus{forever, forever}, changes: []change{suspendJob(), resumeJob()}},
		{name: "a running job is suspended and resumed, and again", anyTime: true, objects: trains(), usesHTTP: true,
			outcomes: []dashboard.JobStatus{forever, forever, forever},
			changes:  []change{suspendJob(), resumeJob(), suspendJob(), resumeJob()}},
		{name: "a job is created suspended, and resumed", anyTime: true, objects: trains(func(j *rayv1.RayJob) { j.Spec.Suspend = true }),
			changes: []change{resumeJob()}},
		{name: "a job succeeds while it is suspended", calm: true, objects: trains(), usesHTTP: true,
			outcomes: []dashboard.JobStatus{untilStopped}, changes: []change{suspendJob()}},
		{name: "a job over HTTP is deleted", anyTime: true, objects: trains(overHTTP), usesHTTP: true, outcomes: long,
			changes: []change{deleteAll("RayJob")}},
		{name: "a job is deleted", anyTime: true, objects: trains(), usesHTTP: true, outcomes: long,
			changes: []change{deleteAll("RayJob")}},
		{name: "a job is deleted with its namespace", objects: trains(), usesHTTP: true, outcomes: long,
			changes: []change{{what: "the namespace is deleted", make: deleteNamespace}}},
		{name: "a running job is made invalid and mended", objects: trains(), usesHTTP: true, outcomes: long,
			changes: []change{
				editJob("make invalid", func(j *rayv1.RayJob) { j.Spec.ShutdownAfterJobFinishes, j.Spec.TTLSecondsAfterFinished = false, 5 }),
				editJob("mend", func(j *rayv1.RayJob) { j.Spec.ShutdownAfterJobFinishes, j.Spec.TTLSecondsAfterFinished = true, 0 }),
				theJobsEnd(dashboard.JobSucceeded)}},
		{name: "a job that never began is mended", anyTime: true, objects: trains(keepAfter, func(j *rayv1.RayJob) { j.Spec.TTLSecondsAfterFinished = 5 }),
			changes: []change{editJob("mend", func(j *rayv1.RayJob) { j.Spec.ShutdownAfterJobFinishes, j.Spec.TTLSecondsAfterFinished = true, 0 })}},
	}
}

// deleteNamespace lets everything go, and nothing be made any more.
func deleteNamespace(w *world) {
	w.vanishing = true
	for _, kind := range w.lab.kinds {
		for _, stored := range w.server.List(kind) {
			w.must(w.server.Remove("namespace controller", stored, false))
		}
	}
}
