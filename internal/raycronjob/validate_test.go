package raycronjob

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/rayjob"
)

func named36(cron *rayv1.RayCronJob) { cron.Name = strings.Repeat("a", 36) }

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*rayv1.RayCronJob)
		// want is part of the complaint; empty means that there is none.
		want string
	}{
		"as given":                        {edit: func(*rayv1.RayCronJob) {}},
		"a name of 36 characters":         {edit: named36},
		"a name of 37 characters":         {edit: func(c *rayv1.RayCronJob) { c.Name = strings.Repeat("a", 37) }, want: "metadata.name"},
		"a name that no Service can have": {edit: func(c *rayv1.RayCronJob) { c.Name = "1abc" }, want: "metadata.name"},
		"a name with a dot":               {edit: func(c *rayv1.RayCronJob) { c.Name = "a.b" }, want: "metadata.name"},
		"no schedule":                     {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "" }, want: `spec.schedule: Invalid value: ""`},
		"six fields":                      {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "0 0 * * * *" }, want: "spec.schedule"},
		"a zone in the schedule":          {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "TZ=UTC * * * * *" }, want: "spec.timeZone does"},
		"another zone in the schedule":    {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "CRON_TZ=UTC * * * * *" }, want: "spec.timeZone does"},
		"half a zone in the schedule":     {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "TZ=" }, want: "spec.timeZone does"},
		"a day that never comes":          {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "0 0 31 2 *" }, want: "there is no such day"},
		"less than a minute":              {edit: func(c *rayv1.RayCronJob) { c.Spec.Schedule = "@every 59s" }, want: "at least 1m0s"},
		"a zone that nobody knows":        {edit: func(c *rayv1.RayCronJob) { c.Spec.TimeZone = ptr.To("Nowhere/City") }, want: "spec.timeZone"},
		"no cluster":                      {edit: func(c *rayv1.RayCronJob) { c.Spec.JobTemplate.RayClusterSpec = nil }, want: "spec.jobTemplate.rayClusterSpec"},
		"a mistake deep in the template": {edit: func(c *rayv1.RayCronJob) {
			c.Spec.JobTemplate.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers = nil
		},
			want: "spec.jobTemplate.rayClusterSpec.headGroupSpec"},
		"a negative number of retries":    {edit: func(c *rayv1.RayCronJob) { c.Spec.JobTemplate.BackoffLimit = ptr.To[int32](-1) }, want: "spec.jobTemplate.backoffLimit"},
		"suspended runs without shutdown": {edit: func(c *rayv1.RayCronJob) { c.Spec.JobTemplate.Suspend = true }, want: "spec.jobTemplate.suspend"},
		"suspended runs": {edit: func(c *rayv1.RayCronJob) {
			c.Spec.JobTemplate.Suspend, c.Spec.JobTemplate.ShutdownAfterJobFinishes = true, true
		}},
		"a fixed id, and a cluster each":   {edit: func(c *rayv1.RayCronJob) { c.Spec.JobTemplate.JobId = "mine" }},
		"a label that no RayJob can carry": {edit: metadata(map[string]string{"queue": "not a name"}, nil), want: "spec.jobTemplateMetadata.labels"},
		"an annotation without a name":     {edit: metadata(nil, map[string]string{"": "x"}), want: "spec.jobTemplateMetadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			cron := given().Cron
			c.edit(cron)
			err := Validate(cron, rayjob.Settings{DeletionPolicy: true})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want it to say %q", err, c.want)
			}
		})
	}
}

func metadata(labels, annotations map[string]string) func(*rayv1.RayCronJob) {
	return func(c *rayv1.RayCronJob) {
		c.Spec.JobTemplateMetadata = &rayv1.RayCronJobTemplateMetadata{Labels: labels, Annotations: annotations}
	}
}

func TestRunOfATick(t *testing.T) {
	cron := given().Cron
	metadata(map[string]string{"kueue.x-k8s.io/queue-name": "nights", rayv1.LabelCronJobName: "other"}, map[string]string{"a": "b"})(cron)
	run := newRun(cron, clockAt("12:05:00"))
	if run.Name != "nightly-29932565" || run.Namespace != "ml" {
		t.Errorf("the name is %s/%s", run.Namespace, run.Name)
	}
	for what, diff := range map[string]string{
		"labels":      cmp.Diff(map[string]string{"kueue.x-k8s.io/queue-name": "nights", "ray.io/cronjob-name": "nightly"}, run.Labels),
		"annotations": cmp.Diff(map[string]string{"a": "b", "ray.io/cronjob-scheduled-timestamp": "2026-11-29T12:05:00Z"}, run.Annotations),
		"spec":        cmp.Diff(cron.Spec.JobTemplate, run.Spec),
	} {
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if owner := run.OwnerReferences[0]; owner.UID != "cron-uid" || !*owner.Controller || owner.Kind != "RayCronJob" {
		t.Errorf("the owner is %+v", owner)
	}
	run.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0].Image = "other"
	if cron.Spec.JobTemplate.RayClusterSpec.HeadGroupSpec.Template.Spec.Containers[0].Image != "img:1" {
		t.Error("the run shares its spec with the template")
	}
}

// A RayJob that has the longest name of a RayCronJob in it has a name that RayJobs may have, for thousands of years.
func TestNamesOfRunsAreValid(t *testing.T) {
	cron := given().Cron
	named36(cron)
	for _, tick := range []string{"1970-01-01T00:00:00Z", "2026-11-29T12:05:00Z", "9999-12-31T23:59:00Z"} {
		run := newRun(cron, at(tick))
		if err := rayjob.Validate(run, rayjob.Settings{}); err != nil {
			t.Errorf("%s: %v", run.Name, err)
		}
	}
}

func TestRunsOnOneClusterHaveDifferentIds(t *testing.T) {
	cron := given().Cron
	cron.Spec.JobTemplate = rayv1.RayJobSpec{JobId: "mine", ClusterSelector: map[string]string{rayv1.LabelCluster: "shared"}}
	first, second := newRun(cron, clockAt("12:05:00")), newRun(cron, clockAt("12:10:00"))
	if first.Spec.JobId != "mine-29932565" || second.Spec.JobId != "mine-29932570" {
		t.Errorf("the ids are %s and %s", first.Spec.JobId, second.Spec.JobId)
	}
	cron.Spec.JobTemplate.ClusterSelector, cron.Spec.JobTemplate.RayClusterSpec = nil, &rayv1.RayClusterSpec{HeadGroupSpec: rayv1.HeadGroupSpec{Template: corev1.PodTemplateSpec{}}}
	if id := newRun(cron, clockAt("12:05:00")).Spec.JobId; id != "mine" {
		t.Errorf("on a cluster of its own the id is %s, want it as given", id)
	}
}

func TestTickOf(t *testing.T) {
	run := newRun(given().Cron, clockAt("12:05:00"))
	if got := tickOf(run); !got.Equal(clockAt("12:05:00")) {
		t.Errorf("by the annotation: %s", got)
	}
	delete(run.Annotations, rayv1.AnnotationCronJobScheduledTimestamp)
	if got := tickOf(run); !got.Equal(clockAt("12:05:00")) {
		t.Errorf("by the name: %s", got)
	}
	run.Name = "something"
	if got := tickOf(run); !got.IsZero() {
		t.Errorf("by nothing: %s", got)
	}
}
