package raycronjob

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func refusalCases() []Case {
	const alreadyRefused = "refused when it is created"
	const event = "a Warning, no RayJob"
	invalid := func(said string, edits ...edit) func(*env) { return func(e *env) { e.invalid(said, edits...) } }
	refused := func(said string, edits ...edit) func(*env) {
		return func(e *env) { e.refused(e.newCron(edits...), said) }
	}
	long := func(length int) edit { return called(strings.Repeat("a", length)) }
	return []Case{
		{Row: 19, Kind: same, Given: "timeZone Nowhere/City", When: "it is created", Then: event, Run: invalid("Nowhere/City", zone("Nowhere/City"))},
		{Row: 20, Kind: same, Given: "timeZone \"\"", When: "it is created", Then: "it is refused", Run: func(e *env) {
			e.refused(e.raw(e.newCron(zone(""))), "spec.timeZone")
		}},
		{Row: 21, Kind: same, Given: "schedule `TZ=UTC * * * * *`", When: "it is created", Then: event, Run: invalid("spec.schedule", schedule("TZ=UTC * * * * *"))},
		{Row: 22, Kind: same, Given: "schedule `CRON_TZ=UTC * * * * *`", When: "it is created", Then: event, Run: invalid("spec.schedule", schedule("CRON_TZ=UTC * * * * *"))},
		{Row: 23, Kind: same, Given: "schedule `not a cron`", When: "it is created", Then: event, Run: invalid("not a cron", schedule("not a cron"))},
		{Row: 24, Kind: same, Given: "a schedule of six fields", When: "it is created", Then: event, Run: invalid("expected exactly 5 fields", schedule("0 * * * * *"))},
		{Row: 27, Kind: same, Given: "a name of 37 characters", When: "it is created", Then: "no RayJob", How: alreadyRefused, Run: refused("at most 36", long(37))},
		{Row: 28, Kind: same, Given: "a name of 36 characters", When: "it is 00:05", Then: "a RayJob that is accepted and passes its own rules", Run: func(e *env) {
			_, run := e.firstRun(long(36))
			e.Eventually(func() rayv1.JobDeploymentStatus {
				e.refresh(run)
				return run.Status.JobDeploymentStatus
			}).Should(Equal(rayv1.JobDeploymentStatusInitializing))
		}},
		{Row: 29, Kind: same, Given: "a template without a cluster", When: "it is created", Then: "no RayJob", How: alreadyRefused,
			Run: refused("give rayClusterSpec", template(func(s *rayv1.RayJobSpec) { s.RayClusterSpec = nil }))},
		{Row: 30, Kind: same, Given: "a template with backoffLimit -1", When: "it is created", Then: "no RayJob", How: alreadyRefused,
			Run: refused("spec.jobTemplate.backoffLimit", template(func(s *rayv1.RayJobSpec) { s.BackoffLimit = ptr.To[int32](-1) }))},
		{Row: 31, Kind: same, Given: "a template with deletionRules together with onSuccess and onFailure", When: "it is created", Then: "it is refused", Run: func(e *env) {
			none := &rayv1.DeletionPolicy{Policy: ptr.To(rayv1.DeleteNone)}
			e.refused(e.newCron(template(func(s *rayv1.RayJobSpec) {
				s.DeletionStrategy = &rayv1.DeletionStrategy{OnSuccess: none, OnFailure: none, DeletionRules: []rayv1.DeletionRule{
					{Policy: rayv1.DeleteSelf, Condition: rayv1.DeletionCondition{JobStatus: ptr.To(rayv1.JobStatusSucceeded)}}}}
			})), "deletionRules cannot be combined")
		}},
		{Row: 32, Kind: same, Given: "a template with managedBy someone unknown", When: "it is created", Then: "it is refused",
			Run: refused("managedBy is other", template(func(s *rayv1.RayJobSpec) { s.ManagedBy = ptr.To("other") }))},
		{Row: 33, Kind: same, Given: "an invalid schedule", When: "it is corrected", Then: "ticks are run", Run: func(e *env) {
			cron := e.given(schedule("not a cron"))
			e.have(cron, rayv1.ConditionValid, metav1.ConditionFalse, rayv1.ReasonSpecInvalid)
			e.change(cron, schedule("*/5 * * * *"))
			e.have(cron, rayv1.ConditionValid, metav1.ConditionTrue, rayv1.ReasonSpecValid)
			e.at(cron, tick(cron))
			e.ran(cron, tick(cron))
		}},
		{Row: 34, Kind: same, Given: "no schedule, or no jobTemplate", When: "it is created", Then: "it is refused", Run: func(e *env) {
			for _, field := range []string{"schedule", "jobTemplate"} {
				object := e.raw(e.newCron())
				unstructured.RemoveNestedField(object.Object, "spec", field)
				e.refused(object, "spec."+field)
			}
		}},
		{Row: 52, Kind: better, Weak: []string{"RC-W6"}, Theirs: "a RayJob is made at once", Given: "schedule `0 0 31 2 *`, which never comes", When: "it is created", Then: "no RayJob",
			How: "condition Valid and a Warning say so", Run: invalid("there is no such day", schedule("0 0 31 2 *"))},
		{Row: 53, Kind: better, Weak: []string{"RC-W7"}, Theirs: "two of three ticks are swallowed", Given: "schedule `@every 20s`", When: "it is created", Then: "no RayJob",
			How: "condition Valid and a Warning say that the shortest interval is a minute", Run: invalid("at least 1m0s", schedule("@every 20s"))},
		{Row: 58, Kind: better, Weak: []string{"RC-W12"}, Theirs: "each tick makes a RayJob that fails by its name", Given: "a name like 1abc or a.b", When: "it is created", Then: "it is refused",
			How: "the message says why", Run: func(e *env) {
				for _, name := range []string{"1abc", "a.b"} {
					e.refused(e.newCron(called(name)), "metadata.name "+name+" must consist of")
				}
			}},
	}
}

// raw is the RayCronJob as a plain object, so that fields can be set which the types would leave out.
func (e *env) raw(cron *rayv1.RayCronJob) *unstructured.Unstructured {
	e.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(cron)
	e.Expect(err).ToNot(HaveOccurred())
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("ray.io/v1")
	object.SetKind(rayv1.KindRayCronJob)
	return object
}

// nextClockChange is when the clocks of a zone are next put forward or back.
func nextClockChange(t *testing.T, after time.Time, zone string) (at time.Time, forward bool) {
	t.Helper()
	in, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	_, end := after.In(in).ZoneBounds()
	_, before := end.Add(-time.Second).Zone()
	_, then := end.Zone()
	return end.UTC(), then > before
}
