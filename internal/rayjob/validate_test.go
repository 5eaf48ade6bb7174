package rayjob

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// edit changes a RayJob that is valid.
type edit func(*rayv1.RayJob)

// edited is a valid RayJob after the edits.
func edited(edits ...edit) *rayv1.RayJob {
	job := given("").Job
	for _, e := range edits {
		e(job)
	}
	return job
}

func jobSpec(e func(*rayv1.RayJobSpec)) edit { return func(j *rayv1.RayJob) { e(&j.Spec) } }

func inMode(m rayv1.JobSubmissionMode) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) { s.SubmissionMode = m })
}

func named(name string) edit       { return func(j *rayv1.RayJob) { j.Name = name } }
func shutdown(s *rayv1.RayJobSpec) { s.ShutdownAfterJobFinishes = true }

func selecting(selector map[string]string) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) { s.ClusterSelector, s.RayClusterSpec = selector, nil })
}

func onCluster(cluster string) edit { return selecting(map[string]string{rayv1.LabelCluster: cluster}) }

func template(t corev1.PodSpec) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) { s.SubmitterPodTemplate = &corev1.PodTemplateSpec{Spec: t} })
}

func autoscaled(s *rayv1.RayJobSpec) { s.RayClusterSpec.EnableInTreeAutoscaling = ptr.To(true) }

// violation is what a test expects of one error: its field and a part of its rule.
type violation struct{ field, rule string }

// violations are all errors of a Validate, in their order.
func violations(t *testing.T, err error) []*field.Error {
	t.Helper()
	if err == nil {
		return nil
	}
	var aggregate utilerrors.Aggregate
	if !errors.As(err, &aggregate) {
		t.Fatalf("not a list of errors: %T", err)
	}
	var all []*field.Error
	for _, single := range aggregate.Errors() {
		var found *field.Error
		if !errors.As(single, &found) {
			t.Fatalf("an error that names no field: %v", single)
		}
		all = append(all, found)
	}
	return all
}

