package sim

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
)

// lostJobScenarios are those in which Ray loses a job.
func lostJobScenarios() []scenario {
	// Whether the cluster goes before a new head was made.
	newHead := []string{"create Pod train~/headgroup"}
	long, second := []dashboard.JobStatus{forever}, []dashboard.JobStatus{forever, dashboard.JobSucceeded}
	return []scenario{
		{name: "a running job loses its head", chance: newHead, lingers: true, objects: trains(), outcomes: long,
			changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "a running job loses its head and is tried again", chance: newHead, objects: trains(retried), outcomes: second,
			changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "a running job over HTTP loses its head and is tried again", chance: newHead, objects: trains(overHTTP, retried), usesHTTP: true, outcomes: second,
			changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "the head of a running job is restarted, and the job tried again", chance: newHead, objects: trains(retried), outcomes: second,
			changes: []change{restartHeads()}},
		{name: "the head of a running job over HTTP is restarted", chance: newHead, objects: trains(overHTTP), usesHTTP: true, outcomes: long,
			changes: []change{restartHeads()}},
		{name: "a user deletes the cluster of a running job, which is tried again", objects: trains(retried), outcomes: second,
			changes: []change{deleteAll("RayCluster")}},
		{name: "a user deletes the cluster of a running job", lingers: true, objects: trains(), outcomes: long,
			changes: []change{deleteAll("RayCluster")}},
	}
}

// lostSidecar is a scenario whose sidecars must not submit before their head is on record.
const lostSidecar = "a head is lost at any time, with a sidecar"

// rushScenarios are those in which something is lost at any time, also in the midst of the submission.
func rushScenarios() []scenario {
	again := func(j *rayv1.RayJob) { j.Spec.BackoffLimit = ptr.To[int32](3) }
	selecting := func(edits ...func(*rayv1.RayJob)) func() []object {
		return func() []object { return []object{demoCluster(), demoJob(append(edits, onDemo)...)} }
	}
	scenarios := []scenario{
		{name: "a head is lost at any time", objects: trains(again), changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "a head is lost at any time, with a job over HTTP", objects: trains(again, overHTTP), usesHTTP: true,
			changes: []change{lose(rayv1.HeadGroupName)}},
		{name: lostSidecar, objects: trains(again, inSidecar), changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "a cluster is deleted at any time, with a sidecar", objects: trains(again, inSidecar), changes: []change{deleteAll("RayCluster")}},
		{name: "a head is restarted at any time", objects: trains(again), changes: []change{restartHeads()}},
		{name: "a head is restarted at any time, with a job over HTTP", objects: trains(again, overHTTP), usesHTTP: true,
			changes: []change{restartHeads()}},
		{name: "a cluster is deleted at any time", objects: trains(again), changes: []change{deleteAll("RayCluster")}},
		{name: "a submitter is deleted at any time", objects: trains(), changes: []change{deleteAll("Job")}},
		{name: "a selected head is lost at any time", anyEnd: true, objects: selecting(), changes: []change{lose(rayv1.HeadGroupName)}},
		{name: "a selected head is restarted at any time, with a job over HTTP", anyEnd: true, objects: selecting(overHTTP), usesHTTP: true,
			changes: []change{restartHeads()}},
	}
	for i := range scenarios {
		scenarios[i].rush, scenarios[i].race = true, true
		scenarios[i].changes[0].when = func(w *world) bool { return len(w.heads()) > 0 && w.steps >= w.plan.rushAt }
	}
	return scenarios
}

// submitterScenarios are those in which something happens to the submitter.
func submitterScenarios() []scenario {
	long := []dashboard.JobStatus{forever}
	onlyOnce := func(j *rayv1.RayJob) { j.Spec.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](0)} }
	ownCommand := func(j *rayv1.RayJob) {
		t := template("submit")
		t.Spec.RestartPolicy = corev1.RestartPolicyNever
		t.Spec.Containers[0].Command = []string{"my-submit"}
		j.Spec.SubmitterPodTemplate = &t
	}
	return []scenario{
		{name: "a submitter fails before it has submitted, and is made again", objects: trains(), submitters: []mishap{failsEarly}},
		{name: "a submitter fails before it has submitted, and no other is made", objects: trains(onlyOnce), submitters: []mishap{failsEarly}},
		{name: "submitters fail at the first attempt", objects: trains(onlyOnce, retried), submitters: []mishap{failsEarly}},
		{name: "a submitter fails after it has submitted, and is made again", objects: trains(), submitters: []mishap{failsLate}},
		{name: "a submitter fails although the job runs", objects: trains(onlyOnce), submitters: []mishap{failsLate}, outcomes: long,
			changes: []change{theJobsEnd(dashboard.JobSucceeded)}},
		{name: "a submitter fails although the job runs, and then the job fails", objects: trains(onlyOnce), submitters: []mishap{failsLate},
			outcomes: long, changes: []change{theJobsEnd(dashboard.JobFailed)}},
		{name: "a submitter never ends", objects: trains(), submitters: []mishap{neverEnds}},
		{name: "a user's own command submits, fails, and is not let in again", objects: trains(ownCommand), submitters: []mishap{failsLate}},
		{name: "a user deletes the submitter of a running job", objects: trains(), outcomes: long,
			changes: []change{deleteAll("Job"), theJobsEnd(dashboard.JobSucceeded)}},
		{name: "a foreign Job is in the way, and goes", objects: func() []object { return []object{demoJob(), foreignJob(nil)} }, insists: true,
			changes: []change{deleteAll("Job")}},
		{name: "a foreign Job with the operator's label is in the way, and goes", objects: func() []object {
			return []object{demoJob(), foreignJob(map[string]string{rayv1.LabelCreatedBy: rayv1.CreatedByOperator})}
		}, insists: true, changes: []change{deleteAll("Job")}},
	}
}

// foreignJob is a Job of the RayJob's name that is not the RayJob's.
func foreignJob(labels map[string]string) object {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train", Labels: labels},
		Spec: batchv1.JobSpec{Suspend: ptr.To(true), Template: template("other")}}
}
