package rayjob

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// deletionStrategy checks both of its styles.
func (v *validator) deletionStrategy() {
	strategy := v.spec.DeletionStrategy
	if strategy == nil {
		return
	}
	path := v.path.Child("deletionStrategy")
	if !v.settings.DeletionPolicy {
		v.errs = append(v.errs, field.Forbidden(path, "needs the feature gate RayJobDeletionPolicy, which is off"))
	}
	legacy, rules := strategy.OnSuccess != nil || strategy.OnFailure != nil, len(strategy.DeletionRules) > 0
	switch {
	case !legacy && !rules:
		v.required(path, "give deletionRules, or both onSuccess and onFailure")
	case legacy && rules:
		v.errs = append(v.errs, field.Forbidden(path.Child("deletionRules"), "cannot be combined with onSuccess or onFailure"))
	}
	if legacy {
		v.deletionPolicy(path.Child("onSuccess"), strategy.OnSuccess)
		v.deletionPolicy(path.Child("onFailure"), strategy.OnFailure)
	}
	if rules {
		v.deletionRules(path.Child("deletionRules"), strategy.DeletionRules)
	}
}

// deletionPolicy checks one side of the older style.
func (v *validator) deletionPolicy(path *field.Path, side *rayv1.DeletionPolicy) {
	path = path.Child("policy")
	if side == nil || side.Policy == nil {
		v.required(path, "onSuccess and onFailure must both say what is deleted")
		return
	}
	v.policy(path, *side.Policy)
	if *side.Policy == rayv1.DeleteNone && v.spec.ShutdownAfterJobFinishes {
		v.invalid(path, *side.Policy, "contradicts spec.shutdownAfterJobFinishes")
	}
}

// policy checks whether a policy can be carried out on the job's cluster.
func (v *validator) policy(path *field.Path, policy rayv1.DeletionPolicyType) {
	known := []rayv1.DeletionPolicyType{rayv1.DeleteCluster, rayv1.DeleteWorkers, rayv1.DeleteSelf, rayv1.DeleteNone}
	if !slices.Contains(known, policy) {
		v.errs = append(v.errs, field.NotSupported(path, policy, known))
		return
	}
	workers := policy == rayv1.DeleteWorkers
	if v.shared() && (workers || policy == rayv1.DeleteCluster) {
		v.invalid(path, policy, notShared+"the cluster belongs to someone else")
	}
	if workers && v.spec.RayClusterSpec != nil && ptr.Deref(v.spec.RayClusterSpec.EnableInTreeAutoscaling, false) {
		v.invalid(path, policy, "cannot be combined with spec.rayClusterSpec.enableInTreeAutoscaling: the autoscaler would start the workers again")
	}
}

// ruleSet is where the rules for one value of a condition stand, by policy.
type ruleSet struct {
	value string
	at    map[rayv1.DeletionPolicyType]int
}

// deletionRules checks the newer style.
func (v *validator) deletionRules(path *field.Path, rules []rayv1.DeletionRule) {
	if v.spec.ShutdownAfterJobFinishes {
		v.invalid(v.path.Child("shutdownAfterJobFinishes"), true, "cannot be combined with deletionRules, which say what is deleted and when")
	}
	var sets []*ruleSet
	for i, rule := range rules {
		at := path.Index(i)
		v.policy(at.Child("policy"), rule.Policy)
		if rule.Condition.TTLSeconds < 0 {
			v.invalid(at.Child("condition", "ttlSeconds"), rule.Condition.TTLSeconds, "must not be negative")
		}
		value := v.condition(at.Child("condition"), rule.Condition)
		if value == "" {
			continue
		}
		known := slices.IndexFunc(sets, func(s *ruleSet) bool { return s.value == value })
		if known < 0 {
			known, sets = len(sets), append(sets, &ruleSet{value: value, at: map[rayv1.DeletionPolicyType]int{}})
		}
		if first, twice := sets[known].at[rule.Policy]; twice {
			v.invalid(at.Child("policy"), rule.Policy, fmt.Sprintf("has a rule for %s already, %s", value, path.Index(first)))
			continue
		}
		sets[known].at[rule.Policy] = i
	}
	for _, set := range sets {
		v.order(path, rules, set)
	}
}

// condition returns the value that a condition waits for, or empty when there is not exactly one that a job can come to.
func (v *validator) condition(path *field.Path, c rayv1.DeletionCondition) string {
	switch {
	case c.JobStatus != nil && c.JobDeploymentStatus != nil:
		v.invalid(path.Child("jobDeploymentStatus"), *c.JobDeploymentStatus, "cannot be combined with jobStatus: write one rule for each")
	case c.JobStatus == nil && c.JobDeploymentStatus == nil:
		v.required(path, "give jobStatus or jobDeploymentStatus")
	case c.JobStatus != nil:
		known := []rayv1.JobStatus{rayv1.JobStatusSucceeded, rayv1.JobStatusFailed}
		if slices.Contains(known, *c.JobStatus) {
			return "jobStatus " + string(*c.JobStatus)
		}
		v.errs = append(v.errs, field.NotSupported(path.Child("jobStatus"), *c.JobStatus, known))
	case *c.JobDeploymentStatus == rayv1.JobDeploymentStatusFailed:
		return "jobDeploymentStatus " + string(*c.JobDeploymentStatus)
	default:
		v.errs = append(v.errs, field.NotSupported(path.Child("jobDeploymentStatus"), *c.JobDeploymentStatus,
			[]rayv1.JobDeploymentStatus{rayv1.JobDeploymentStatusFailed}))
	}
	return ""
}

// order refuses a rule that is due only when a stronger one has left nothing for it to do.
func (v *validator) order(path *field.Path, rules []rayv1.DeletionRule, set *ruleSet) {
	strongest := []rayv1.DeletionPolicyType{rayv1.DeleteWorkers, rayv1.DeleteCluster, rayv1.DeleteSelf}
	for i, weaker := range strongest {
		for _, stronger := range strongest[i+1:] {
			first, hasWeaker := set.at[weaker]
			second, hasStronger := set.at[stronger]
			if !hasWeaker || !hasStronger || rules[first].Condition.TTLSeconds <= rules[second].Condition.TTLSeconds {
				continue
			}
			v.invalid(path.Index(first).Child("condition", "ttlSeconds"), rules[first].Condition.TTLSeconds, fmt.Sprintf(
				"must not be greater than that of %s for %s, which is %d", stronger, set.value, rules[second].Condition.TTLSeconds))
		}
	}
}