// Each row stands beside the nearest spec that is valid, so that a rule that refuses too much is found as well.
func TestValidateNamesFieldAndRule(t *testing.T) {
	long := strings.Repeat("a", maxNameLength+1)
	container := []corev1.Container{{Name: "submitter", Image: "img:1"}}
	own := []corev1.Container{{Name: "submitter", Image: "img:1", Command: []string{"submit"}}}
	for name, tc := range map[string]struct {
		refused, taken []edit
		want           violation
	}{
		"a name without room for the endings of derived names": {
			refused: []edit{named(long)}, taken: []edit{named(long[1:])}, want: violation{"metadata.name", "47 characters"}},
		"a name that no Service can have": {
			refused: []edit{named("3d")}, taken: []edit{named("d3")}, want: violation{"metadata.name", "DNS-1035"}},
		"suspend without giving the cluster up": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.Suspend = true })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.Suspend, s.ShutdownAfterJobFinishes = true, true })},
			want:    violation{"spec.suspend", "shutdownAfterJobFinishes"}},
		"suspend on a selected cluster, without shutdownAfterJobFinishes (L40: with it, it is allowed)": {
			refused: []edit{onCluster("shared"), jobSpec(func(s *rayv1.RayJobSpec) { s.Suspend = true })},
			taken:   []edit{onCluster("shared"), jobSpec(func(s *rayv1.RayJobSpec) { s.Suspend, s.ShutdownAfterJobFinishes = true, true })},
			want:    violation{"spec.suspend", "shutdownAfterJobFinishes"}},
		"a negative delay": {
			refused: []edit{jobSpec(shutdown), jobSpec(func(s *rayv1.RayJobSpec) { s.TTLSecondsAfterFinished = -1 })},
			taken:   []edit{jobSpec(shutdown), jobSpec(func(s *rayv1.RayJobSpec) { s.TTLSecondsAfterFinished = 0 })},
			want:    violation{"spec.ttlSecondsAfterFinished", "negative"}},
		"a delay of nothing": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.TTLSecondsAfterFinished = 1 })},
			taken:   []edit{jobSpec(shutdown), jobSpec(func(s *rayv1.RayJobSpec) { s.TTLSecondsAfterFinished = 1 })},
			want:    violation{"spec.ttlSecondsAfterFinished", "shutdownAfterJobFinishes"}},
		"no cluster at all": {
			refused: []edit{selecting(nil)}, taken: []edit{onCluster("shared")}, want: violation{"spec.rayClusterSpec", "clusterSelector"}},
		"a selector that names no cluster": {
			refused: []edit{selecting(map[string]string{"team": "a"})},
			taken:   []edit{selecting(map[string]string{"team": "a", rayv1.LabelCluster: "shared"})},
			want:    violation{"spec.clusterSelector[ray.io/cluster]", "names the RayCluster"}},
		"retries on a selected cluster": {
			refused: []edit{onCluster("shared"), jobSpec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](1) })},
			taken:   []edit{onCluster("shared"), jobSpec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](0) })},
			want:    violation{"spec.backoffLimit", "clusterSelector"}},
		"a sidecar in a head that stands already": {
			refused: []edit{onCluster("shared"), inMode(rayv1.SidecarMode)}, taken: []edit{onCluster("shared"), inMode(rayv1.HTTPMode)},
			want: violation{"spec.submissionMode", "clusterSelector"}},
		"retries of what a user submits (L46)": {
			refused: []edit{inMode(rayv1.InteractiveMode), jobSpec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](2) })},
			taken:   []edit{inMode(rayv1.InteractiveMode), jobSpec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](0) })},
			want:    violation{"spec.submissionMode", "backoffLimit"}},
		"a submitter Pod for a sidecar": {
			refused: []edit{inMode(rayv1.SidecarMode), template(corev1.PodSpec{Containers: container})},
			taken:   []edit{inMode(rayv1.K8sJobMode), template(corev1.PodSpec{Containers: container})},
			want:    violation{"spec.submitterPodTemplate", "SidecarMode"}},
		"a submitter Job for a sidecar": {
			refused: []edit{inMode(rayv1.SidecarMode), jobSpec(func(s *rayv1.RayJobSpec) { s.SubmitterConfig = &rayv1.SubmitterConfig{} })},
			taken:   []edit{inMode(rayv1.K8sJobMode), jobSpec(func(s *rayv1.RayJobSpec) { s.SubmitterConfig = &rayv1.SubmitterConfig{} })},
			want:    violation{"spec.submitterConfig", "SidecarMode"}},
		"a head that restarts beside a sidecar": {
			refused: []edit{inMode(rayv1.SidecarMode), headRestarts(corev1.RestartPolicyAlways)},
			taken:   []edit{inMode(rayv1.SidecarMode), headRestarts(corev1.RestartPolicyNever)},
			want:    violation{"spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy", "Never"}},
		"a token that the operator has not": {
			refused: []edit{tokenOf(true)}, taken: []edit{tokenOf(false)},
			want: violation{"spec.rayClusterSpec.authOptions.enableK8sTokenAuth", "RayJob"}},
		"what no RayCluster may have": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers = nil }),
				template(corev1.PodSpec{Containers: container})},
			taken: []edit{template(corev1.PodSpec{Containers: container})},
			want:  violation{"spec.rayClusterSpec.headGroupSpec.template.spec.containers", "at least one"}},
		"a runtime environment that is a list": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.RuntimeEnvYAML = "- numpy" })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.RuntimeEnvYAML = "pip: [numpy]" })},
			want:    violation{"spec.runtimeEnvYAML", "mapping"}},
		"no time at all": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.ActiveDeadlineSeconds = ptr.To[int32](0) })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.ActiveDeadlineSeconds = ptr.To[int32](1) })},
			want:    violation{"spec.activeDeadlineSeconds", "greater than 0"}},
		"no time to start in": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.PreRunningDeadlineSeconds = ptr.To[int32](-5) })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.PreRunningDeadlineSeconds = ptr.To[int32](5) })},
			want:    violation{"spec.preRunningDeadlineSeconds", "greater than 0"}},
		"less than no retries": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](-1) })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](3) })},
			want:    violation{"spec.backoffLimit", "negative"}},
		"an unknown mode (RJ-083)": {
			refused: []edit{inMode("Foo")}, taken: []edit{inMode(rayv1.SidecarMode)}, want: violation{"spec.submissionMode", `"K8sJobMode"`}},
		"nothing to run": {
			refused: []edit{inMode(rayv1.SidecarMode), jobSpec(func(s *rayv1.RayJobSpec) { s.Entrypoint = " \n" })},
			taken:   []edit{inMode(rayv1.InteractiveMode), jobSpec(func(s *rayv1.RayJobSpec) { s.Entrypoint = "" })},
			want:    violation{"spec.entrypoint", "command"}},
		"nothing to run in a template without a command": {
			refused: []edit{template(corev1.PodSpec{Containers: container}), jobSpec(func(s *rayv1.RayJobSpec) { s.Entrypoint = "" })},
			taken:   []edit{template(corev1.PodSpec{Containers: own}), jobSpec(func(s *rayv1.RayJobSpec) { s.Entrypoint = "" })},
			want:    violation{"spec.entrypoint", "command"}},
		"a NUL in the entrypoint": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.Entrypoint = "echo a\x00b" })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.Entrypoint = "echo 'a\nb' \u2603" })},
			want:    violation{"spec.entrypoint", "NUL"}},
		"a NUL in the metadata": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.Metadata = map[string]string{"a": "b", "team": "x\x00"} })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.Metadata = map[string]string{"a": "b", "team": "$x `y` \""} })},
			want:    violation{"spec.metadata[team]", "NUL"}},
		"resources with a unit": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.EntrypointResources = `{"tpu": "4"}` })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.EntrypointResources = `{"tpu": 0.5}` })},
			want:    violation{"spec.entrypointResources", "names and numbers"}},
		"resources that are a JSON null": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.EntrypointResources = "null" })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.EntrypointResources = "{}" })},
			want:    violation{"spec.entrypointResources", "names and numbers"}},
		"resources that nobody reads": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.EntrypointResources = "tpu=4" })},
			taken:   []edit{template(corev1.PodSpec{Containers: own}), jobSpec(func(s *rayv1.RayJobSpec) { s.EntrypointResources = "tpu=4" })},
			want:    violation{"spec.entrypointResources", "names and numbers"}},
		"an id that is two words": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.JobId = "my job" })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.JobId = "my-job_1.a" })},
			want:    violation{"spec.jobId", "blanks"}},
		"a template without containers (RJ-086)": {
			refused: []edit{template(corev1.PodSpec{})}, taken: []edit{inMode(rayv1.HTTPMode), template(corev1.PodSpec{})},
			want: violation{"spec.submitterPodTemplate.spec.containers", "at least one"}},
		"a submitter that is restarted for ever": {
			refused: []edit{template(corev1.PodSpec{Containers: container, RestartPolicy: corev1.RestartPolicyAlways})},
			taken:   []edit{template(corev1.PodSpec{Containers: container, RestartPolicy: corev1.RestartPolicyOnFailure})},
			want:    violation{"spec.submitterPodTemplate.spec.restartPolicy", "OnFailure"}},
		"a submitter with less than no retries": {
			refused: []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](-1)} })},
			taken:   []edit{jobSpec(func(s *rayv1.RayJobSpec) { s.SubmitterConfig = &rayv1.SubmitterConfig{BackoffLimit: ptr.To[int32](0)} })},
			want:    violation{"spec.submitterConfig.backoffLimit", "negative"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkRule(t, tc.refused, tc.taken, tc.want)
		})
	}
}

