package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// modeScenarios are those of SidecarMode and InteractiveMode.
func modeScenarios() []scenario {
	long := []dashboard.JobStatus{forever}
	// A job may have ended before its Service was made.
	jobService := []string{"create Service train-head-svc"}
	noWorkers := func(j *rayv1.RayJob) {
		j.Spec.RayClusterSpec.WorkerGroupSpecs[0].Template.Spec.Containers[0].Env = missingSecret()
	}
	return []scenario{
		{name: "a sidecar submits, and the job succeeds", chance: jobService, objects: trains(inSidecar)},
		{name: "a sidecar submits, and the job fails, and then succeeds", objects: trains(inSidecar, retried),
			outcomes: []dashboard.JobStatus{dashboard.JobFailed}},
		{name: "a sidecar fails before it has submitted", objects: trains(inSidecar), submitters: []mishap{failsEarly}},
		{name: "a sidecar fails although the job runs", objects: trains(inSidecar), submitters: []mishap{failsLate}, outcomes: long,
			changes: []change{theJobsEnd(dashboard.JobSucceeded)}},
		{name: "the job of a sidecar succeeds although the workers never start", chance: jobService, objects: trains(inSidecar, noWorkers)},
		{name: "a sidecar fails although the workers never start", objects: trains(inSidecar, noWorkers), submitters: []mishap{failsEarly}},
		{name: "a sidecar is lost with its head", objects: trains(inSidecar), outcomes: long,
			changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "a sidecar is lost with its head, and the job tried again", objects: trains(inSidecar, retried),
			outcomes: []dashboard.JobStatus{forever, dashboard.JobSucceeded}, changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "Ray ends beside a sidecar", timed: true, chance: []string{"delete Pod train~/headgroup"}, objects: trains(inSidecar), outcomes: long, changes: []change{restartHeads()}},
		{name: "a job in a sidecar is suspended and resumed", anyTime: true, objects: trains(inSidecar), usesHTTP: true,
			outcomes: []dashboard.JobStatus{forever, forever}, changes: []change{suspendJob(), resumeJob()}},
		{name: "a user submits", chance: jobService, objects: trains(interactive), changes: []change{userSubmits("mine")}},
		{name: "a user submits, and the job fails", chance: jobService, objects: trains(interactive), outcomes: []dashboard.JobStatus{dashboard.JobFailed},
			changes: []change{userSubmits("mine")}},
		{name: "a user tells an id and submits later", objects: trains(interactive), changes: []change{
			editJob("tell the id", func(j *rayv1.RayJob) { j.Spec.JobId = "mine" }), userSubmits("mine")}},
		{name: "a job that waits for its user is suspended and resumed", anyTime: true, objects: trains(interactive), usesHTTP: true,
			changes: []change{suspendJob(), resumeJob()}},
		{name: "a job that waits for its user is deleted", anyTime: true, objects: trains(interactive), usesHTTP: true,
			changes: []change{deleteAll("RayJob")}},
		{name: "a job of a user loses its head", chance: []string{"create Pod train~/headgroup"}, objects: trains(interactive), outcomes: long,
			changes: []change{userSubmits("mine"), lose(rayv1.HeadGroupName)}},
	}
}

// missingSecret is a variable from a Secret that does not exist, without which no container starts.
func missingSecret() []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "nowhere"}, Key: "x"}}}}
}

// userSubmits is what a user does for a job in InteractiveMode.
func userSubmits(id string) change {
	return change{what: "submit " + id, make: func(w *world) {
		live := w.server.Get("RayJob", named("train"))
		if live == nil {
			return
		}
		if head := w.headAt(live.(*rayv1.RayJob).Status.DashboardURL); head != nil && w.jobOn(head, id) == nil {
			w.startJob(head, id, nil)
		}
		editJob("", func(j *rayv1.RayJob) { j.Spec.JobId = id }).make(w)
	}}
}

// heads are the head Pods in which Ray runs.
func (w *world) heads() []*corev1.Pod {
	var heads []*corev1.Pod
	for _, stored := range w.server.List("Pod") {
		if pod := stored.(*corev1.Pod); pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && answers(pod) {
			heads = append(heads, pod)
		}
	}
	return heads
}

