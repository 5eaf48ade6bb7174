package rayjob

import (
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

func validationCases() []Case {
	return []Case{
		{Row: 53, Kind: same, Given: "a name of 48 characters", When: "the job is created", Then: "ValidationFailed, Warning InvalidRayJobMetadata",
			How: "the API server refuses it already, without a webhook", Run: func(e *env) {
				long := func(j *rayv1.RayJob) { j.Name = strings.Repeat("a", 48) }
				e.refused(e.newJob(long), "48 characters")
				e.start()
				e.isInvalid(e.storeUnchecked(e.newJob(long)), "InvalidRayJobMetadata", "metadata.name")
			}},
		{Row: 54, Kind: same, Given: "a spec that breaks one of KubeRay's rules", When: "the job is created", Then: "ValidationFailed, Warning InvalidRayJobSpec, nothing is made",
			How: "what the schema can say, the API server refuses already; suspend with clusterSelector is allowed, and for submitterConfig in SidecarMode see RJ-101", Run: everyRule},
		{Row: 55, Kind: same, Given: "managedBy MultiKueue", When: "the job is created", Then: "no finalizer, no status, no children; the field cannot be changed", Run: leavesOthersAlone},
		{Row: 56, Kind: same, Given: "managedBy someone unknown", When: "the job is created", Then: "it is refused", Run: func(e *env) {
			e.refused(e.newJob(managedBy("other")), "managedBy is other")
		}},
		{Row: 57, Kind: same, Given: "deletionRules together with onSuccess and onFailure", When: "the job is created", Then: "it is refused", Run: func(e *env) {
			e.refused(e.newJob(both(rayv1.DeleteNone, rayv1.DeleteNone), rule(rayv1.DeleteSelf, afterSuccess(0))), "deletionRules cannot be combined")
		}},
	}
}

func managedBy(who string) edit { return func(j *rayv1.RayJob) { j.Spec.ManagedBy = ptr.To(who) } }

// refused checks that the API server does not take the RayJob, with the text in its answer.
func (e *env) refused(job *rayv1.RayJob, text string) {
	e.t.Helper()
	err := e.Create(e.t.Context(), job)
	e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
	e.Expect(err.Error()).To(ContainSubstring(text))
}

// storeUnchecked stores a RayJob in its old version, whose schema has none of our rules and fewer fields: this is how one
// comes to be there that is older than them.
func (e *env) storeUnchecked(job *rayv1.RayJob) *rayv1.RayJob {
	e.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	e.Expect(err).ToNot(HaveOccurred())
	delete(content, "status")
	old := &unstructured.Unstructured{Object: content}
	old.SetAPIVersion("ray.io/v1alpha1")
	old.SetKind("RayJob")
	e.Expect(unstructured.SetNestedMap(old.Object, map[string]any{}, "spec", "rayClusterSpec", "headGroupSpec", "rayStartParams")).To(Succeed())
	groups, _, err := unstructured.NestedSlice(old.Object, "spec", "rayClusterSpec", "workerGroupSpecs")
	e.Expect(err).ToNot(HaveOccurred())
	for i := range groups {
		groups[i].(map[string]any)["rayStartParams"] = map[string]any{}
	}
	e.Expect(unstructured.SetNestedSlice(old.Object, groups, "spec", "rayClusterSpec", "workerGroupSpecs")).To(Succeed())
	e.make(old)
	stored := &rayv1.RayJob{}
	e.Expect(e.read(stored, job.Name)).To(Succeed())
	return stored
}

// isInvalid checks that the operator finds a stored RayJob wrong and says so.
func (e *env) isInvalid(job *rayv1.RayJob, reason, text string) {
	e.t.Helper()
	e.phase(job, rayv1.JobDeploymentStatusValidationFailed)
	e.Expect(job.Status.Reason).To(Equal(rayv1.ValidationFailed))
	e.Expect(job.Status.Message).To(ContainSubstring(text))
	e.Expect(job.Status.EndTime).To(BeNil())
	e.Expect(e.said(job, corev1.EventTypeWarning, reason)).To(ContainSubstring(text))
}

// broken is a RayJob that breaks a rule, and the field that is named when it does.
type broken struct {
	what, field string
	edits       []edit
}

func sidecarWith(what, field string, edits ...edit) broken {
	return broken{what, field, append([]edit{mode(rayv1.SidecarMode)}, edits...)}
}

func everyBrokenRule() []broken {
	autoscaler := func(j *rayv1.RayJob) { j.Spec.RayClusterSpec.EnableInTreeAutoscaling = ptr.To(true) }
	rules := func(policy rayv1.DeletionPolicyType, seconds int32) edit { return rule(policy, afterSuccess(seconds)) }
	return []broken{
		{"suspend without shutdown", "spec.suspend", []edit{func(j *rayv1.RayJob) { j.Spec.Suspend = true }}},
		{"negative ttl", "ttlSecondsAfterFinished", []edit{shutDown(-1)}},
		{"ttl without shutdown", "ttlSecondsAfterFinished", []edit{func(j *rayv1.RayJob) { j.Spec.TTLSecondsAfterFinished = 1 }}},
		{"rules with shutdown", "deletion", []edit{shutDown(0), rules(rayv1.DeleteCluster, 0)}},
		{"empty strategy", "deletion", []edit{func(j *rayv1.RayJob) { j.Spec.DeletionStrategy = &rayv1.DeletionStrategy{} }}},
		{"one side of the older style", "deletion", []edit{both(rayv1.DeleteNone, rayv1.DeleteNone), func(j *rayv1.RayJob) { j.Spec.DeletionStrategy.OnFailure = nil }}},
		{"older style without policy", "policy", []edit{both(rayv1.DeleteNone, rayv1.DeleteNone), func(j *rayv1.RayJob) { j.Spec.DeletionStrategy.OnFailure.Policy = nil }}},
		{"older style, cluster of others", "deletionStrategy", []edit{onShared, both(rayv1.DeleteCluster, rayv1.DeleteNone)}},
		{"older style, workers of others", "deletionStrategy", []edit{onShared, both(rayv1.DeleteNone, rayv1.DeleteWorkers)}},
		{"older style, workers with autoscaler", "deletionStrategy", []edit{autoscaler, both(rayv1.DeleteWorkers, rayv1.DeleteNone)}},
		{"older style, nothing with shutdown", "deletionStrategy", []edit{shutDown(0), both(rayv1.DeleteCluster, rayv1.DeleteNone)}},
		{"rule without outcome", "condition", []edit{rule(rayv1.DeleteCluster, rayv1.DeletionCondition{})}},
		{"rule with two outcomes", "condition", []edit{rule(rayv1.DeleteCluster, rayv1.DeletionCondition{
			JobStatus: afterSuccess(0).JobStatus, JobDeploymentStatus: afterFailure(0).JobDeploymentStatus})}},
		{"rule with negative ttl", "ttlSeconds", []edit{rules(rayv1.DeleteCluster, -1)}},
		{"rule for the cluster of others", "deletionRules[0]", []edit{onShared, rules(rayv1.DeleteCluster, 0)}},
		{"rule for workers of others", "deletionRules[0]", []edit{onShared, rules(rayv1.DeleteWorkers, 0)}},
		{"rule for workers with autoscaler", "deletionRules[0]", []edit{autoscaler, rules(rayv1.DeleteWorkers, 0)}},
		{"one rule twice", "deletionRules[1]", []edit{rules(rayv1.DeleteCluster, 1), rules(rayv1.DeleteCluster, 2)}},
		{"workers after cluster", "deletionRules", []edit{rules(rayv1.DeleteWorkers, 2), rules(rayv1.DeleteCluster, 1)}},
		{"workers after self", "deletionRules", []edit{rules(rayv1.DeleteWorkers, 2), rules(rayv1.DeleteSelf, 1)}},
		{"cluster after self", "deletionRules", []edit{rules(rayv1.DeleteCluster, 2), rules(rayv1.DeleteSelf, 1)}},
		{"no cluster at all", "rayClusterSpec", []edit{func(j *rayv1.RayJob) { j.Spec.RayClusterSpec = nil }}},
		{"selector without name", "clusterSelector", []edit{onShared, func(j *rayv1.RayJob) { j.Spec.ClusterSelector = map[string]string{"a": "b"} }}},
		sidecarWith("selector", "clusterSelector", onShared),
		{"selector with retries", "backoffLimit", []edit{onShared, retries(1)}},
		{"interactive with retries", "backoffLimit", []edit{mode(rayv1.InteractiveMode), retries(1)}},
		sidecarWith("template", "submitterPodTemplate", template(func(*corev1.Container) {})),
		sidecarWith("restarts", "restartPolicy", func(j *rayv1.RayJob) {
			j.Spec.RayClusterSpec.HeadGroupSpec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		}),
		{"Kubernetes' own tokens", "authOptions", []edit{func(j *rayv1.RayJob) {
			j.Spec.RayClusterSpec.AuthOptions = &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}
		}}},
		{"a cluster that is invalid", "spec.rayClusterSpec.workerGroupSpecs", []edit{func(j *rayv1.RayJob) {
			j.Spec.RayClusterSpec.WorkerGroupSpecs = append(j.Spec.RayClusterSpec.WorkerGroupSpecs, harness.WorkerGroup("a", 1))
		}}},
		{"runtime environment is a list", "runtimeEnvYAML", []edit{func(j *rayv1.RayJob) { j.Spec.RuntimeEnvYAML = "- a" }}},
		{"no time at all", "activeDeadlineSeconds", []edit{mayTake(0)}},
		{"no time to start", "preRunningDeadlineSeconds", []edit{mayWait(0)}},
		{"negative retries", "backoffLimit", []edit{retries(-1)}},
	}
}

