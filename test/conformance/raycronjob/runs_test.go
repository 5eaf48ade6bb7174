package raycronjob

import (
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

func runCases() []Case {
	return []Case{
		{Row: 36, Kind: same, Given: "the run of 00:05 goes on", When: "it is deleted", Then: "its RayJobs and their clusters go", Run: func(e *env) {
			cron, run := e.firstRun()
			e.clock.set(e.clock.Now(), true)
			clusters := &rayv1.RayClusterList{}
			e.Eventually(func() []rayv1.RayCluster {
				e.Expect(e.List(e.t.Context(), clusters, client.InNamespace(e.ns))).To(Succeed())
				return clusters.Items
			}).Should(HaveLen(1))
			e.Expect(metav1.IsControlledBy(&clusters.Items[0], run)).To(BeTrue())
			e.Expect(e.Delete(e.t.Context(), cron)).To(Succeed())
			e.Eventually(func() int {
				e.CollectGarbage(e.t, e.ns)
				e.Expect(e.List(e.t.Context(), clusters, client.InNamespace(e.ns))).To(Succeed())
				return len(e.runs()) + len(clusters.Items)
			}).Should(BeZero())
		}},
		{Row: 38, Kind: same, Given: "a template with a rule DeleteSelf", When: "the run has ended and its time is over", Then: "the RayJob goes, the schedule goes on", Run: func(e *env) {
			cron, run := e.firstRun(template(func(s *rayv1.RayJobSpec) {
				s.DeletionStrategy = &rayv1.DeletionStrategy{DeletionRules: []rayv1.DeletionRule{
					{Policy: rayv1.DeleteSelf, Condition: rayv1.DeletionCondition{JobStatus: ptr.To(rayv1.JobStatusSucceeded), TTLSeconds: 10}}}}
			}))
			e.Eventually(func() rayv1.JobDeploymentStatus {
				e.refresh(run)
				return run.Status.JobDeploymentStatus
			}).Should(Equal(rayv1.JobDeploymentStatusInitializing))
			e.ends(run, rayv1.JobStatusSucceeded)
			e.clock.set(e.clock.Now().Add(5*time.Second), true)
			e.Eventually(e.names).Should(BeEmpty())
			e.at(cron, tick(cron, 1))
			e.ran(cron, tick(cron, 1))
			e.Expect(cron.Status.LastSuccessfulTime).ToNot(BeNil())
		}},
		{Row: 39, Kind: same, Given: "a template with suspend and shutdownAfterJobFinishes", When: "it is 00:05", Then: "a RayJob that becomes Suspended", Run: func(e *env) {
			cron, run := e.firstRun(template(func(s *rayv1.RayJobSpec) { s.Suspend, s.ShutdownAfterJobFinishes = true, true }))
			e.Eventually(func() rayv1.JobDeploymentStatus {
				e.refresh(run)
				return run.Status.JobDeploymentStatus
			}).Should(Equal(rayv1.JobDeploymentStatusSuspended))
			e.refresh(cron)
			e.Expect(cron.Status.Active).To(HaveLen(1), "a suspended run has not ended")
		}},
		{Row: 40, Kind: same, Given: "a template with managedBy kueue.x-k8s.io/multikueue", When: "it is 00:05", Then: "a RayJob that the operator leaves alone", Run: func(e *env) {
			_, run := e.firstRun(template(func(s *rayv1.RayJobSpec) { s.ManagedBy = ptr.To(rayv1.ManagedByMultiKueue) }))
			e.rest()
			e.refresh(run)
			e.Expect(run.Status).To(Equal(rayv1.RayJobStatus{}))
			e.Expect(run.Finalizers).To(BeEmpty())
		}},
		{Row: 56, Kind: better, Weak: []string{"RC-W10"}, Theirs: "a RayJob is made", Given: "it is being deleted in the foreground", When: "it is 00:05", Then: "no RayJob", How: "no tick is run once deletion began", Run: func(e *env) {
			cron := e.given(func(c *rayv1.RayCronJob) { c.Finalizers = []string{"test/hold"} })
			e.Expect(e.Delete(e.t.Context(), cron, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
			e.refresh(cron)
			e.Expect(cron.DeletionTimestamp).ToNot(BeNil())
			e.at(cron, tick(cron))
			e.nothing()
			e.Expect(e.Patch(e.t.Context(), cron, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		}},
		{Row: 59, Kind: better, Weak: []string{"RC-W13"}, Theirs: "the second run adopts the result of the first one", Given: "a template with a jobId and a clusterSelector", When: "it is 00:05, and 00:10", Then: "two submissions",
			How: "the id of a run on a selected cluster has the minutes of its tick at the end", Run: func(e *env) {
				cron, first := e.firstRun(template(func(s *rayv1.RayJobSpec) {
					s.JobId, s.RayClusterSpec, s.ClusterSelector = "mine", nil, map[string]string{rayv1.LabelCluster: "shared"}
				}))
				e.at(cron, tick(cron, 1))
				second := e.ran(cron, tick(cron, 1))
				e.Expect(first.Spec.JobId).To(HavePrefix("mine-"))
				e.Expect(second.Spec.JobId).To(And(HavePrefix("mine-"), Not(Equal(first.Spec.JobId))))
			}},
		{Row: 61, Kind: better, Weak: []string{"RC-W15"}, Theirs: "there is no place for labels", Given: "jobTemplateMetadata with the label of a queue", When: "it is 00:05", Then: "the RayJob has it",
			How: "labels and annotations are given in spec.jobTemplateMetadata", Run: func(e *env) {
				_, run := e.firstRun(func(c *rayv1.RayCronJob) {
					c.Spec.JobTemplateMetadata = &rayv1.RayCronJobTemplateMetadata{
						Labels: map[string]string{"kueue.x-k8s.io/queue-name": "nights"}, Annotations: map[string]string{"team": "a"}}
				})
				e.Expect(run.Labels).To(Equal(map[string]string{"kueue.x-k8s.io/queue-name": "nights", "ray.io/cronjob-name": name}))
				e.Expect(run.Annotations).To(HaveKeyWithValue("team", "a"))
			}},
	}
}
