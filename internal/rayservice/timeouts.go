package rayservice

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// timeout reads a limit: a positive Go duration, or a positive whole number of seconds. An empty one is none.
func timeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second, nil
	}
	if limit, err := time.ParseDuration(text); err == nil && limit > 0 {
		return limit, nil
	}
	return 0, fmt.Errorf("%q is neither a positive duration such as 90s or 10m nor a positive whole number of seconds", text)
}

// timedOut tells whether the service was given up, because nothing served in time, and gives it up when it is so. That is
// looked at before anything else, so that no trouble of a pass keeps the limit from being enforced (RS-W10). A service
// that has served once is never given up (RS-W29).
func (p *planner) timedOut() bool {
	ready := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionRayServiceReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return false
	}
	if ready.Reason == rayv1.ReasonInitializingTimeout {
		return true
	}
	limit, err := timeout(p.service.Annotations[rayv1.AnnotationInitializingTimeout])
	if err != nil || limit == 0 || ready.Reason != rayv1.ReasonInitializing || p.carrier() != "" {
		return false
	}
	if left := ready.LastTransitionTime.Add(limit).Sub(p.now); left > 0 {
		p.again(left)
		return false
	}
	p.clear()
	message := fmt.Sprintf("nothing served within %s; suspend and resume the RayService, or make it anew, to try again", limit)
	if p.obstacleBefore() != "" {
		message += ": " + p.obstacleBefore()
	}
	p.set(metav1.Condition{Type: rayv1.ConditionRayServiceReady, Status: metav1.ConditionFalse, Reason: rayv1.ReasonInitializingTimeout, Message: message})
	p.set(metav1.Condition{Type: rayv1.ConditionUpgradeInProgress, Status: metav1.ConditionFalse, Reason: rayv1.ReasonInitializingTimeout})
	p.tell(action.Warning("RayServiceInitializingTimeout", "Reconcile", message))
	return true
}

// obstacleBefore is what stood in the way when the status was last written.
func (p *planner) obstacleBefore() string {
	if stalled := meta.FindStatusCondition(p.s.Service.Status.Conditions, rayv1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		return stalled.Message
	}
	return ""
}

// upgradeTimeout is how long an upgrade may take; zero is for ever.
func (p *planner) upgradeTimeout() (time.Duration, error) {
	return timeout(p.service.Annotations[rayv1.AnnotationUpgradeTimeout])
}

// begun is when an upgrade to a cluster began: when that was made, or wanted again.
func (p *planner) begun(c *Cluster) time.Time {
	at := c.Object.CreationTimestamp.Time
	upgrade := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionUpgradeInProgress)
	if upgrade != nil && upgrade.Status == metav1.ConditionTrue && upgrade.LastTransitionTime.After(at) {
		return upgrade.LastTransitionTime.Time
	}
	return at
}

// giveUp ends an upgrade that takes too long. The same one is not begun again.
func (p *planner) giveUp(goal string, pending *Cluster, limit time.Duration) {
	why := p.unproved(pending)
	if before := meta.FindStatusCondition(p.st.Conditions, rayv1.ConditionUpgradeInProgress); why == "" && before != nil {
		why = before.Message
	}
	p.st.AbandonedUpgrade = &rayv1.RayServiceAbandonedUpgrade{
		Goal: goal, Generation: p.s.Service.Generation, RayClusterName: pending.name(), Reason: rayv1.ReasonUpgradeTimeout,
		Message: why, Time: metav1.NewTime(p.now.Truncate(time.Second)),
	}
	p.tell(action.Warning(rayv1.ReasonUpgradeTimeout, "Reconcile", fmt.Sprintf(
		"the upgrade to RayCluster %s is given up after %s: %s", pending.name(), limit, why)))
}