// everyRule checks that a RayJob which breaks a rule is refused when it is applied, or told about by the operator.
func everyRule(e *env) {
	e.start()
	rules := everyBrokenRule()
	stored := map[string]*rayv1.RayJob{}
	for i, rule := range rules {
		job := e.newJob(append(rule.edits, func(j *rayv1.RayJob) { j.Name = fmt.Sprintf("rule-%d", i) })...)
		err := e.Create(e.t.Context(), job)
		if err == nil {
			stored[rule.what] = job
			continue
		}
		e.Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: %v", rule.what, err)
		e.Expect(err.Error()).To(ContainSubstring(rule.field), rule.what)
	}
	for _, rule := range rules {
		if job := stored[rule.what]; job != nil {
			e.follow(job, func(s *rayv1.RayJobStatus) any { return s.JobDeploymentStatus }).
				Should(Equal(rayv1.JobDeploymentStatusValidationFailed), rule.what)
			e.isInvalid(job, "InvalidRayJobSpec", rule.field)
		}
	}
	e.rest()
	e.Expect(e.clusters()).To(BeEmpty())
	e.Expect(e.jobs()).To(BeEmpty())
}

func leavesOthersAlone(e *env) {
	job := e.given(managedBy(rayv1.ManagedByMultiKueue))
	other := e.given(mode(rayv1.HTTPMode), func(j *rayv1.RayJob) { j.Name = "other" })
	e.cluster(other) // so that the first one had its turn
	e.rest()
	e.refresh(job)
	e.Expect(job.Finalizers).To(BeEmpty())
	e.Expect(job.Status.JobDeploymentStatus).To(BeEmpty())
	e.Expect(job.Status.RayClusterName + job.Status.JobId).To(BeEmpty())
	e.Expect(e.clusters()).To(HaveLen(1))
	base := job.DeepCopy()
	job.Spec.ManagedBy = ptr.To(rayv1.ManagedByOperator)
	e.Expect(apierrors.IsInvalid(e.Patch(e.t.Context(), job, client.MergeFrom(base)))).To(BeTrue())
}
