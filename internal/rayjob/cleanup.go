package rayjob

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// deletion is one step of the clean-up after the end.
type deletion struct {
	policy rayv1.DeletionPolicyType
	// after is how long after the end it is due.
	after time.Duration
}

// outcome is one way in which a RayJob can end.
type outcome struct {
	job   rayv1.JobStatus
	phase rayv1.JobDeploymentStatus
}

// cleanUp does after the end what the spec asks for. Of all steps that are due only the strongest is taken, since it
// includes the others. What a step may touch is judged by who controls the cluster, because the spec may have been edited
// since the cluster was made; for the same reason nothing here depends on the spec being valid.
func (p *planner) cleanUp() {
	if p.st.EndTime == nil {
		// The status was written by hand or restored without it. Counting from now keeps the clean-up bounded.
		p.st.EndTime = ptr.To(metav1.NewTime(p.now))
	}
	due := rayv1.DeleteNone
	for _, step := range p.deletions() {
		// An end in the future was written by a leader whose clock was ahead.
		if left := min(p.st.EndTime.Add(step.after).Sub(p.now), step.after); left > 0 {
			p.again(left)
		} else if strength(step.policy) > strength(due) {
			due = step.policy
		}
	}
	why := "the job has finished and spec.deletionStrategy asks for it"
	if p.job.Spec.DeletionStrategy == nil {
		why = "the job has finished and spec.shutdownAfterJobFinishes is set"
	}
	switch due {
	case rayv1.DeleteSelf:
		p.do(action.Delete{
			Object: p.s.Job, Why: why,
			Failed: action.Warning("FailedToDeleteRayJob", "Delete", "cannot delete the RayJob"),
		})
	case rayv1.DeleteCluster:
		p.deleteCluster(why)
		p.deleteUnfinishedSubmitter(why)
	case rayv1.DeleteWorkers:
		p.suspendWorkers(why)
	}
}

// deletions are the steps that the spec asks for after the end that the job came to.
func (p *planner) deletions() []deletion {
	steps, _ := deletionsAfter(&p.job.Spec, p.outcome())
	if p.job.Spec.DeletionStrategy == nil && p.settings.DeleteJobAfterFinish && p.madeCluster() {
		for i := range steps {
			steps[i].policy = rayv1.DeleteSelf
		}
	}
	return steps
}

func (p *planner) outcome() outcome {
	return outcome{job: p.st.JobStatus, phase: p.st.JobDeploymentStatus}
}

// madeCluster tells whether the cluster was made for the job. Of a cluster that is gone only the name tells.
func (p *planner) madeCluster() bool {
	return madeFor(p.job, p.s.Cluster)
}

// strength orders the policies: each includes what the weaker ones delete.
func strength(policy rayv1.DeletionPolicyType) int {
	switch policy {
	case rayv1.DeleteSelf:
		return 3
	case rayv1.DeleteCluster:
		return 2
	case rayv1.DeleteWorkers:
		return 1
	default:
		return 0
	}
}

// deletionsAfter are the steps that a spec asks for after an outcome, and whether the spec has anything to say about it. A job
// has succeeded when Ray says so; every other outcome is a failure, whatever jobStatus it left.
func deletionsAfter(spec *rayv1.RayJobSpec, o outcome) (steps []deletion, covered bool) {
	strategy := spec.DeletionStrategy
	ttl := time.Duration(spec.TTLSecondsAfterFinished) * time.Second
	switch {
	case strategy != nil && len(strategy.DeletionRules) > 0:
		steps = rulesFor(strategy.DeletionRules, o)
		if len(steps) == 0 && o.job != rayv1.JobStatusSucceeded {
			steps = rulesFor(strategy.DeletionRules, outcome{job: rayv1.JobStatusFailed})
		}
		return steps, len(steps) > 0
	case strategy != nil:
		side := strategy.OnFailure
		if o.job == rayv1.JobStatusSucceeded {
			side = strategy.OnSuccess
		}
		if side == nil || side.Policy == nil {
			return nil, false
		}
		return []deletion{{policy: *side.Policy, after: ttl}}, true
	case spec.ShutdownAfterJobFinishes:
		return []deletion{{policy: rayv1.DeleteCluster, after: ttl}}, true
	default:
		return nil, true
	}
}

// rulesFor are the steps of the rules whose condition is met by an outcome.
func rulesFor(rules []rayv1.DeletionRule, o outcome) []deletion {
	var steps []deletion
	for _, rule := range rules {
		byJob := rule.Condition.JobStatus != nil && *rule.Condition.JobStatus == o.job
		byPhase := rule.Condition.JobDeploymentStatus != nil && *rule.Condition.JobDeploymentStatus == o.phase
		if byJob || byPhase {
			steps = append(steps, deletion{policy: rule.Policy, after: time.Duration(rule.Condition.TTLSeconds) * time.Second})
		}
	}
	return steps
}