// checkRule wants the one violation of the first spec, and none of the second.
func checkRule(t *testing.T, refused, taken []edit, want violation) {
	t.Helper()
	err := Validate(edited(refused...), settings)
	all := violations(t, err)
	if len(all) != 1 || all[0].Field != want.field || !strings.Contains(all[0].Detail, want.rule) {
		t.Errorf("the error is\n%v\nit should be of %s and speak of %q", err, want.field, want.rule)
	}
	if err := Validate(edited(taken...), settings); err != nil {
		t.Errorf("the neighbour is refused: %v", err)
	}
}

func headRestarts(policy corev1.RestartPolicy) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) { s.RayClusterSpec.HeadGroupSpec.Template.Spec.RestartPolicy = policy })
}

func tokenOf(kubernetes bool) edit {
	return jobSpec(func(s *rayv1.RayJobSpec) {
		s.RayClusterSpec.RayVersion = "2.60.0"
		s.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: &kubernetes}
	})
}

func TestValidateTellsAllAtOnceInOneOrder(t *testing.T) {
	job := edited(named("3d"), jobSpec(func(s *rayv1.RayJobSpec) {
		s.SubmissionMode, s.Entrypoint, s.Suspend = rayv1.HTTPMode, "", true
		s.ActiveDeadlineSeconds, s.PreRunningDeadlineSeconds = ptr.To[int32](0), ptr.To[int32](0)
		s.TTLSecondsAfterFinished, s.DeletionStrategy = 5, &rayv1.DeletionStrategy{}
	}))
	var fields []string
	err := Validate(job, settings)
	for _, e := range violations(t, err) {
		fields = append(fields, e.Field)
	}
	want := []string{"metadata.name", "spec.entrypoint", "spec.activeDeadlineSeconds", "spec.preRunningDeadlineSeconds",
		"spec.ttlSecondsAfterFinished", "spec.suspend", "spec.deletionStrategy"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if got := invalidReason(err); got != "InvalidRayJobMetadata" {
		t.Errorf("the reason is %s", got)
	}
	job.Name = "train"
	if got := invalidReason(Validate(job, settings)); got != "InvalidRayJobSpec" {
		t.Errorf("the reason is %s", got)
	}
}

func TestValidateShowsLongValuesInPart(t *testing.T) {
	err := Validate(edited(jobSpec(func(s *rayv1.RayJobSpec) { s.RuntimeEnvYAML = "- " + strings.Repeat("\u2603", 1000) })), settings)
	if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "...") {
		t.Errorf("the error should show the beginning only: %v", err)
	}
}