// selectedScenarios are those of jobs on a cluster that they do not own.
func selectedScenarios() []scenario {
	long := []dashboard.JobStatus{forever}
	selecting := func(edits ...func(*rayv1.RayJob)) func() []object {
		return func() []object {
			return []object{demoCluster(), demoJob(append(slices.Clone(edits), onDemo)...)}
		}
	}
	deadline := func(j *rayv1.RayJob) { j.Spec.ActiveDeadlineSeconds = ptr.To[int32](60) }
	fixed := func(j *rayv1.RayJob) { j.Spec.JobId = "fixed" }
	begin := change{what: "a RayJob selects the cluster", make: func(w *world) { w.must(w.server.Add(demoJob(onDemo, fixed))) }}
	return []scenario{
		{name: "a job runs on a selected cluster", objects: selecting()},
		{name: "a job over HTTP runs on a selected cluster", objects: selecting(overHTTP), usesHTTP: true},
		{name: "a job fails on a selected cluster", objects: selecting(), outcomes: []dashboard.JobStatus{dashboard.JobFailed}},
		{name: "the selected cluster comes later", anyTime: true, objects: trains(onDemo),
			changes: []change{{what: "make the cluster", make: func(w *world) { w.must(w.server.Add(demoCluster())) }}}},
		{name: "a job on a selected cluster is deleted", anyTime: true, objects: selecting(), usesHTTP: true, outcomes: long,
			changes: []change{deleteAll("RayJob")}},
		{name: "a job over HTTP on a selected cluster is deleted", anyTime: true, objects: selecting(overHTTP), usesHTTP: true, outcomes: long,
			changes: []change{deleteAll("RayJob")}},
		{name: "a job on a selected cluster is deleted, and Ray cannot stop it", objects: selecting(), usesHTTP: true,
			outcomes: []dashboard.JobStatus{unstoppable}, changes: []change{deleteAll("RayJob")}},
		{name: "a job on a selected cluster misses its deadline", timed: true, race: true, objects: selecting(deadline), usesHTTP: true, outcomes: long},
		{name: "a job over HTTP on a selected cluster misses its deadline", timed: true, race: true, objects: selecting(overHTTP, deadline),
			usesHTTP: true, outcomes: long},
		{name: "a job on a selected cluster is suspended and resumed", anyTime: true, objects: selecting(), usesHTTP: true,
			outcomes: []dashboard.JobStatus{forever, forever}, changes: []change{suspendJob(), resumeJob()}},
		{name: "a job over HTTP with a fixed id is suspended and resumed on a selected cluster", anyTime: true, objects: selecting(overHTTP, fixed),
			usesHTTP: true, outcomes: []dashboard.JobStatus{forever, forever}, changes: []change{suspendJob(), resumeJob()}},
		{name: "a job on a selected cluster loses the head", lingers: true, objects: selecting(), outcomes: long,
			changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "the head of a selected cluster is restarted", objects: selecting(overHTTP), usesHTTP: true, outcomes: long,
			changes: []change{restartHeads()}},
		{name: "a selected cluster is deleted under its job", lingers: true, objects: selecting(), outcomes: long, changes: []change{deleteAll("RayCluster")}},
		{name: "someone else has the fixed id on the selected cluster", objects: func() []object { return []object{demoCluster()} },
			changes: []change{someoneSubmits("fixed"), begin}},
		{name: "someone else has the fixed id, and the RayJob is deleted", usesHTTP: true, objects: func() []object { return []object{demoCluster()} },
			changes: []change{someoneSubmits("fixed"), begin, deleteAll("RayJob")}},
		{name: "two jobs share a selected cluster", objects: func() []object {
			return []object{demoCluster(), demoJob(onDemo), demoJob(onDemo, overHTTP, func(j *rayv1.RayJob) { j.Name = "other" })}
		}, usesHTTP: true},
	}
}

func onDemo(j *rayv1.RayJob) {
	j.Spec.RayClusterSpec, j.Spec.ClusterSelector = nil, map[string]string{rayv1.LabelCluster: "demo"}
}

// someoneSubmits lets a stranger use the cluster.
func someoneSubmits(id string) change {
	return change{what: "someone else submits " + id, make: func(w *world) {
		for _, head := range w.heads() {
			w.startForeign(head, id)
		}
	}}
}