// uncovered are notes on what deletionRules leave open: outcomes that a job can come to and that no rule names. They are
// allowed, but their author has hardly meant the cluster to stay for ever.
func uncovered(spec *rayv1.RayJobSpec) []string {
	if spec.DeletionStrategy == nil || len(spec.DeletionStrategy.DeletionRules) == 0 || len(spec.ClusterSelector) > 0 {
		return nil
	}
	var open, notes []string
	for _, way := range []struct {
		words   string
		outcome outcome
	}{
		{"succeeds", outcome{rayv1.JobStatusSucceeded, rayv1.JobDeploymentStatusComplete}},
		{"fails", outcome{rayv1.JobStatusFailed, rayv1.JobDeploymentStatusFailed}},
		{"is stopped", outcome{rayv1.JobStatusStopped, rayv1.JobDeploymentStatusComplete}},
		{"never gets to Ray, is lost or misses a deadline", outcome{rayv1.JobStatusNew, rayv1.JobDeploymentStatusFailed}},
	} {
		if _, covered := deletionsAfter(spec, way.outcome); !covered {
			open = append(open, "a job that "+way.words)
		}
	}
	if len(open) > 0 {
		notes = append(notes, "no rule of spec.deletionStrategy.deletionRules covers "+strings.Join(open, "; or ")+": nothing is deleted then")
	}
	if spec.ActiveDeadlineSeconds == nil && spec.PreRunningDeadlineSeconds == nil {
		return notes
	}
	missed := outcome{rayv1.JobStatusStopped, rayv1.JobDeploymentStatusFailed}
	exact := rulesFor(spec.DeletionStrategy.DeletionRules, missed)
	if _, covered := deletionsAfter(spec, missed); covered && len(exact) == 0 {
		notes = append(notes, "no rule of spec.deletionStrategy.deletionRules has the condition jobDeploymentStatus Failed, which is how a job "+
			"ends that misses a deadline: the rules for jobStatus FAILED are applied then")
	}
	return notes
}

// warnOfUncoveredEnd tells, in the pass that ends the job, that no rule covers this end and that the cluster stays.
func (p *planner) warnOfUncoveredEnd() {
	if rayv1.IsJobDeploymentTerminal(p.s.Job.Status.JobDeploymentStatus) || !rayv1.IsJobDeploymentTerminal(p.st.JobDeploymentStatus) {
		return
	}
	_, covered := deletionsAfter(&p.job.Spec, p.outcome())
	if covered || p.s.Cluster == nil || !p.madeCluster() {
		return
	}
	p.tell(action.Warning("NoDeletionRuleMatches", "Cleanup", fmt.Sprintf(
		"no rule of spec.deletionStrategy covers jobStatus %q with jobDeploymentStatus %s: RayCluster %s stays until it is deleted by hand",
		p.st.JobStatus, p.st.JobDeploymentStatus, p.st.RayClusterName)))
}

// deleteUnfinishedSubmitter removes a submitter that would go on for nothing. One that has ended stays, for its log.
func (p *planner) deleteUnfinishedSubmitter(why string) {
	if p.s.hasSubmitter() && !p.submitterEnd().ended {
		p.deleteSubmitter(why)
	}
}

// suspendWorkers gives up the workers of the job's own cluster and keeps its head.
func (p *planner) suspendWorkers(why string) {
	if p.s.Cluster == nil || p.s.Cluster.DeletionTimestamp != nil || !p.madeCluster() {
		return
	}
	if ptr.Deref(p.s.Cluster.Spec.EnableInTreeAutoscaling, false) {
		// Only edits after the cluster was made lead here. A RayCluster with both would be invalid.
		return
	}
	wanted := p.s.Cluster.DeepCopy()
	for i := range wanted.Spec.WorkerGroupSpecs {
		wanted.Spec.WorkerGroupSpecs[i].Suspend = ptr.To(true)
	}
	if equality.Semantic.DeepEqual(wanted.Spec, p.s.Cluster.Spec) {
		return
	}
	update := action.Update{
		Object: wanted, Base: p.s.Cluster, Why: why,
		Done:   action.Normal("UpdatedRayCluster", "Update", "suspended the workers of RayCluster: "+why),
		Failed: action.Warning("FailedToUpdateRayCluster", "Update", "cannot suspend the workers of the RayCluster"),
	}
	if wait := p.s.Holds[update.Key()].Until.Sub(p.now); wait > 0 {
		p.again(wait)
		return
	}
	p.do(update)
}
